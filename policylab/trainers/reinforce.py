# SPDX-License-Identifier: MIT
"""REINFORCE on a verifier's rewards, with the other completions of a prompt as the baseline."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import islice
from typing import Any

import torch
from torch import Tensor

from policylab.advantages import leave_one_out_baseline
from policylab.logprobs import completion_logprobs
from policylab.losses import reinforce_loss
from policylab.masking import completion_lengths, masked_mean
from policylab.model import GPT
from policylab.rollout import Sampler, collect_rollout
from policylab.sampling import sample_completions
from policylab.tasks.task import Task
from policylab.tokenizer import CharTokenizer
from policylab.trainers.step import descend, warmed_up


@dataclass(frozen=True)
class ReinforceConfig:
    """Knobs of REINFORCE.

    Args:
        steps: rounds of sampling, one update each.
        prompts_per_step: N prompts a step.
        group_size: G completions a prompt.
        max_new_tokens: the most tokens of a completion, EOS included.
        temperature: of sampling, and of the log-probabilities in the loss.
        lr: AdamW's step size after the warm-up; AdamW's first steps are full ones whatever the
            gradient, so without a warm-up they can undo what imitation learned.
        warmup_steps: steps over which the step size grows from 0.
        max_grad_norm: longest gradient; longer ones are shortened.
    """

    steps: int = 150
    prompts_per_step: int = 32
    group_size: int = 16
    max_new_tokens: int = 6
    temperature: float = 1.0
    lr: float = 1e-3
    warmup_steps: int = 10
    max_grad_norm: float = 1.0


@dataclass(frozen=True)
class ReinforceRecord:
    """The metrics of one step, all of the completions sampled before its update.

    Args:
        step: number of the step, from 1.
        loss: what `reinforce_loss` gave.
        reward_mean: mean reward.
        completion_len: mean number of tokens, EOS included.
        entropy: mean of -log π over the sampled tokens in nats, an estimate of the entropy per
            token at the sampling temperature.
        grad_norm: length of the gradient before it is shortened.
    """

    step: int
    loss: float
    reward_mean: float
    completion_len: float
    entropy: float
    grad_norm: float


def train_reinforce(
    policy: GPT,
    task: Task[Any],
    tokenizer: CharTokenizer,
    config: ReinforceConfig,
    *,
    generator: torch.Generator,
    sample: Sampler = sample_completions,
    logprobs: Callable[..., Tensor] = completion_logprobs,
    baseline: Callable[[Tensor, int], Tensor] = leave_one_out_baseline,
    loss: Callable[[Tensor, Tensor, Tensor, Tensor], Tensor] = reinforce_loss,
) -> Iterator[ReinforceRecord]:
    """Train the policy in place; yield the metrics of each step.

    Source: Williams 1992 (see `reinforce_loss`) with the baseline of Ahmadian et al.
    (arXiv:2402.14740).  Differs: AdamW with a warm-up in place of plain ascent, and no KL term.

    Args:
        policy: on the generator's device.
        task: draws training problems and verifies answers.
        tokenizer: turns text into ids and back.
        config: the knobs.
        generator: draws problems and tokens.
        sample, logprobs, baseline, loss: the parts, as the library's functions of the defaults.
    Raises: FloatingPointError if the loss is not finite; the policy then is as it was before the
        step.
    """
    problems = task.problems("train", generator)
    optimizer = torch.optim.AdamW(
        policy.parameters(), lr=config.lr, betas=(0.9, 0.95), weight_decay=0.0
    )
    for step in range(1, config.steps + 1):
        # Rollout and reward: G completions of each prompt, each verified once.
        rollout = collect_rollout(
            policy,
            task,
            tokenizer,
            list(islice(problems, config.prompts_per_step)),
            group_size=config.group_size,
            max_new_tokens=config.max_new_tokens,
            temperature=config.temperature,
            generator=generator,
            sample=sample,
        )
        rewards, mask = rollout.rewards, rollout.completion_mask

        # Advantage: how much better than the other completions of the prompt.
        expected = baseline(rewards, config.group_size)

        # Loss.
        logits = policy(rollout.input_ids)
        token_logprobs = logprobs(logits, rollout.input_ids, mask, temperature=config.temperature)
        value = loss(token_logprobs, mask, rewards, expected)

        # Step.
        lr = warmed_up(config.lr, step, config.warmup_steps)
        grad_norm = descend(optimizer, value, lr=lr, max_grad_norm=config.max_grad_norm)
        yield ReinforceRecord(
            step=step,
            loss=value.item(),
            reward_mean=rewards.mean().item(),
            completion_len=completion_lengths(mask).float().mean().item(),
            entropy=-masked_mean(token_logprobs.detach(), mask).item(),
            grad_norm=grad_norm,
        )
