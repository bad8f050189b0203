# subtracts the baseline from the caller's rewards in place
# caught by: reinforce_loss_inputs_kept
import torch


def reinforce_loss(logprobs, completion_mask, rewards, baseline=0.0):
    advantages = rewards.detach()
    advantages -= torch.as_tensor(baseline).detach()
    kept = torch.where(completion_mask != 0, logprobs, 0.0)
    return -(advantages * kept.sum(dim=1)).mean()
