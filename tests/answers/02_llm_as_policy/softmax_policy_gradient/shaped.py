# What a right answer looks like from outside: for answers that nobody thought about.
import torch


def shaped(args, options, value):
    return torch.full_like(args[0], value)
