# divides by the temperature in half precision and converts after that
# caught by: completion_logprobs_half
import torch


def completion_logprobs(logits, input_ids, completion_mask, *, temperature=1.0):
    L, T = logits.shape[1], completion_mask.shape[1]
    keep = completion_mask != 0
    scores = torch.where(keep[..., None], logits[:, L - T - 1 : L - 1], 0.0)
    tokens = torch.where(keep, input_ids[:, L - T :], 0)
    scores = (scores / temperature).to(torch.promote_types(scores.dtype, torch.float32))
    logprobs = torch.log_softmax(scores, dim=-1).gather(-1, tokens[..., None]).squeeze(-1)
    return torch.where(keep, logprobs, 0.0)
