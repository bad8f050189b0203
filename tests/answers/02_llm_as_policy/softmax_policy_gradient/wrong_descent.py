# minus the gradient: adding it makes a good action rarer
# caught by: softmax_policy_gradient_value
import torch


def softmax_policy_gradient(logits, action, advantage):
    taken = torch.zeros_like(logits)
    taken[action] = 1.0
    return advantage * (torch.softmax(logits, dim=0) - taken)
