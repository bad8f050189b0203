# SPDX-License-Identifier: MIT
"""sample_completions: where rows end, what is drawn, and from which distribution."""

import pytest
import torch

from policylab.logprobs import completion_logprobs
from policylab.model import GPT, GPTConfig
from policylab.sampling import sample_completions


class Script:
    """A policy that writes given tokens, whatever is drawn: all other logits are -inf."""

    def __init__(self, rows, prompt_length, vocab_size=8):
        self.rows = rows
        self.prompt_length = prompt_length
        self.vocab_size = vocab_size
        self.calls = []

    def __call__(self, ids):
        self.calls.append(ids.clone())
        step = ids.shape[1] - self.prompt_length
        logits = torch.full((*ids.shape, self.vocab_size), -float("inf"))
        for b, row in enumerate(self.rows):
            logits[b, :, row[min(step, len(row) - 1)]] = 0.0
        return logits


def run(rows, *, prompt=None, max_new_tokens=4, eos_id=1, pad_id=0, **options):
    prompt = torch.full((len(rows), 2), 5) if prompt is None else prompt
    policy = Script(rows, prompt.shape[1])
    ids, mask = sample_completions(
        policy,
        prompt,
        max_new_tokens=max_new_tokens,
        eos_id=eos_id,
        pad_id=pad_id,
        generator=torch.Generator().manual_seed(0),
        **options,
    )
    return ids, mask, policy


def test_rows_end_at_their_first_eos_which_the_mask_includes():
    ids, mask, _ = run([[2, 1, 3, 3], [4, 5, 6, 1], [3, 3, 3, 3]])
    assert ids.tolist() == [[2, 1, 0, 0], [4, 5, 6, 1], [3, 3, 3, 3]]
    assert mask.int().tolist() == [[1, 1, 0, 0], [1, 1, 1, 1], [1, 1, 1, 1]]
    assert ids.dtype == torch.int64 and mask.dtype == torch.bool


def test_pad_equal_to_eos_keeps_the_real_eos():
    ids, mask, _ = run([[2, 1, 3], [4, 5, 1]], max_new_tokens=3, pad_id=1)
    assert ids.tolist() == [[2, 1, 1], [4, 5, 1]]
    assert mask.int().tolist() == [[1, 1, 0], [1, 1, 1]]


def test_a_sampled_pad_before_the_eos_is_an_ordinary_token():
    ids, mask, _ = run([[0, 0, 1, 3]])
    assert ids[0, :3].tolist() == [0, 0, 1]
    assert mask[0].int().tolist()[:3] == [1, 1, 1]


def test_an_eos_in_the_prompt_ends_nothing():
    ids, mask, _ = run([[2, 3]], prompt=torch.tensor([[1, 1, 5]]), max_new_tokens=2)
    assert ids.tolist() == [[2, 3]]
    assert mask.all()


def test_the_policy_sees_the_prompt_and_all_tokens_so_far():
    _, _, policy = run([[2, 1], [3, 4]], max_new_tokens=3)
    assert [call.tolist() for call in policy.calls] == [
        [[5, 5], [5, 5]],
        [[5, 5, 2], [5, 5, 3]],
        [[5, 5, 2, 1], [5, 5, 3, 4]],
    ]


def test_sampling_stops_when_every_row_has_ended():
    ids, mask, policy = run([[1], [2, 1]], max_new_tokens=40)
    assert ids.shape == mask.shape == (2, 2)
    assert len(policy.calls) == 2


def test_one_new_token():
    ids, mask, _ = run([[2], [1]], max_new_tokens=1)
    assert ids.tolist() == [[2], [1]]
    assert mask.all()


