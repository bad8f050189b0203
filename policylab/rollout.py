# SPDX-License-Identifier: MIT
"""Rollouts: prompts, sampled completions and the verifier's rewards, as tensors of one batch."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import Any

import torch
from torch import Tensor

from policylab.model import GPT, IncrementalPolicy
from policylab.sampling import sample_completions
from policylab.tasks.task import Problem, Split, Task
from policylab.tokenizer import CharTokenizer

Sampler = Callable[..., tuple[Tensor, Tensor]]
"""A function with the signature of `sample_completions`."""


@dataclass(frozen=True)
class Rollout:
    """What one round of sampling gave.

    Args:
        input_ids: (B, L) prompts and completions.
        completion_mask: (B, T) bool, the completion is the last T of the L positions.
        rewards: (B,) one a completion.
        texts: the completions as text, without EOS.
    """

    input_ids: Tensor
    completion_mask: Tensor
    rewards: Tensor
    texts: tuple[str, ...]


def collect_rollout(
    model: GPT,
    task: Task[Problem],
    tokenizer: CharTokenizer,
    problems: Sequence[Problem],
    *,
    group_size: int = 1,
    max_new_tokens: int,
    temperature: float = 1.0,
    generator: torch.Generator,
    sample: Sampler = sample_completions,
) -> Rollout:
    """Sample `group_size` completions for each problem and verify them.

    Args:
        model: the policy, on the generator's device.
        task: writes the prompts and verifies the answers.
        tokenizer: turns text into ids and back.
        problems: N problems.
        group_size: G completions a problem; those of one problem are contiguous, B = N * G.
        max_new_tokens: the most tokens of a completion, EOS included.
        temperature: sampling temperature; close to 0 it takes the likeliest token.
        generator: draws the tokens.
        sample: as `sample_completions`.
    """
    repeated = [problem for problem in problems for _ in range(group_size)]
    prompts = tokenizer.left_padded([task.prompt(problem) for problem in repeated])
    prompts = prompts.to(generator.device)
    completion_ids, completion_mask = sample(
        IncrementalPolicy(model),
        prompts,
        max_new_tokens=max_new_tokens,
        eos_id=tokenizer.eos_id,
        pad_id=tokenizer.pad_id,
        temperature=temperature,
        generator=generator,
    )
    texts = tuple(tokenizer.decode(row) for row in completion_ids.tolist())
    solved = [float(task.verify(*pair)) for pair in zip(repeated, texts, strict=True)]
    return Rollout(
        input_ids=torch.cat([prompts, completion_ids], dim=1),
        completion_mask=completion_mask,
        rewards=torch.tensor(solved, device=generator.device),
        texts=texts,
    )


def success_rate(
    model: GPT,
    task: Task[Any],
    tokenizer: CharTokenizer,
    *,
    problems: int = 512,
    split: Split = "held_out",
    max_new_tokens: int,
    temperature: float = 1.0,
    seed: int = 0,
    sample: Sampler = sample_completions,
) -> float:
    """Measure the share of problems that one sampled completion each solves.

    Args:
        model: the policy.
        task: draws and verifies the problems.
        tokenizer: turns text into ids and back.
        problems: how many to draw.
        split: which problems, by default those that training never sees.
        max_new_tokens: the most tokens of a completion, EOS included.
        temperature: sampling temperature; 1e-4 is greedy decoding.
        seed: draws problems and tokens, so that two policies meet the same problems.
        sample: as `sample_completions`.
    Returns: a share from 0 to 1, with a standard error of sqrt(p * (1 - p) / problems).
    """
    where = next(model.parameters()).device
    drawn = list(islice(task.problems(split, torch.Generator().manual_seed(seed)), problems))
    rollout = collect_rollout(
        model,
        task,
        tokenizer,
        drawn,
        max_new_tokens=max_new_tokens,
        temperature=temperature,
        generator=torch.Generator(where).manual_seed(seed),
        sample=sample,
    )
    return rollout.rewards.mean().item()
