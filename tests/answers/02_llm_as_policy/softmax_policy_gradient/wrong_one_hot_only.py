# the softmax is not subtracted: the normaliser's gradient is missing
# caught by: softmax_policy_gradient_value
import torch


def softmax_policy_gradient(logits, action, advantage):
    taken = torch.zeros_like(logits)
    taken[action] = 1.0
    return advantage * taken
