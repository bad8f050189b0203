# leaves it to reshape, which raises RuntimeError
# caught by: leave_one_out_baseline_whole_groups
import torch


def leave_one_out_baseline(rewards, group_size):
    if group_size < 2:
        raise ValueError(f"group_size must be at least 2; got {group_size}")
    groups = rewards.reshape(-1, group_size)
    others = groups.sum(dim=1, keepdim=True) - groups
    return (others / (group_size - 1)).reshape(-1)
