# one completion token at a time
import torch


def completion_logprobs(logits, input_ids, completion_mask, *, temperature=1.0):
    (B, T), L = completion_mask.shape, logits.shape[1]
    dtype = torch.promote_types(logits.dtype, torch.float32)
    rows = []
    for b in range(B):
        row = []
        for t in range(T):
            position = L - T + t
            if completion_mask[b, t]:
                scores = logits[b, position - 1].to(dtype) / temperature
                row.append(scores.log_softmax(0)[input_ids[b, position]])
            else:
                row.append(torch.zeros((), dtype=dtype))
        rows.append(torch.stack(row))
    return torch.stack(rows)
