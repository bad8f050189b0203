# a row has ended only at the step of its EOS, then it resumes
# caught by: sample_completions_eos_mask
import torch


def sample_completions(
    policy, prompt_ids, *, max_new_tokens, eos_id, pad_id, temperature=1.0, generator
):
    B, P = prompt_ids.shape
    ids = prompt_ids
    ended = torch.zeros(B, dtype=torch.bool)
    columns = []
    for _ in range(max_new_tokens):
        with torch.no_grad():
            logits = policy(ids)[:, -1]
        probs = torch.softmax(logits.float() / temperature, dim=-1)
        sampled = torch.multinomial(probs, 1, generator=generator)[:, 0]
        tokens = torch.where(ended, pad_id, sampled)
        columns.append(~ended)
        ended = tokens == eos_id
        ids = torch.cat([ids, tokens[:, None]], dim=1)
        if ended.all():
            break
    return ids[:, P:], torch.stack(columns, dim=1)
