# SPDX-License-Identifier: MIT
"""What do the numbers of the post the course grew out of show?

    python benchmarks/seed_post.py
    python benchmarks/seed_post.py --output benchmarks/seed_post.json
    python benchmarks/seed_post.py --seeds 5 --json

First our own code, with the same random draws in the same order, brings out the two numbers that
the post prints: 100.0 % accuracy of the reward model on its training pairs, 82.0 % final
probability of the best arm. Then it measures what they rest on: how often a label is wrong, what
the accuracy becomes with annotators who disagree, what the reward model needs at policy time, and
where the policy stands over many seeds and after more episodes.

The post's code: https://github.com/Pulkit12dhingra/RL_Agents (the book's errata page cites it).
About 25 seconds on one core.
"""

import itertools
import statistics
import sys
import time
from collections.abc import Iterator
from functools import partial
from typing import Any

import numpy as np
import pandas as pd
from preference_bandit import (
    EPISODES,
    MEAN_REWARD,
    NOISE,
    PAIRS,
    TRUE_REWARDS,
    Comparisons,
    NumpyBandit,
    accuracy,
    bradley_terry,
    collect_comparisons,
    fit_reward_model,
    fresh_sources,
    larger,
    posts_sources,
    scorer,
    train_policy,
)
from report import interval, parser, publish, versions
from rich.console import Console
from rich.progress import track
from rich.table import Table
from scipy.special import expit, ndtr

from policylab.bandit import BanditRecord

MORE_EPISODES = 3000
HELD_OUT_PAIRS = 1000
TEMPERATURES = (0.05, 0.1, 0.2, 0.4)
"""Of the annotators: P(first preferred) = sigmoid((first reward - second reward) / temperature)."""
REFERENCES = (0.0, 0.3, 0.45, MEAN_REWARD, 0.7, 0.85, 1.0)
"""What is subtracted from a pull before the reward model sees it; the post takes the true mean."""
SHOWN = (*range(0, 300, 10), *range(300, 3001, 100))
"""Episodes at which a curve is kept."""


def curve(records: Iterator[BanditRecord]) -> list[float]:
    """Keep the best arm's probability at the episodes SHOWN; before the first update it is 1/4."""
    probs = [1 / len(TRUE_REWARDS), *(record.best_arm_prob for record in records)]
    return [round(probs[episode], 4) for episode in SHOWN if episode < len(probs)]


def reproduce() -> dict[str, Any]:
    """Run the post's two experiments with its seeds, and the second one on to 3,000 episodes."""
    sources = posts_sources()
    bandit = NumpyBandit(sources.pulls)
    comparisons = collect_comparisons(bandit, sources.arms)
    model = fit_reward_model(comparisons)
    probs = curve(train_policy(sources, bandit, scorer(model), MORE_EPISODES))
    return {
        "training_accuracy": accuracy(model, comparisons),
        "labels_against_true_order": int(disagreements(comparisons).sum()),
        "best_arm_prob": probs[SHOWN.index(EPISODES)],
        "curve": probs,
    }


def disagreements(comparisons: Comparisons) -> pd.Series:
    """Mark the rows whose label is not the order of the arms' true rewards (arms are sorted)."""
    return (comparisons["first_arm"] > comparisons["second_arm"]) != (
        comparisons["first_preferred"] == 1
    )


def expected_disagreement() -> float:
    """Compute the share of labels against the true order.

    The difference of two pulls is normal with mean Δ and variance 2 * NOISE**2, so its sign is
    wrong with probability Φ(-Δ / (NOISE * √2)). Clipping keeps the order of two pulls.
    """
    pairs = itertools.combinations(TRUE_REWARDS, 2)
    return statistics.fmean(float(ndtr((low - high) / (NOISE * 2**0.5))) for low, high in pairs)


def accuracies(seed: int, temperature: float | None) -> dict[str, float]:
    """Fit on PAIRS comparisons and test on fresh ones, with annotators who agree (None) or not.

    Returns: accuracy on the training pairs, on held-out pairs, of the sign of the gap with nothing
        fitted, and the ceiling: the mean probability of the likelier label.
    """
    sources = fresh_sources(seed)
    bandit = NumpyBandit(sources.pulls)
    annotate = larger if temperature is None else bradley_terry(sources.policy, temperature)
    training = collect_comparisons(bandit, sources.arms, PAIRS, annotate)
    held_out = collect_comparisons(bandit, sources.arms, HELD_OUT_PAIRS, annotate)
    model = fit_reward_model(training)
    sign = (held_out["gap"] >= 0) == (held_out["first_preferred"] == 1)
    sure = expit(held_out["gap"].abs() / temperature) if temperature else np.ones(1)
    return {
        "training": accuracy(model, training),
        "held_out": accuracy(model, held_out),
        "sign_of_gap": float(sign.mean()),
        "ceiling": float(sure.mean()),
    }


