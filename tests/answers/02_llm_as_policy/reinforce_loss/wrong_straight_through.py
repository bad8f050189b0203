# the gradient of the probabilities instead of the log-probabilities
# caught by: reinforce_loss_gradient
import torch


def reinforce_loss(logprobs, completion_mask, rewards, baseline=0.0):
    advantages = (rewards - baseline).detach()
    kept = torch.where(completion_mask != 0, logprobs, 0.0)
    kept = kept.detach() + kept.exp() - kept.exp().detach()
    return -(advantages * kept.sum(dim=1)).mean()
