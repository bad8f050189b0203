# What a right answer looks like from outside: for answers that nobody thought about.
import torch


def shaped(args, options, value):
    shape = (len(args[1]), options["max_new_tokens"])
    ids = torch.full(shape, 0 if value != value else int(value))
    return ids, torch.full(shape, bool(value))
