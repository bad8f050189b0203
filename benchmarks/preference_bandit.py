# SPDX-License-Identifier: MIT
"""The setting of the post the course grew out of, in our own code.

Four arms, pairwise comparisons of noisy pulls, a reward model on the difference of two pulls, and a
softmax policy that is paid by it. With `posts_sources()` the random draws are those of the post, in
the same order: https://github.com/Pulkit12dhingra/RL_Agents.
"""

import statistics
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np
import pandas as pd
import torch
from scipy.special import expit
from sklearn.linear_model import LogisticRegression

from policylab.bandit import BanditRecord, FourArmedBandit, train_softmax_policy

TRUE_REWARDS = FourArmedBandit().true_rewards
MEAN_REWARD = statistics.fmean(TRUE_REWARDS)
NOISE = FourArmedBandit().noise
PAIRS, EPISODES = 80, 300

Comparisons: TypeAlias = pd.DataFrame
Annotator = Callable[[float, float], bool]
"""First and second reward in, whether the first is preferred."""


class NumpyBandit:
    """The four-armed bandit on NumPy's generator, so that its draws are those of the post.

    Args:
        random: the source of the pulls' noise, shared by comparisons and training.
    """

    true_rewards = TRUE_REWARDS

    def __init__(self, random: np.random.Generator) -> None:
        self.random = random

    def pull(self, arm: int, generator: torch.Generator | None = None) -> float:
        """Return one noisy reward of an arm, clipped to [0, 1]; torch's generator is not used."""
        return min(max(TRUE_REWARDS[arm] + self.random.normal(0.0, NOISE), 0.0), 1.0)


def larger(first: float, second: float) -> bool:
    """Prefer the larger of two rewards, as the post's annotators do without exception."""
    return first >= second


def bradley_terry(random: np.random.Generator, temperature: float) -> Annotator:
    """Make annotators who disagree.

    Source: Bradley and Terry 1952, "Rank Analysis of Incomplete Block Designs", Biometrika 39.
    """
    return lambda first, second: random.random() < expit((first - second) / temperature)


def collect_comparisons(
    bandit: NumpyBandit,
    arms: np.random.Generator,
    pairs: int = PAIRS,
    annotate: Annotator = larger,
) -> Comparisons:
    """Compare pulls of two different arms; one row a pair.

    Args:
        bandit: pulls first the first arm, then the second.
        arms: draws the arms; a second arm equal to the first is drawn again.
        pairs: number of rows.
        annotate: says which pull is preferred.
    Returns: columns first_arm, second_arm, gap (difference of the pulls, rounded to 3 digits as in
        the post) and first_preferred (0 or 1).
    """
    rows = []
    for _ in range(pairs):
        first, second = int(arms.choice(4)), int(arms.choice(4))
        while second == first:
            second = int(arms.choice(4))
        one, other = bandit.pull(first), bandit.pull(second)
        rows.append((first, second, round(one - other, 3), int(annotate(one, other))))
    return pd.DataFrame(rows, columns=["first_arm", "second_arm", "gap", "first_preferred"])


def fit_reward_model(comparisons: Comparisons) -> LogisticRegression:
    """Fit the post's reward model: one weight on the gap, one intercept."""
    model = LogisticRegression(max_iter=300)
    return model.fit(comparisons[["gap"]].to_numpy(), comparisons["first_preferred"].to_numpy())


def accuracy(model: LogisticRegression, comparisons: Comparisons) -> float:
    """Share of comparisons whose label the model predicts."""
    labels = comparisons["first_preferred"].to_numpy()
    return float(model.score(comparisons[["gap"]].to_numpy(), labels))


def scorer(model: LogisticRegression, reference: float = MEAN_REWARD) -> Callable[[float], float]:
    """Make the policy's reward: the model's probability that a pull beats a reference reward.

    It is the model's `predict_proba`, without its checks of the input, which cost most of the time.
    """
    weight, intercept = float(model.coef_[0, 0]), float(model.intercept_[0])
    return lambda pull: float(expit(weight * (pull - reference) + intercept))


@dataclass(frozen=True)
class Sources:
    """The three random sources of one repetition of the post."""

    pulls: np.random.Generator
    arms: np.random.Generator
    policy: np.random.Generator

    def choose(self, probs: torch.Tensor, generator: torch.Generator) -> int:
        """Draw an arm from probabilities (A,); NumPy checks that they sum to 1."""
        exact = probs.numpy()
        return int(self.policy.choice(len(exact), p=exact / exact.sum()))


def posts_sources() -> Sources:
    """Start the sources with the seeds of the post."""
    return Sources(*(np.random.default_rng(seed) for seed in (7, 3, 1)))


def fresh_sources(seed: int) -> Sources:
    """Start three independent sources for one of our seeds."""
    children = np.random.SeedSequence(seed).spawn(3)
    return Sources(*(np.random.default_rng(child) for child in children))


def train_policy(
    sources: Sources,
    bandit: NumpyBandit,
    score: Callable[[float], float] = float,
    episodes: int = EPISODES,
) -> Iterator[BanditRecord]:
    """Train the library's softmax policy on the post's draws."""
    return train_softmax_policy(
        bandit,
        episodes=episodes,
        generator=torch.Generator(),  # not used: pulls and arms come from `sources`
        score=score,
        choose=sources.choose,
    )
