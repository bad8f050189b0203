# SPDX-License-Identifier: MIT
"""Log-probabilities of completion tokens. The shift by one lives here and nowhere else."""

import torch
from torch import Tensor

from policylab.exercise import exercise
from policylab.masking import as_bool_mask
from policylab.shapes import check_rank, check_shape


@exercise("02_llm_as_policy")
def completion_logprobs(
    logits: Tensor, input_ids: Tensor, completion_mask: Tensor, *, temperature: float = 1.0
) -> Tensor:
    """Score each completion token under the policy that produced `logits`.

    The completion is the last T of the L positions. A causal model's output at position t - 1
    predicts the token at position t.

    Source: Bengio et al. 2003, "A Neural Probabilistic Language Model", JMLR 3, section 1: the
    probability of a text is the product of the probabilities of its tokens given those before.
    Differs: keeps one number a token, of the completion only, and divides the logits by the
    sampling temperature, so that the numbers are those of the distribution that was sampled from.

    Args:
        logits: (B, L, V) the model's output for `input_ids`.
        input_ids: (B, L) prompt and completion, L > T.
        completion_mask: (B, T) bool or 0/1, True on completion tokens, the EOS included.
        temperature: the temperature the tokens were sampled at, above 0.
    Returns: (B, T) log-probabilities in nats, in float32 at least, exactly 0 where masked.
    Raises: ValueError if shapes do not fit, no prompt position is left, or temperature is not
        above 0.
    """
    check_rank("logits", logits, "(B, L, V)")
    B, L, _ = logits.shape
    check_shape("input_ids", input_ids, "(B, L)", (B, L))
    check_rank("completion_mask", completion_mask, "(B, T)")
    T = completion_mask.shape[1]
    check_shape("completion_mask", completion_mask, "(B, T)", (B, T))
    if T >= L:
        raise ValueError(
            f"completion_mask must be shorter than input_ids: T < L={L}; got T={T}. "
            "The first completion token is scored by the last prompt position."
        )
    if not temperature > 0:
        raise ValueError(f"temperature must be above 0; got {temperature}.")

    keep = as_bool_mask(completion_mask)
    # Masked places are replaced before the softmax: its backward pass turns NaN * 0 into NaN.
    scores = torch.where(keep[..., None], logits[:, L - T - 1 : L - 1], 0.0)
    tokens = torch.where(keep, input_ids[:, L - T :], 0)
    scores = scores.to(torch.promote_types(scores.dtype, torch.float32)) / temperature
    logprobs = torch.log_softmax(scores, dim=-1).gather(-1, tokens[..., None]).squeeze(-1)
    return torch.where(keep, logprobs, 0.0)
