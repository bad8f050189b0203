# the advantage multiplies the one-hot alone
# caught by: softmax_policy_gradient_advantage
import torch


def softmax_policy_gradient(logits, action, advantage):
    taken = torch.zeros_like(logits)
    taken[action] = 1.0
    return advantage * taken - torch.softmax(logits, dim=0)
