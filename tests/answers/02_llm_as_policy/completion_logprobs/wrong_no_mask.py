# the mask is not used
# caught by: completion_logprobs_mask
import torch


def completion_logprobs(logits, input_ids, completion_mask, *, temperature=1.0):
    L, T = logits.shape[1], completion_mask.shape[1]
    scores = logits[:, L - T - 1 : L - 1]
    scores = scores.to(torch.promote_types(scores.dtype, torch.float32)) / temperature
    tokens = input_ids[:, L - T :]
    return torch.log_softmax(scores, dim=-1).gather(-1, tokens[..., None]).squeeze(-1)
