# float64 log-probabilities are rounded to float32
# caught by: reinforce_loss_float64
import torch


def reinforce_loss(logprobs, completion_mask, rewards, baseline=0.0):
    logprobs = logprobs.float()
    advantages = (rewards - baseline).detach().float()
    kept = torch.where(completion_mask != 0, logprobs, 0.0)
    return -(advantages * kept.sum(dim=1)).mean()
