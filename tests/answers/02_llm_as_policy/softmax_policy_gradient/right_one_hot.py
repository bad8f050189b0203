# a row of the identity matrix, and a softmax written out
import torch


def softmax_policy_gradient(logits, action, advantage):
    weights = (logits - logits.max()).exp()
    probs = weights / weights.sum()
    return advantage * (torch.eye(len(logits), dtype=logits.dtype)[action] - probs)
