# the number of actions is fixed at four
# caught by: softmax_policy_gradient_sizes
import torch


def softmax_policy_gradient(logits, action, advantage):
    taken = torch.zeros(4, dtype=logits.dtype)
    taken[action] = 1.0
    return advantage * (taken - torch.softmax(logits, dim=0))
