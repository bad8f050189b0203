# averages the others of each completion in a loop
import torch


def leave_one_out_baseline(rewards, group_size):
    if group_size < 2:
        raise ValueError("a group of one has no others")
    if len(rewards) % group_size != 0:
        raise ValueError("the last group is not whole")
    result = torch.empty_like(rewards)
    for start in range(0, len(rewards), group_size):
        group = rewards[start : start + group_size]
        for i in range(group_size):
            result[start + i] = torch.cat([group[:i], group[i + 1 :]]).mean()
    return result
