# SPDX-License-Identifier: MIT
"""What trainers ask of a task."""

from collections.abc import Iterator
from typing import Literal, Protocol, TypeVar

import torch

Split = Literal["train", "held_out"]
Problem = TypeVar("Problem")


class Task(Protocol[Problem]):
    """Problems, prompts, demonstrations and a verifier; all randomness is passed in."""

    def problems(self, split: Split, generator: torch.Generator) -> Iterator[Problem]:
        """Draw problems of a split for ever."""

    def prompt(self, problem: Problem) -> str:
        """Write a problem as the text the policy continues."""

    def demonstrate(self, problem: Problem, generator: torch.Generator) -> str:
        """Answer as a demonstrator would, mistakes included."""

    def verify(self, problem: Problem, text: str) -> bool:
        """Say whether a completion's text, without its EOS, solves the problem."""
