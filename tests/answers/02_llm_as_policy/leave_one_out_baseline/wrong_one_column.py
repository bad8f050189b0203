# keeps the shape (N, G) of the groups
# caught by: leave_one_out_baseline_value
import torch


def leave_one_out_baseline(rewards, group_size):
    if group_size < 2:
        raise ValueError(f"group_size must be at least 2; got {group_size}")
    if len(rewards) % group_size:
        raise ValueError(f"{len(rewards)} rewards are no whole groups of {group_size}")
    groups = rewards.reshape(-1, group_size)
    others = groups.sum(dim=1, keepdim=True) - groups
    return (others / (group_size - 1))
