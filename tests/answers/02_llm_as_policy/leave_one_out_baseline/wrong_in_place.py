# works in place on a view of the caller's rewards
# caught by: leave_one_out_baseline_inputs_kept
import torch


def leave_one_out_baseline(rewards, group_size):
    if group_size < 2:
        raise ValueError(f"group_size must be at least 2; got {group_size}")
    if len(rewards) % group_size:
        raise ValueError(f"{len(rewards)} rewards are no whole groups of {group_size}")
    groups = rewards.reshape(-1, group_size)
    others = groups.neg_().sub_(groups.sum(dim=1, keepdim=True))
    return (others / (group_size - 1)).reshape(-1)
