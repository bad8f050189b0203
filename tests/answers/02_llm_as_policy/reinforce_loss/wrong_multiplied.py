# multiplies by the mask, and NaN * 0 is NaN
# caught by: reinforce_loss_masked_nan
import torch


def reinforce_loss(logprobs, completion_mask, rewards, baseline=0.0):
    advantages = (rewards - baseline).detach()
    kept = logprobs * completion_mask
    return -(advantages * kept.sum(dim=1)).mean()
