# SPDX-License-Identifier: MIT
"""A softmax policy on a four-armed bandit: the smallest policy-gradient run there is.

The setting (four tiers of response quality, the step size, the moving baseline) is that of the blog
post the course starts from, which the book's chapter 02 cites.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Protocol

import torch
from torch import Tensor

from policylab.exercise import exercise
from policylab.shapes import check_rank


class Bandit(Protocol):
    """Anything with arms that can be pulled."""

    @property
    def true_rewards(self) -> tuple[float, ...]:
        """The mean reward of each arm."""

    def pull(self, arm: int, generator: torch.Generator) -> float:
        """Return one noisy reward of an arm."""


@dataclass(frozen=True)
class FourArmedBandit:
    """Four tiers of response quality; a pull is the tier's reward plus Gaussian noise, in [0, 1].

    Args:
        noise: standard deviation of a pull, in reward units.
        true_rewards: mean reward of each arm before clipping, worst first.
    """

    noise: float = 0.05
    true_rewards: tuple[float, ...] = (0.20, 0.45, 0.72, 0.92)

    def pull(self, arm: int, generator: torch.Generator) -> float:
        """Return one noisy reward of an arm, clipped to [0, 1]."""
        noise = self.noise * torch.randn((), generator=generator, dtype=torch.float64).item()
        return min(max(self.true_rewards[arm] + noise, 0.0), 1.0)


@dataclass(frozen=True)
class BanditRecord:
    """One episode: what was pulled, what it paid, and where the policy stands after the update."""

    episode: int
    arm: int
    reward: float
    baseline: float
    best_arm_prob: float
    probs: tuple[float, ...]


@exercise("02_llm_as_policy")
def softmax_policy_gradient(logits: Tensor, action: int, advantage: float) -> Tensor:
    """Differentiate advantage * log π(action) with respect to the logits of a softmax policy.

    The result points uphill: add it to the logits, times a step size, and a good action becomes
    likelier.

    Source: Sutton and Barto 2018, "Reinforcement Learning: An Introduction", section 2.8, eq. 2.12.
    Differs: returns the direction alone, without step size; the caller subtracts the baseline.

    Args:
        logits: (A,) one preference an action.
        action: the action taken, 0 <= action < A.
        advantage: reward minus baseline, in reward units.
    Returns: (A,) the gradient, which sums to 0.
    Raises: ValueError if logits is not (A,) or there is no such action.
    """
    check_rank("logits", logits, "(A,)")
    if not 0 <= action < logits.shape[0]:
        raise ValueError(f"action must be at least 0 and below A={logits.shape[0]}; got {action}.")

    taken = torch.zeros_like(logits)
    taken[action] = 1.0
    return advantage * (taken - torch.softmax(logits, dim=0))


def sample_arm(probs: Tensor, generator: torch.Generator) -> int:
    """Draw an arm from the policy's probabilities (A,)."""
    return int(torch.multinomial(probs, 1, generator=generator).item())


def train_softmax_policy(
    bandit: Bandit,
    *,
    episodes: int = 300,
    lr: float = 0.08,
    baseline: float = 0.5,
    baseline_rate: float = 0.05,
    generator: torch.Generator,
    gradient: Callable[[Tensor, int, float], Tensor] = softmax_policy_gradient,
    score: Callable[[float], float] = float,
    choose: Callable[[Tensor, torch.Generator], int] = sample_arm,
) -> Iterator[BanditRecord]:
    """Train a softmax policy with one pull and one update an episode; yield a record for each.

    Args:
        bandit: the arms.
        episodes: number of pulls.
        lr: step size on the logits.
        baseline: where the moving baseline starts, in reward units.
        baseline_rate: the share of the gap to each new reward that the baseline closes.
        generator: the source of randomness for arms and pulls.
        gradient: the ascent direction, as `softmax_policy_gradient`.
        score: what the policy sees of a pull; a reward model goes here.
        choose: draws an arm from the probabilities (A,).
    """
    logits = torch.zeros(len(bandit.true_rewards), dtype=torch.float64)
    best = max(range(len(logits)), key=lambda arm: bandit.true_rewards[arm])
    for episode in range(1, episodes + 1):
        arm = choose(torch.softmax(logits, dim=0), generator)
        reward = score(bandit.pull(arm, generator))
        logits = logits + lr * gradient(logits, arm, reward - baseline)
        baseline += baseline_rate * (reward - baseline)
        probs = tuple(torch.softmax(logits, dim=0).tolist())
        yield BanditRecord(episode, arm, reward, baseline, probs[best], probs)
