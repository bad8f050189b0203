# torch's cross-entropy, token by token, with the sign turned
import torch
from torch.nn import functional


def completion_logprobs(logits, input_ids, completion_mask, *, temperature=1.0):
    T = completion_mask.shape[1]
    keep = completion_mask.bool()
    scores = logits[:, :-1][:, -T:].masked_fill(~keep[..., None], 0)
    if scores.dtype != torch.float64:
        scores = scores.float()
    scores = (scores / temperature).transpose(1, 2)
    tokens = input_ids[:, -T:].masked_fill(~keep, 0)
    losses = functional.cross_entropy(scores, tokens, reduction="none")
    return (-losses).masked_fill(~keep, 0)
