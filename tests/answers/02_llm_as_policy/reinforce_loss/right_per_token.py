# weights each token and divides by B
import torch


def reinforce_loss(logprobs, completion_mask, rewards, baseline=0.0):
    with torch.no_grad():
        weights = (rewards - baseline) / len(rewards)
    kept = logprobs.masked_fill(~completion_mask.bool(), 0)
    return -(weights[:, None] * kept).sum()
