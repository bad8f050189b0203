# SPDX-License-Identifier: MIT
"""Imitation: maximise the likelihood of a demonstrator's answers. The warm start of the others."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import islice
from typing import Any

import torch
from torch import Tensor

from policylab.logprobs import completion_logprobs
from policylab.masking import masked_mean
from policylab.model import GPT
from policylab.rollout import Sampler, success_rate
from policylab.sampling import sample_completions
from policylab.tasks.task import Task
from policylab.tokenizer import CharTokenizer
from policylab.trainers.step import descend, warmed_up


@dataclass(frozen=True)
class ImitateConfig:
    """Knobs of imitation.

    Args:
        steps: updates.
        batch_size: demonstrations an update.
        lr: AdamW's step size after the warm-up.
        warmup_steps: steps over which the step size grows from 0.
        max_grad_norm: longest gradient; longer ones are shortened.
    """

    steps: int = 1000
    batch_size: int = 128
    lr: float = 3e-3
    warmup_steps: int = 50
    max_grad_norm: float = 1.0


@dataclass(frozen=True)
class ImitateRecord:
    """One update: its number from 1, and the mean of -log π over demonstrated tokens, in nats."""

    step: int
    loss: float


def train_imitate(
    policy: GPT,
    task: Task[Any],
    tokenizer: CharTokenizer,
    config: ImitateConfig,
    *,
    generator: torch.Generator,
    logprobs: Callable[..., Tensor] = completion_logprobs,
) -> Iterator[ImitateRecord]:
    """Train the policy in place on fresh demonstrations; yield a record an update.

    The caller decides when to stop: by `config.steps`, or earlier by what it measures.

    Args:
        policy: on the generator's device.
        task: draws training problems and demonstrates them.
        tokenizer: turns text into ids.
        config: the knobs.
        generator: draws problems and demonstrations.
        logprobs: as `completion_logprobs`.
    """
    where = generator.device
    problems = task.problems("train", generator)
    optimizer = torch.optim.AdamW(policy.parameters(), lr=config.lr, betas=(0.9, 0.95))
    for step in range(1, config.steps + 1):
        batch = list(islice(problems, config.batch_size))
        prompts = tokenizer.left_padded([task.prompt(problem) for problem in batch])
        completions, mask = tokenizer.right_padded(
            [task.demonstrate(problem, generator) for problem in batch]
        )
        input_ids = torch.cat([prompts, completions], dim=1).to(where)
        mask = mask.to(where)
        loss = -masked_mean(logprobs(policy(input_ids), input_ids, mask), mask)
        lr = warmed_up(config.lr, step, config.warmup_steps)
        descend(optimizer, loss, lr=lr, max_grad_norm=config.max_grad_norm)
        yield ImitateRecord(step, loss.item())


def imitate_until(
    policy: GPT,
    task: Task[Any],
    tokenizer: CharTokenizer,
    config: ImitateConfig,
    *,
    success: float,
    every: int = 50,
    max_new_tokens: int = 6,
    generator: torch.Generator,
    logprobs: Callable[..., Tensor] = completion_logprobs,
    sample: Sampler = sample_completions,
) -> Iterator[ImitateRecord]:
    """Imitate until the policy solves a share of training problems, or `config.steps` are over.

    How many updates a share takes differs between seeds by a factor of ten, so a start of known
    strength is one that was measured.

    Args:
        policy, task, tokenizer, config, generator, logprobs: as in `train_imitate`.
        success: the share to reach, of 256 training problems, one sampled completion each.
        every: updates between measurements.
        max_new_tokens: the most tokens of a completion, EOS included.
        sample: as `sample_completions`.
    """
    for record in train_imitate(
        policy, task, tokenizer, config, generator=generator, logprobs=logprobs
    ):
        yield record
        if record.step % every == 0:
            reached = success_rate(
                policy,
                task,
                tokenizer,
                problems=256,
                split="train",
                max_new_tokens=max_new_tokens,
                sample=sample,
            )
            if reached >= success:
                return
