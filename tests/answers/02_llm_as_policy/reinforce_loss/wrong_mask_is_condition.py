# a mask of numbers is no condition for torch.where
# caught by: reinforce_loss_mask_numbers
import torch


def reinforce_loss(logprobs, completion_mask, rewards, baseline=0.0):
    advantages = (rewards - baseline).detach()
    kept = torch.where(completion_mask, logprobs, 0.0)
    return -(advantages * kept.sum(dim=1)).mean()