@pytest.mark.parametrize("temperature", [0.5, 1.0, 2.0])
def test_tokens_follow_the_softmax_at_the_temperature(temperature):
    logits = torch.tensor([0.0, 1.0, -1.0, 2.0])
    n = 20_000
    ids, _ = sample_completions(
        lambda ids: logits.expand(*ids.shape, 4),
        torch.zeros(n, 1, dtype=torch.long),
        max_new_tokens=1,
        eos_id=99,
        pad_id=0,
        temperature=temperature,
        generator=torch.Generator().manual_seed(7),
    )
    weights = (logits.double() / temperature).exp()
    probs = weights / weights.sum()
    shares = torch.bincount(ids[:, 0], minlength=4) / n
    # Five standard errors of each share.
    assert ((shares - probs).abs() < 5 * (probs * (1 - probs) / n).sqrt()).all()


def test_a_token_depends_on_the_one_before_it_and_rows_on_themselves():
    # The policy repeats the last token with probability 0.9, else writes one of two others.
    def policy(ids):
        same = torch.nn.functional.one_hot(ids, 3).double()
        return torch.where(same == 1, 0.9, 0.05).log()

    n = 20_000
    prompts = torch.arange(n)[:, None] % 3
    ids, _ = sample_completions(
        policy,
        prompts,
        max_new_tokens=2,
        eos_id=99,
        pad_id=0,
        generator=torch.Generator().manual_seed(3),
    )
    for before, after in [(prompts[:, 0], ids[:, 0]), (ids[:, 0], ids[:, 1])]:
        share = (before == after).double().mean().item()
        assert abs(share - 0.9) < 5 * (0.9 * 0.1 / n) ** 0.5


def test_only_the_generator_is_used():
    def draw(seed):
        return sample_completions(
            lambda ids: torch.zeros(*ids.shape, 8),
            torch.zeros(4, 1, dtype=torch.long),
            max_new_tokens=6,
            eos_id=99,
            pad_id=0,
            generator=torch.Generator().manual_seed(seed),
        )[0]

    state = torch.random.get_rng_state()
    first = draw(1)
    assert torch.equal(torch.random.get_rng_state(), state)
    torch.manual_seed(123)
    try:
        assert torch.equal(draw(1), first)
    finally:
        torch.random.set_rng_state(state)
    assert not torch.equal(draw(2), first)


def test_the_policy_is_called_without_gradients_and_prompts_stay_as_they_were():
    weight = torch.zeros(8, requires_grad=True)
    enabled = []

    def policy(ids):
        enabled.append(torch.is_grad_enabled())
        return weight.expand(*ids.shape, 8)

    prompts = torch.full((2, 3), 4)
    sample_completions(
        policy,
        prompts,
        max_new_tokens=2,
        eos_id=99,
        pad_id=0,
        generator=torch.Generator().manual_seed(0),
    )
    assert enabled == [False, False]
    assert torch.is_grad_enabled()
    assert torch.equal(prompts, torch.full((2, 3), 4))


def test_samples_are_likelier_under_the_policy_that_drew_them_than_under_another():
    mine, other = (
        GPT(GPTConfig(layers=1, width=16), generator=torch.Generator().manual_seed(s))
        for s in (0, 1)
    )
    prompts = torch.full((256, 3), 4)
    ids, mask = sample_completions(
        mine,
        prompts,
        max_new_tokens=5,
        eos_id=1,
        pad_id=0,
        generator=torch.Generator().manual_seed(0),
    )
    full = torch.cat([prompts, ids], dim=1)
    with torch.no_grad():
        scores = [completion_logprobs(model(full), full, mask).sum() for model in (mine, other)]
    assert scores[0] > scores[1]


@pytest.mark.parametrize(
    ("prompt", "options", "name"),
    [
        (torch.zeros(3, dtype=torch.long), {}, "prompt_ids"),
        (torch.zeros(2, 3, dtype=torch.long), {"max_new_tokens": 0}, "max_new_tokens"),
        (torch.zeros(2, 3, dtype=torch.long), {"temperature": 0.0}, "temperature"),
    ],
)
def test_arguments_out_of_range_raise_value_error(prompt, options, name):
    arguments = {"max_new_tokens": 2, "eos_id": 1, "pad_id": 0, "temperature": 1.0} | options
    with pytest.raises(ValueError, match=name):
        sample_completions(
            lambda ids: torch.zeros(*ids.shape, 4),
            prompt,
            generator=torch.Generator(),
            **arguments,
        )
