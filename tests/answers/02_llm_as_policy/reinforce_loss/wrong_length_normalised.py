# scales each completion by T over its length
# caught by: reinforce_loss_mask
import torch


def reinforce_loss(logprobs, completion_mask, rewards, baseline=0.0):
    advantages = (rewards - baseline).detach()
    kept = torch.where(completion_mask != 0, logprobs, 0.0)
    return -(advantages * kept.sum(dim=1) / (completion_mask != 0).sum(dim=1) * kept.shape[1]).mean()
