# SPDX-License-Identifier: MIT
"""Does a baseline make REINFORCE on a language model learn better?

    python benchmarks/baseline_learning.py --output benchmarks/baseline_learning.json
    python benchmarks/baseline_learning.py --quick

The tiny transformer of baseline_variance.py, an imitator with 40 % right answers, is trained on by
a verifier's rewards, several times from the same start: with leave-one-out baselines, and without a
baseline for rewards written as 1 and 0, as 0 and -1, and as 2 and 1. The task and the best policy
are the same each time. Curves show the share of right answers, whatever the rewards.

The optimizer is plain gradient descent, because AdamW divides each parameter's gradient by its
recent size and so hides part of what its scale does; runs with AdamW, as in the course's trainer,
stand beside it. One step size an optimizer, chosen in a trial with two seeds: the largest of four
(.01 .03 .1 .3) and of two (3e-4, 1e-3) at which neither leave-one-out nor "1 and 0" lost what
imitation had learned. About 7 minutes on one core; --quick takes half a minute.
"""

import copy
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass, field
from functools import partial
from itertools import islice
from typing import Any

import torch
from baseline_variance import BATCH, MAX_NEW_TOKENS, TASK, TOKENIZER, imitators
from report import interval, parser, publish, versions
from rich.console import Console
from rich.progress import Progress
from rich.table import Table
from torch import Tensor

from policylab.advantages import leave_one_out_baseline
from policylab.logprobs import completion_logprobs
from policylab.losses import reinforce_loss
from policylab.model import GPT
from policylab.rollout import collect_rollout, success_rate
from policylab.trainers.step import descend

Baseline = Callable[[Tensor, int], Tensor]
GROUP_SIZE = 4


@dataclass(frozen=True)
class Settings:
    """How much is trained.

    Args:
        seeds: imitators, and runs of each kind.
        success: share of right answers of the start.
        steps: updates of a run, a multiple of block.
        block: updates over which the share of right answers is averaged.
        lr: step size for each optimizer.
    """

    seeds: int = 5
    success: float = 0.4
    steps: int = 300
    block: int = 20
    lr: dict[str, float] = field(default_factory=lambda: {"SGD": 0.03, "AdamW": 3e-4})


QUICK = Settings(seeds=2, steps=40)


def constant(value: float) -> Baseline:
    """Make a baseline that is always `value`: rewards 1 - value and -value, and no baseline."""
    return lambda rewards, group_size: torch.full_like(rewards, value)


BASELINES: dict[str, Baseline] = {
    "leave one out": leave_one_out_baseline,
    "none, rewards 1 and 0": constant(0.0),
    "none, rewards 0 and -1": constant(1.0),
    "none, rewards 2 and 1": constant(-1.0),
}
OPTIMIZERS: dict[str, Callable[..., torch.optim.Optimizer]] = {
    "SGD": torch.optim.SGD,
    "AdamW": partial(torch.optim.AdamW, betas=(0.9, 0.95), weight_decay=0.0),
}


