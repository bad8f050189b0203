# SPDX-License-Identifier: MIT
"""Can a clone of demonstrators who make mistakes be better than they are?

    python benchmarks/noisy_demonstrator.py --output benchmarks/noisy_demonstrator.json
    python benchmarks/noisy_demonstrator.py --quick

Demonstrators of two-digit addition replace each digit of the answer, one time in three, by one
drawn from all ten. A tiny transformer imitates them and answers problems that it has not seen, once
by sampling and once greedily, the likeliest token each time. About 3 minutes on one core.
"""

import sys
import time
from collections.abc import Iterator
from typing import Any

import torch
from report import interval, parser, publish, versions
from rich.console import Console
from rich.progress import track
from rich.table import Table

from policylab.model import GPT, GPTConfig
from policylab.rollout import success_rate
from policylab.tasks import Addition
from policylab.tokenizer import CharTokenizer
from policylab.trainers import ImitateConfig, train_imitate

TASK, TOKENIZER = Addition(digits=2, noise=1 / 3), CharTokenizer()
GREEDY = 1e-4  # a temperature at which sampling takes the likeliest token


def demonstrators_share() -> float:
    """Share of demonstrations that are right: three digits, each drawn anew with p = noise."""
    return (1 - 0.9 * TASK.noise) ** (TASK.digits + 1)


def clone(seed: int, steps: int) -> dict[str, float]:
    """Imitate, then measure the share of right answers on 1,000 unseen problems."""
    generator = torch.Generator().manual_seed(seed)
    model = GPT(GPTConfig(max_length=12), generator=generator)
    for _ in train_imitate(model, TASK, TOKENIZER, ImitateConfig(steps=steps), generator=generator):
        pass
    return {
        name: round(
            success_rate(
                model, TASK, TOKENIZER, problems=1000, max_new_tokens=5, temperature=temperature
            ),
            3,
        )
        for name, temperature in (("sampled", 1.0), ("greedy", GREEDY))
    }


def measure(seeds: int, steps: int) -> dict[str, Any]:
    """Clone once a seed; a progress bar shows on a terminal."""
    began = time.process_time()
    bar = track(range(seeds), "clones", console=Console(stderr=True), transient=True)
    runs = [clone(seed, steps) for seed in bar]
    return {
        "claim": "a greedy clone can answer better than the demonstrators it imitates",
        "settings": {"seeds": seeds, "steps": steps, "noise": round(TASK.noise, 4)},
        "versions": versions("torch"),
        "cpu_seconds": round(time.process_time() - began),
        "demonstrators": round(demonstrators_share(), 4),
        "summary": {
            name: interval([run[name] for run in runs], with_range=True) for name in runs[0]
        },
        "runs": runs,
    }


def tables(result: dict[str, Any]) -> Iterator[Table]:
    """Lay the result out for reading."""
    table = Table("who", "share of right answers")
    table.add_row("demonstrators", f"{result['demonstrators']:.3f}")
    for name, value in result["summary"].items():
        table.add_row(f"clone, {name}", "{mean:.3f} ± {half_width:.3f}".format(**value))
    yield table


def main(argv: list[str] | None = None) -> int:
    """Measure, print, and save where asked."""
    command = parser(__doc__)
    command.add_argument("--quick", action="store_true", help="two seeds, 200 steps: a trial")
    options = command.parse_args(argv)
    seeds, steps = (2, 200) if options.quick else (5, 1000)
    return publish(options, lambda: measure(seeds, steps), tables)


if __name__ == "__main__":
    sys.exit(main())
