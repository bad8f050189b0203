# SPDX-License-Identifier: MIT
"""Does a baseline make the policy gradient of a language model less noisy?

    python benchmarks/baseline_variance.py --output benchmarks/baseline_variance.json
    python benchmarks/baseline_variance.py --quick

A tiny transformer (102,912 parameters) imitates right additions of two two-digit numbers until 40 %
and then until 80 % of its sampled answers are right. At each of these fixed policies the variance
of the REINFORCE gradient, summed over all parameters, is measured for 64 completions in groups of G
per prompt: without baseline, with the mean reward of the group (which holds the completion's own
reward; not corrected by G / (G - 1)) and with the mean of the others (leave-one-out).

Rewards are 1 and 0. "shift c" means 1 + c and c and no baseline: the same task, the same best
policy, the same expected gradient. A constant baseline b is a shift by -b.

About 5 minutes on one core; --quick takes 20 seconds.
"""

import copy
import sys
import time
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from itertools import islice
from typing import Any

import torch
from report import interval, parser, publish, versions
from rich.console import Console
from rich.progress import Progress
from rich.table import Table
from torch import Tensor

from policylab.advantages import leave_one_out_baseline
from policylab.logprobs import completion_logprobs
from policylab.model import GPT, GPTConfig
from policylab.rollout import collect_rollout
from policylab.tasks import Addition
from policylab.tokenizer import CharTokenizer
from policylab.trainers import ImitateConfig, imitate_until

TASK, TOKENIZER = Addition(digits=2), CharTokenizer()
MAX_NEW_TOKENS = 5
MOST = 16  # completions sampled for each prompt
GROUP_SIZES = (2, 4, 8, MOST)
BATCH = 64
SHIFTS = (-1.0, -0.5, -0.25, 0.0, 0.25, 0.5, 1.0)


@dataclass(frozen=True)
class Settings:
    """How much is measured.

    Args:
        seeds: how many imitators.
        success: shares of right answers at which each imitator is measured, in rising order.
        prompts: prompts with 16 completions each.
    """

    seeds: int = 5
    success: tuple[float, ...] = (0.4, 0.8)
    prompts: int = 400


QUICK = Settings(seeds=2, success=(0.4,), prompts=60)


def imitators(seed: int, success: tuple[float, ...]) -> Iterator[GPT]:
    """Train one imitator and yield a copy at each share of right answers, in rising order."""
    generator = torch.Generator().manual_seed(seed)
    model = GPT(GPTConfig(max_length=12), generator=generator)
    for share in success:
        for _ in imitate_until(
            model,
            TASK,
            TOKENIZER,
            ImitateConfig(steps=2000, batch_size=64),
            success=share,
            every=10,
            max_new_tokens=MAX_NEW_TOKENS,
            generator=generator,
        ):
            pass
        yield copy.deepcopy(model)


def completion_gradients(model: GPT, generator: torch.Generator, prompts: int) -> Iterator[Any]:
    """Sample MOST completions for each prompt.

    Yields: rewards (MOST,) and the gradients of log π of each completion, (MOST, parameters).
    """
    parameters = list(model.parameters())
    for problem in islice(TASK.problems("train", generator), prompts):
        rollout = collect_rollout(
            model,
            TASK,
            TOKENIZER,
            [problem],
            group_size=MOST,
            max_new_tokens=MAX_NEW_TOKENS,
            generator=generator,
        )
        ids, mask = rollout.input_ids, rollout.completion_mask
        seq_logprobs = completion_logprobs(model(ids), ids, mask).sum(dim=1)
        gradients = torch.autograd.grad(
            seq_logprobs, parameters, grad_outputs=torch.eye(MOST), is_grads_batched=True
        )
        yield rollout.rewards, torch.cat([part.reshape(MOST, -1) for part in gradients], dim=1)


# An estimate of the gradient is a weighted mean of the completions' gradients. These weights, and
# sums of them, make every estimator here: the rewards, ones, and rewards minus leave-one-out.
REWARDS, ONES = 0, 1
LEAVE_ONE_OUT = {size: 2 + number for number, size in enumerate(GROUP_SIZES)}
WEIGHTS = 2 + len(GROUP_SIZES)


def weights(rewards: Tensor) -> Tensor:
    """Stack the weights of one prompt's completions: (MOST,) rewards in, (WEIGHTS, MOST) out."""
    others = [rewards - leave_one_out_baseline(rewards, size) for size in GROUP_SIZES]
    return torch.stack([rewards, torch.ones_like(rewards), *others]).double()


def estimators(group_size: int) -> dict[str, Tensor]:
    """Write each estimator as a sum of WEIGHTS."""
    one = torch.eye(WEIGHTS, dtype=torch.float64)
    others = one[LEAVE_ONE_OUT[group_size]]
    return {
        "leave one out": others,
        "group mean": (group_size - 1) / group_size * others,  # R - mean = (G - 1) / G * (R - b)
    } | {f"shift {shift:g}": one[REWARDS] + shift * one[ONES] for shift in SHIFTS}


