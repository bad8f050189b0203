# SPDX-License-Identifier: MIT
"""Rollouts keep groups together and score each completion once."""

import pytest
import torch

from policylab.model import GPT, GPTConfig
from policylab.rollout import collect_rollout, success_rate
from policylab.tasks import Addition, Sum
from policylab.tokenizer import CharTokenizer

TOKENIZER = CharTokenizer()
TASK = Addition()
MODEL = GPT(GPTConfig(layers=1, width=16), generator=torch.Generator().manual_seed(0))


def writes(*texts):
    """A sampler that writes the given texts, over and over."""

    def sample(policy, prompt_ids, **options):
        B = prompt_ids.shape[0]
        return TOKENIZER.right_padded([texts[b % len(texts)] for b in range(B)])

    return sample


def test_completions_of_a_problem_are_contiguous_and_each_is_verified():
    rollout = collect_rollout(
        MODEL,
        TASK,
        TOKENIZER,
        [Sum(12, 34), Sum(0, 1)],
        group_size=2,
        max_new_tokens=4,
        generator=torch.Generator(),
        sample=writes("640", "100"),
    )
    assert rollout.rewards.tolist() == [1.0, 0.0, 0.0, 1.0]
    assert rollout.texts == ("640", "100", "640", "100")
    assert [TOKENIZER.decode(row) for row in rollout.input_ids] == [
        "12+34=640",
        "12+34=100",
        "00+01=640",
        "00+01=100",
    ]
    assert rollout.completion_mask.shape == (4, 4)


def test_the_sampler_gets_the_task_in_tokens():
    seen = {}

    def sample(policy, prompt_ids, **options):
        seen.update(options, shape=tuple(policy(prompt_ids).shape))
        return TOKENIZER.right_padded(["1"] * prompt_ids.shape[0])

    source = torch.Generator()
    collect_rollout(
        MODEL,
        TASK,
        TOKENIZER,
        [Sum(1, 2)],
        group_size=3,
        max_new_tokens=5,
        temperature=0.7,
        generator=source,
        sample=sample,
    )
    assert seen == {
        "max_new_tokens": 5,
        "eos_id": 1,
        "pad_id": 0,
        "temperature": 0.7,
        "generator": source,
        "shape": (3, 6, 20),
    }


def test_success_rate_counts_right_answers_on_the_split():
    def oracle(policy, prompt_ids, **options):
        prompts = [TOKENIZER.decode(row) for row in prompt_ids]
        sums = [Sum(int(p[:2]), int(p[3:5])) for p in prompts]
        assert {TASK.split_of(s) for s in sums} == {"held_out"}
        half = [TASK.answer(s) if i % 2 else "" for i, s in enumerate(sums)]
        return TOKENIZER.right_padded(half)

    rate = success_rate(MODEL, TASK, TOKENIZER, problems=64, max_new_tokens=4, sample=oracle)
    assert rate == 0.5


def test_success_rate_repeats_with_the_seed_and_leaves_global_randomness():
    state = torch.random.get_rng_state()
    rates = [
        success_rate(MODEL, Addition(digits=1), TOKENIZER, problems=256, max_new_tokens=3, seed=s)
        for s in (1, 1)
    ]
    assert rates[0] == pytest.approx(rates[1], abs=0)
    assert torch.equal(torch.random.get_rng_state(), state)
