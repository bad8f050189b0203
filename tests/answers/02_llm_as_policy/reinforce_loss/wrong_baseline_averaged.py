# a baseline of one number a completion is averaged first
# caught by: reinforce_loss_baseline_rows
import torch


def reinforce_loss(logprobs, completion_mask, rewards, baseline=0.0):
    advantages = (rewards - torch.as_tensor(baseline).mean()).detach()
    kept = torch.where(completion_mask != 0, logprobs, 0.0)
    return -(advantages * kept.sum(dim=1)).mean()
