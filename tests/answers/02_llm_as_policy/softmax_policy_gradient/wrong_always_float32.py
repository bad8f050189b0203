# float64 logits are rounded to float32
# caught by: softmax_policy_gradient_float64
import torch


def softmax_policy_gradient(logits, action, advantage):
    logits = logits.float()
    taken = torch.zeros_like(logits)
    taken[action] = 1.0
    return advantage * (taken - torch.softmax(logits, dim=0))
