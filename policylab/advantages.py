# SPDX-License-Identifier: MIT
"""Baselines and advantages: how much better a completion did than expected."""

from torch import Tensor

from policylab.exercise import exercise
from policylab.shapes import check_rank


@exercise("02_llm_as_policy")
def leave_one_out_baseline(rewards: Tensor, group_size: int) -> Tensor:
    """Average, for each completion, the rewards of the other completions of its group.

    The baseline of a completion does not depend on that completion, so subtracting it leaves the
    expected gradient as it is.

    Source: Ahmadian et al., "Back to Basics" (arXiv:2402.14740), the RLOO estimator; Kool et al.
    2019, "Buy 4 REINFORCE Samples, Get a Baseline for Free!".  Differs: returns the baseline, not
    the advantage.

    Args:
        rewards: (B,) with B = N * group_size; a group's completions are contiguous.
        group_size: completions per prompt, at least 2.
    Returns: (B,) baselines.
    Raises: ValueError if group_size is below 2 or B is not a multiple of it.
    """
    check_rank("rewards", rewards, "(B,)")
    B = rewards.shape[0]
    if group_size < 2:
        raise ValueError(
            f"group_size must be at least 2; got {group_size}. One reward has no others."
        )
    if B % group_size != 0:
        raise ValueError(f"rewards must hold whole groups of {group_size}; got B={B}.")

    groups = rewards.reshape(-1, group_size)
    others = groups.sum(dim=1, keepdim=True) - groups
    return (others / (group_size - 1)).reshape(B)
