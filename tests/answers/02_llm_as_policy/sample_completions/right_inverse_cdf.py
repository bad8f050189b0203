# a uniform number a row, looked up in the cumulative probabilities; runs on to the end
import torch


@torch.no_grad()
def sample_completions(
    policy, prompt_ids, *, max_new_tokens, eos_id, pad_id, temperature=1.0, generator
):
    B, P = prompt_ids.shape
    ids = torch.full((B, P + max_new_tokens), pad_id)
    ids[:, :P] = prompt_ids
    mask = torch.zeros(B, max_new_tokens, dtype=torch.bool)
    alive = torch.ones(B, dtype=torch.bool)
    for step in range(max_new_tokens):
        logits = policy(ids[:, : P + step])[:, -1].double()
        cumulative = torch.softmax(logits / temperature, dim=-1).cumsum(dim=-1)
        u = torch.rand(B, 1, generator=generator, dtype=torch.float64) * cumulative[:, -1:]
        tokens = torch.searchsorted(cumulative, u, right=True)[:, 0]
        ids[alive, P + step] = tokens[alive]
        mask[:, step] = alive
        alive &= tokens != eos_id
    return ids[:, P:], mask
