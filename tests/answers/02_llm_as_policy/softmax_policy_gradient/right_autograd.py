# lets autograd differentiate advantage times the log-probability
import torch


def softmax_policy_gradient(logits, action, advantage):
    leaf = logits.detach().clone().requires_grad_()
    (advantage * torch.log_softmax(leaf, dim=0)[action]).backward()
    return leaf.grad
