# the token whose exponential clock rings first; the mask from a running count of EOS
import torch


def sample_completions(
    policy, prompt_ids, *, max_new_tokens, eos_id, pad_id, temperature=1.0, generator
):
    B, P = prompt_ids.shape
    ids = prompt_ids.clone()
    for _ in range(max_new_tokens):
        with torch.no_grad():
            probs = (policy(ids)[:, -1] / temperature).softmax(dim=-1).double()
        clocks = torch.empty_like(probs).exponential_(generator=generator)
        ids = torch.cat([ids, (probs / clocks).argmax(dim=-1, keepdim=True)], dim=1)
    completions = ids[:, P:]
    is_eos = (completions == eos_id).long()
    mask = (is_eos.cumsum(dim=1) - is_eos) == 0
    return completions.masked_fill(~mask, pad_id), mask