class Moments:
    """First and second moments of the estimates of all estimators at once.

    Groups of one prompt are not independent, so products of means are estimated from pairs of
    different prompts.

    Args: size: number of parameters.
    """

    def __init__(self, size: int) -> None:
        self.prompts = 0
        self.total = torch.zeros(WEIGHTS, size, dtype=torch.float64)
        self.own = torch.zeros(WEIGHTS, WEIGHTS, dtype=torch.float64)
        self.group = {G: torch.zeros(WEIGHTS, WEIGHTS, dtype=torch.float64) for G in GROUP_SIZES}

    def add(self, rewards: Tensor, gradients: Tensor) -> None:
        """Take one prompt: rewards (MOST,) and gradients (MOST, parameters)."""
        gradients = gradients.double()
        products = gradients @ gradients.T  # (MOST, MOST)
        w = weights(rewards)
        self.prompts += 1
        self.total += w @ gradients / MOST
        self.own += w @ products @ w.T / MOST**2
        for G, group in self.group.items():
            for first in range(0, MOST, G):
                part = slice(first, first + G)
                inside = w[:, part] @ products[part, part] @ w[:, part].T / G**2
                group += inside * G / MOST

    def means(self) -> Tensor:
        """Inner products (WEIGHTS, WEIGHTS) of the expected estimates, without bias."""
        return (self.total @ self.total.T - self.own) / (self.prompts * (self.prompts - 1))

    def variance(self, estimator: Tensor, group_size: int, completions: int = BATCH) -> float:
        """Trace of the covariance of the estimate from so many completions."""
        spread = self.group[group_size] / self.prompts - self.means()
        return (estimator @ spread @ estimator).item() * group_size / completions

    def squared_mean(self, estimator: Tensor) -> float:
        """Squared length of the expected estimate; noise can make it negative."""
        return (estimator @ self.means() @ estimator).item()


def best_constant(rewards: Tensor, squares: Tensor) -> float:
    """Compute b* = E[R |u|²] / E[|u|²] from rewards R and squared lengths |u|² of gradients.

    Source: Greensmith et al. 2004, JMLR 5.  Differs: for one completion, not for a group.
    """
    return ((rewards * squares).sum() / squares.sum()).item()


def measure_variance(model: GPT, seed: int, prompts: int) -> dict[str, Any]:
    """Measure every estimator at one policy, on the same completions."""
    generator = torch.Generator().manual_seed(seed)
    moments = Moments(sum(parameter.numel() for parameter in model.parameters()))
    samples = []
    for rewards, gradients in completion_gradients(model, generator, prompts):
        samples.append(torch.stack([rewards, gradients.square().sum(dim=1)]))
        moments.add(rewards, gradients)
    rewards, squares = torch.cat(samples, dim=1)
    one = estimators(MOST)
    return {
        "seed": seed,
        "mean_reward": rounded(rewards.mean().item()),
        "best_constant": rounded(best_constant(rewards, squares)),
        "squared_length_right": rounded(squares[rewards == 1].mean().item()),
        "squared_length_wrong": rounded(squares[rewards == 0].mean().item()),
        "squared_mean": rounded(moments.squared_mean(one["leave one out"])),
        "squared_mean_of_difference": rounded(
            moments.squared_mean(one["shift 0"] - one["leave one out"])
        ),
        "variance": {
            str(size): {
                name: rounded(moments.variance(estimator, size))
                for name, estimator in estimators(size).items()
            }
            for size in GROUP_SIZES
        },
    }


def rounded(value: float) -> float:
    """Keep five digits: more are noise, and the file stays small."""
    return float(f"{value:.5g}")


def ratios(policies: list[dict[str, Any]]) -> dict[str, Any]:
    """Divide each variance by that of leave-one-out, seed by seed, and put an interval on it."""
    return {
        size: {
            name: interval(
                [
                    policy["variance"][size][name] / policy["variance"][size]["leave one out"]
                    for policy in policies
                ]
            )
            for name in policies[0]["variance"][size]
        }
        for size in policies[0]["variance"]
    }


def measure(settings: Settings) -> dict[str, Any]:
    """Run everything, with a progress bar on a terminal."""
    began = time.process_time()
    policies: dict[str, list[dict[str, Any]]] = {f"{share:g}": [] for share in settings.success}
    with Progress(console=Console(stderr=True)) as progress:
        bar = progress.add_task("policies", total=settings.seeds * len(policies))
        for seed in range(settings.seeds):
            models = imitators(seed, settings.success)
            for share, model in zip(policies, models, strict=True):
                policies[share].append(measure_variance(model, seed, settings.prompts))
                progress.advance(bar)
    return {
        "claim": "what a baseline does to the variance of a transformer's policy gradient",
        "settings": asdict(settings)
        | {"completions": BATCH, "group_sizes": GROUP_SIZES, "shifts": SHIFTS, "digits": 2},
        "versions": versions("torch"),
        "cpu_seconds": round(time.process_time() - began),
        "ratio_to_leave_one_out": {share: ratios(each) for share, each in policies.items()},
        "policies": policies,
    }


def tables(result: dict[str, Any]) -> Iterator[Table]:
    """Lay the ratios out for reading."""
    for share, sizes in result["ratio_to_leave_one_out"].items():
        policies = result["policies"][share]
        mean = sum(policy["mean_reward"] for policy in policies) / len(policies)
        best = sum(policy["best_constant"] for policy in policies) / len(policies)
        title = f"Variance / leave-one-out's; mean reward {mean:.2f}, best constant {best:.2f}"
        table = Table("estimator", *(f"G = {size}" for size in sizes), title=title)
        for name in sizes[str(MOST)]:
            values = (sizes[size][name] for size in sizes)
            table.add_row(name, *("{mean:.2f} ± {half_width:.2f}".format(**v) for v in values))
        yield table


def main(argv: list[str] | None = None) -> int:
    """Measure, print, and save where asked."""
    command = parser(__doc__)
    command.add_argument("--quick", action="store_true", help="two seeds, few prompts: a trial")
    options = command.parse_args(argv)
    return publish(options, lambda: measure(QUICK if options.quick else Settings()), tables)


if __name__ == "__main__":
    sys.exit(main())
