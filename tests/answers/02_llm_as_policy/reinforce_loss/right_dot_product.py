# a dot product of detached advantages and summed log-probabilities
import torch


def reinforce_loss(logprobs, completion_mask, rewards, baseline=0.0):
    if isinstance(baseline, torch.Tensor):
        baseline = baseline.detach()
    advantages = rewards.detach() - baseline
    totals = torch.stack(
        [row[keep.bool()].sum() for row, keep in zip(logprobs, completion_mask)]
    )
    return advantages.dot(totals) / -len(totals)
