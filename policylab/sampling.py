# SPDX-License-Identifier: MIT
"""Sampling completions from a policy, token by token."""

from collections.abc import Callable

import torch
from torch import Tensor

from policylab.exercise import exercise
from policylab.shapes import check_rank

Policy = Callable[[Tensor], Tensor]
"""Token ids (B, L) in, logits (B, L, V) out."""


@exercise("02_llm_as_policy")
def sample_completions(
    policy: Policy,
    prompt_ids: Tensor,
    *,
    max_new_tokens: int,
    eos_id: int,
    pad_id: int,
    temperature: float = 1.0,
    generator: torch.Generator,
) -> tuple[Tensor, Tensor]:
    """Sample one completion for each prompt, without gradients.

    Source: ancestral sampling from an autoregressive model; the EOS convention is that of the
    notation page.  Differs: nothing.

    Args:
        policy: maps ids (B, L) to logits (B, L, V); it finds left padding by itself.
        prompt_ids: (B, P) left-padded prompts; an EOS in a prompt ends nothing.
        max_new_tokens: the most tokens to sample, at least 1.
        eos_id: the id that ends a completion.
        pad_id: the id that fills a row after its EOS.
        temperature: divides the logits, above 0.
        generator: the only source of randomness, on the device of the logits.
    Returns: completion_ids (B, T) int64 and completion_mask (B, T) bool, T <= max_new_tokens. The
        mask is True up to and including a row's first sampled EOS.
    Raises: ValueError if prompt_ids is not (B, P), or max_new_tokens or temperature is out of
        range.
    """
    check_rank("prompt_ids", prompt_ids, "(B, P)")
    if max_new_tokens < 1:
        raise ValueError(f"max_new_tokens must be at least 1; got {max_new_tokens}.")
    if not temperature > 0:
        raise ValueError(f"temperature must be above 0; got {temperature}.")

    B, P = prompt_ids.shape
    ids = prompt_ids
    ended = torch.zeros(B, dtype=torch.bool, device=prompt_ids.device)
    columns = []
    for _ in range(max_new_tokens):
        with torch.no_grad():
            logits = policy(ids)[:, -1]
        scores = logits.to(torch.promote_types(logits.dtype, torch.float32)) / temperature
        sampled = torch.multinomial(torch.softmax(scores, dim=-1), 1, generator=generator)[:, 0]
        tokens = torch.where(ended, pad_id, sampled)
        columns.append(~ended)
        ended = ended | (tokens == eos_id)
        ids = torch.cat([ids, tokens[:, None]], dim=1)
        if ended.all():
            break
    return ids[:, P:], torch.stack(columns, dim=1)
