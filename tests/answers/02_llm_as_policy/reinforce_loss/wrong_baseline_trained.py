# gradient flows into the baseline
# caught by: reinforce_loss_detached
import torch


def reinforce_loss(logprobs, completion_mask, rewards, baseline=0.0):
    advantages = rewards.detach() - baseline
    kept = torch.where(completion_mask != 0, logprobs, 0.0)
    return -(advantages * kept.sum(dim=1)).mean()
