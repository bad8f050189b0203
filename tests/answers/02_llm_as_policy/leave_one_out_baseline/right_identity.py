# from the group mean: r - (r - mean) * G / (G - 1)
import torch


def leave_one_out_baseline(rewards, group_size):
    if group_size <= 1 or rewards.shape[0] % group_size > 0:
        raise ValueError("whole groups of at least two, please")
    mean = rewards.unflatten(0, (-1, group_size)).mean(dim=1).repeat_interleave(group_size)
    return rewards - (rewards - mean) * group_size / (group_size - 1)