def steps(
    model: GPT, optimizer: torch.optim.Optimizer, baseline: Baseline, *, lr: float, seed: int
) -> Iterator[float]:
    """Train in place for ever, 64 completions a step; yield the share of right ones.

    Gradients are not shortened and there is no warm-up: what a baseline does to them shows.
    """
    generator = torch.Generator().manual_seed(seed)
    problems = TASK.problems("train", generator)
    while True:
        rollout = collect_rollout(
            model,
            TASK,
            TOKENIZER,
            list(islice(problems, BATCH // GROUP_SIZE)),
            group_size=GROUP_SIZE,
            max_new_tokens=MAX_NEW_TOKENS,
            generator=generator,
        )
        ids, mask = rollout.input_ids, rollout.completion_mask
        logprobs = completion_logprobs(model(ids), ids, mask)
        loss = reinforce_loss(
            logprobs, mask, rollout.rewards, baseline(rollout.rewards, GROUP_SIZE)
        )
        descend(optimizer, loss, lr=lr, max_grad_norm=float("inf"))
        yield rollout.rewards.mean().item()


def train(
    start: GPT, optimizer: str, baseline: str, seed: int, settings: Settings
) -> dict[str, Any]:
    """Train a copy of the start once; all kinds of one seed meet the same generator's seed."""
    model, lr = copy.deepcopy(start), settings.lr[optimizer]
    descent = OPTIMIZERS[optimizer](model.parameters(), lr=lr)
    every = steps(model, descent, BASELINES[baseline], lr=lr, seed=1000 + seed)
    shares = torch.tensor(list(islice(every, settings.steps)))
    blocks = shares.unflatten(0, (-1, settings.block)).mean(dim=1)
    return {
        "optimizer": optimizer,
        "baseline": baseline,
        "seed": seed,
        "success": [round(value, 3) for value in blocks.tolist()],
        "held_out": held_out(model),
    }


def held_out(model: GPT) -> float:
    """Share of right answers on 1,000 problems that no training saw, one sample each."""
    share = success_rate(model, TASK, TOKENIZER, problems=1000, max_new_tokens=MAX_NEW_TOKENS)
    return round(share, 3)


def summarise(runs: list[dict[str, Any]], starts: list[float]) -> dict[str, Any]:
    """Put 95 % t-intervals on the held-out share, and on its lead over leave-one-out by seed."""
    final = {(run["optimizer"], run["baseline"], run["seed"]): run["held_out"] for run in runs}
    seeds = range(len(starts))

    summary: dict[str, Any] = {"start": interval(starts)}
    for optimizer in OPTIMIZERS:
        summary[optimizer] = {}
        for name in BASELINES:
            values = [final[optimizer, name, seed] for seed in seeds]
            others = [final[optimizer, "leave one out", seed] for seed in seeds]
            lead = [value - other for value, other in zip(values, others, strict=True)]
            summary[optimizer][name] = {"held_out": interval(values), "lead": interval(lead)}
    return summary


def measure(settings: Settings) -> dict[str, Any]:
    """Run everything, with a progress bar on a terminal."""
    began = time.process_time()
    kinds = [(optimizer, baseline) for optimizer in OPTIMIZERS for baseline in BASELINES]
    runs, starts = [], []
    with Progress(console=Console(stderr=True)) as progress:
        bar = progress.add_task("runs", total=settings.seeds * len(kinds))
        for seed in range(settings.seeds):
            (start,) = imitators(seed, (settings.success,))
            starts.append(held_out(start))
            for optimizer, baseline in kinds:
                runs.append(train(start, optimizer, baseline, seed, settings))
                progress.advance(bar)
    return {
        "claim": "what a baseline does to REINFORCE's learning curve on a transformer",
        "settings": asdict(settings) | {"completions": BATCH, "group_size": GROUP_SIZE},
        "versions": versions("torch"),
        "cpu_seconds": round(time.process_time() - began),
        "summary": summarise(runs, starts),
        "start_held_out": starts,
        "runs": runs,
    }


def tables(result: dict[str, Any]) -> Iterator[Table]:
    """Lay the summary out for reading."""
    shown = "{mean:.3f} ± {half_width:.3f}"
    start = shown.format(**result["summary"]["start"])
    title = f"Held-out share of right answers after training; the start had {start}"
    table = Table("optimizer", "baseline", "held out", "lead over leave one out", title=title)
    for optimizer in OPTIMIZERS:
        for name, cells in result["summary"][optimizer].items():
            table.add_row(optimizer, name, *(shown.format(**cell) for cell in cells.values()))
    yield table


def main(argv: list[str] | None = None) -> int:
    """Measure, print, and save where asked."""
    command = parser(__doc__)
    command.add_argument("--quick", action="store_true", help="two seeds, 40 steps: a trial")
    options = command.parse_args(argv)
    return publish(options, lambda: measure(QUICK if options.quick else Settings()), tables)


if __name__ == "__main__":
    sys.exit(main())
