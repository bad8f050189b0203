# leaves one out of the whole batch, across prompts
# caught by: leave_one_out_baseline_groups
import torch


def leave_one_out_baseline(rewards, group_size):
    if group_size < 2:
        raise ValueError(f"group_size must be at least 2; got {group_size}")
    if len(rewards) % group_size:
        raise ValueError(f"{len(rewards)} rewards are no whole groups of {group_size}")
    return (rewards.sum() - rewards) / (len(rewards) - 1)
