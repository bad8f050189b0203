# returns the right number without a graph
# caught by: reinforce_loss_gradient
import torch


def reinforce_loss(logprobs, completion_mask, rewards, baseline=0.0):
    advantages = (rewards - baseline).detach()
    kept = torch.where(completion_mask != 0, logprobs.detach(), 0.0)
    return -(advantages * kept.sum(dim=1)).mean()
