# the minus sign is missing: an optimizer would make good completions rarer
# caught by: reinforce_loss_value
import torch


def reinforce_loss(logprobs, completion_mask, rewards, baseline=0.0):
    advantages = (rewards - baseline).detach()
    kept = torch.where(completion_mask != 0, logprobs, 0.0)
    return (advantages * kept.sum(dim=1)).mean()
