# SPDX-License-Identifier: MIT
"""Losses: pure functions that a step of gradient descent makes smaller."""

import torch
from torch import Tensor

from policylab.exercise import exercise
from policylab.masking import as_bool_mask
from policylab.shapes import check_rank, check_shape


@exercise("02_llm_as_policy")
def reinforce_loss(
    logprobs: Tensor, completion_mask: Tensor, rewards: Tensor, baseline: float | Tensor = 0.0
) -> Tensor:
    """Compute the loss whose gradient is minus the REINFORCE estimate of the policy gradient.

    Source: Williams 1992, "Simple statistical gradient-following algorithms for connectionist
    reinforcement learning", Machine Learning 8, theorem 1.  Differs: written as a loss over a batch
    of completions (sum over a completion's tokens, mean over completions) and minimised.

    Args:
        logprobs: (B, T) log-probabilities of the sampled tokens, with their graph.
        completion_mask: (B, T) bool or 0/1; masked values, also NaN, change nothing.
        rewards: (B,) one reward a completion; no gradient flows into it.
        baseline: a number or (B,), subtracted from the rewards; no gradient flows into it.
    Returns: () -mean over B of (reward - baseline) * sum over t of logprobs.
    Raises: ValueError if shapes do not fit.
    """
    check_rank("logprobs", logprobs, "(B, T)")
    B, T = logprobs.shape
    check_shape("completion_mask", completion_mask, "(B, T)", (B, T))
    check_shape("rewards", rewards, "(B,)", (B,), "Pass one reward a completion.")
    if isinstance(baseline, Tensor) and baseline.dim() > 0:
        check_shape(
            "baseline", baseline, "(B,)", (B,), "Pass a number or one baseline a completion."
        )

    advantages = (rewards - baseline).detach().to(logprobs.dtype)
    kept = torch.where(as_bool_mask(completion_mask), logprobs, 0.0)
    return -(advantages * kept.sum(dim=1)).mean()
