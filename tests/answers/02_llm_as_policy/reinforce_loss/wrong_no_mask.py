# the mask is not used
# caught by: reinforce_loss_mask
import torch


def reinforce_loss(logprobs, completion_mask, rewards, baseline=0.0):
    advantages = (rewards - baseline).detach()
    kept = logprobs
    return -(advantages * kept.sum(dim=1)).mean()
