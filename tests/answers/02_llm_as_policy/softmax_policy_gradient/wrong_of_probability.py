# the gradient of the probability instead of its logarithm
# caught by: softmax_policy_gradient_value
import torch


def softmax_policy_gradient(logits, action, advantage):
    probs = torch.softmax(logits, dim=0)
    taken = torch.zeros_like(logits)
    taken[action] = 1.0
    return advantage * probs[action] * (taken - probs)
