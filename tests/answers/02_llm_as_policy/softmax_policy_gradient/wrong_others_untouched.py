# only the taken action's entry is filled
# caught by: softmax_policy_gradient_value
import torch


def softmax_policy_gradient(logits, action, advantage):
    result = torch.zeros_like(logits)
    result[action] = advantage * (1 - torch.softmax(logits, dim=0)[action])
    return result
