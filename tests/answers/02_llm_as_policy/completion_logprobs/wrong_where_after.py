# torch.where after the log-softmax only: the gradient at masked places is NaN
# caught by: completion_logprobs_masked_gradient
import torch


def completion_logprobs(logits, input_ids, completion_mask, *, temperature=1.0):
    L, T = logits.shape[1], completion_mask.shape[1]
    keep = completion_mask != 0
    scores = logits[:, L - T - 1 : L - 1]
    tokens = input_ids[:, L - T :]
    scores = scores.to(torch.promote_types(scores.dtype, torch.float32)) / temperature
    logprobs = torch.log_softmax(scores, dim=-1).gather(-1, tokens[..., None]).squeeze(-1)
    return torch.where(keep, logprobs, 0.0)
