# wraps the number in a new tensor that requires grad
# caught by: reinforce_loss_gradient
import torch


def reinforce_loss(logprobs, completion_mask, rewards, baseline=0.0):
    advantages = (rewards - baseline).detach()
    kept = torch.where(completion_mask != 0, logprobs, 0.0)
    loss = -(advantages * kept.sum(dim=1)).mean()
    return torch.tensor(loss.item(), dtype=loss.dtype, requires_grad=True)
