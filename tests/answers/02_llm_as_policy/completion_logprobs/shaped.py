# What a right answer looks like from outside: for answers that nobody thought about.
import torch


def shaped(args, options, value):
    return torch.full(args[2].shape, value, dtype=args[0].dtype, requires_grad=True)
