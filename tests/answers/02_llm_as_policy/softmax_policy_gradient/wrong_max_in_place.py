# subtracts the maximum from the caller's logits in place
# caught by: softmax_policy_gradient_inputs_kept
import torch


def softmax_policy_gradient(logits, action, advantage):
    logits -= logits.max()
    taken = torch.zeros_like(logits)
    taken[action] = 1.0
    return advantage * (taken - torch.softmax(logits, dim=0))