def one_seed(seed: int) -> dict[str, Any]:
    """Repeat the post once with fresh draws, and once more for each variation of it.

    Each variation starts from the same draws; only what it varies differs.
    """

    def run(reference: float | None, episodes: int) -> tuple[list[float], Comparisons]:
        sources = fresh_sources(seed)
        bandit = NumpyBandit(sources.pulls)
        comparisons = collect_comparisons(bandit, sources.arms)
        score = float if reference is None else scorer(fit_reward_model(comparisons), reference)
        return curve(train_policy(sources, bandit, score, episodes)), comparisons

    probs, comparisons = run(MEAN_REWARD, MORE_EPISODES)
    raw, _ = run(None, MORE_EPISODES)
    return {
        "seed": seed,
        "curve": probs,
        "raw_reward": {"300": raw[SHOWN.index(300)], "3000": raw[-1]},
        "reference": {f"{ref:g}": run(ref, EPISODES)[0][-1] for ref in REFERENCES},
        "labels_against_true_order": int(disagreements(comparisons).sum()),
        "accuracy": {
            "agree" if temperature is None else f"{temperature:g}": accuracies(seed, temperature)
            for temperature in (None, *TEMPERATURES)
        },
    }


def summarise(runs: list[dict[str, Any]]) -> dict[str, Any]:
    """Put intervals over the seeds on what the runs measured."""
    at_300 = SHOWN.index(EPISODES)
    spread = partial(interval, with_range=True)
    return {
        "best_arm_prob": {
            "300": spread([run["curve"][at_300] for run in runs]),
            "3000": spread([run["curve"][-1] for run in runs]),
        },
        "raw_reward": {
            name: spread([run["raw_reward"][name] for run in runs]) for name in ("300", "3000")
        },
        "reference": {
            name: spread([run["reference"][name] for run in runs]) for name in runs[0]["reference"]
        },
        "accuracy": {
            name: {kind: spread([run["accuracy"][name][kind] for run in runs]) for kind in kinds}
            for name, kinds in runs[0]["accuracy"].items()
        },
        "labels_against_true_order": {
            "measured": sum(run["labels_against_true_order"] for run in runs) / (PAIRS * len(runs)),
            "expected": expected_disagreement(),
        },
    }


def measure(seeds: int) -> dict[str, Any]:
    """Run everything; a progress bar shows on a terminal."""
    started = time.process_time()
    post = reproduce()
    steps = track(range(seeds), "seeds", console=Console(stderr=True), transient=True)
    runs = [one_seed(seed) for seed in steps]
    return {
        "claim": "what the two numbers that the post prints show, and what they do not",
        "settings": {
            "seeds": seeds,
            "pairs": PAIRS,
            "held_out_pairs": HELD_OUT_PAIRS,
            "mean_reward": round(MEAN_REWARD, 6),
            "curve_episodes": SHOWN,
        },
        "versions": versions("numpy", "pandas", "scikit-learn", "scipy", "torch"),
        "cpu_seconds": round(time.process_time() - started, 1),
        "post": post,
        "summary": summarise(runs),
        "curves": [run["curve"] for run in runs],
    }


def tables(result: dict[str, Any]) -> Iterator[Table]:
    """Lay the result out for reading."""

    def shown(value: dict[str, float]) -> str:
        return "{mean:.3f} ± {half_width:.3f}  ({min:.3f} to {max:.3f})".format(**value)

    post, summary, seeds = result["post"], result["summary"], result["settings"]["seeds"]
    table = Table("printed in the post", "here", title="The post's numbers", title_justify="left")
    table.add_row("100.0 %", f"{post['training_accuracy']:.1%}")
    table.add_row("82.0 %", f"{post['best_arm_prob']:.1%}")
    yield table

    title = f"Best arm's probability, mean over {seeds} seeds ± 95 % interval (range)"
    table = Table("paid to the policy", "episodes", "probability", title=title)
    for paid, key in (("reward model's score", "best_arm_prob"), ("raw reward", "raw_reward")):
        for episodes, value in summary[key].items():
            table.add_row(paid, episodes, shown(value))
    for reference, value in summary["reference"].items():
        paid = f"score against {reference}"
        table.add_row(paid, str(EPISODES), shown(value))
    yield table

    table = Table("annotators", "training", "held out", "sign of the gap", "ceiling")
    for name, kinds in summary["accuracy"].items():
        who = "agree" if name == "agree" else f"temperature {name}"
        table.add_row(who, *(f"{kinds[kind]['mean']:.3f}" for kind in kinds))
    yield table


def main(argv: list[str] | None = None) -> int:
    """Measure, print, and save where asked."""
    command = parser(__doc__)
    command.add_argument("--seeds", type=int, default=20, help="repetitions, at least 2")
    options = command.parse_args(argv)
    if options.seeds < 2:
        command.error(f"--seeds must be at least 2 for an interval; got {options.seeds}.")
    return publish(options, lambda: measure(options.seeds), tables)


if __name__ == "__main__":
    sys.exit(main())
