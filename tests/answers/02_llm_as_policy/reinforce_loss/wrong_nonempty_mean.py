# averages over the completions that have tokens
# caught by: reinforce_loss_empty_row
import torch


def reinforce_loss(logprobs, completion_mask, rewards, baseline=0.0):
    advantages = (rewards - baseline).detach()
    kept = torch.where(completion_mask != 0, logprobs, 0.0)
    return -(advantages * kept.sum(dim=1)).sum() / (completion_mask != 0).any(dim=1).sum()
