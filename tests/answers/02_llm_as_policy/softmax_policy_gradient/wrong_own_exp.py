# exp without subtracting the maximum overflows
# caught by: softmax_policy_gradient_stable
import torch


def softmax_policy_gradient(logits, action, advantage):
    taken = torch.zeros_like(logits)
    taken[action] = 1.0
    weights = logits.exp()
    return advantage * (taken - weights / weights.sum())
