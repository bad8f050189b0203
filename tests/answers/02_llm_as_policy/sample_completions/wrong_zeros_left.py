# a tensor made in advance keeps zeros where all rows had ended
# caught by: sample_completions_all_ended
import torch


def sample_completions(
    policy, prompt_ids, *, max_new_tokens, eos_id, pad_id, temperature=1.0, generator
):
    B, P = prompt_ids.shape
    buffer = torch.zeros(B, P + max_new_tokens, dtype=torch.long)
    buffer[:, :P] = prompt_ids
    mask = torch.zeros(B, max_new_tokens, dtype=torch.bool)
    ended = torch.zeros(B, dtype=torch.bool)
    for step in range(max_new_tokens):
        logits = policy(buffer[:, : P + step])[:, -1]
        probs = torch.softmax(logits / temperature, dim=-1)
        sampled = torch.multinomial(probs, 1, generator=generator)[:, 0]
        buffer[:, P + step] = torch.where(ended, pad_id, sampled)
        mask[:, step] = ~ended
        ended |= sampled == eos_id
        if ended.all():
            break
    return buffer[:, P:], mask
