# a group of one gets the baseline 0 instead of an error
# caught by: leave_one_out_baseline_too_small
import torch


def leave_one_out_baseline(rewards, group_size):
    if group_size < 2:
        return rewards * 0
    if len(rewards) % group_size:
        raise ValueError(f"{len(rewards)} rewards are no whole groups of {group_size}")
    groups = rewards.reshape(-1, group_size)
    others = groups.sum(dim=1, keepdim=True) - groups
    return (others / (group_size - 1)).reshape(-1)
