# SPDX-License-Identifier: MIT
"""Addition with the answer's digits reversed: `12+34=` is answered `640`.

The least significant digit comes first, so that each digit follows from those already written and
one carry. Both summands and the answer have a fixed width.
"""

import hashlib
from collections.abc import Iterator
from dataclasses import dataclass

import torch

from policylab.tasks.task import Split


@dataclass(frozen=True)
class Sum:
    """The problem `a + b`."""

    a: int
    b: int


@dataclass(frozen=True)
class Addition:
    """Sums of two numbers of a fixed number of digits.

    Args:
        digits: digits of each summand, at least 1.
        noise: probability that the demonstrator replaces a digit by one drawn from all ten.
        held_out: share of the problems kept for evaluation; `a + b` and `b + a` go together.
    Raises: ValueError if a number is out of range.
    """

    digits: int = 2
    noise: float = 0.0
    held_out: float = 0.1

    def __post_init__(self) -> None:
        """Refuse numbers out of range."""
        if self.digits < 1:
            raise ValueError(f"digits must be at least 1; got {self.digits}.")
        if not 0 <= self.noise <= 1:
            raise ValueError(f"noise is a probability from 0 to 1; got {self.noise}.")
        if not 0 < self.held_out < 1:
            raise ValueError(f"held_out is a share between 0 and 1; got {self.held_out}.")

    def split_of(self, problem: Sum) -> Split:
        """Say which split a problem belongs to.

        A cryptographic hash decides: a rule of arithmetic could hold out a pattern instead of a
        sample, for example every sum that ends in 0.
        """
        low, high = sorted((problem.a, problem.b))
        digest = hashlib.blake2b(f"{self.digits}:{low}+{high}".encode(), digest_size=8).digest()
        share = int.from_bytes(digest, "big") / 2**64
        return "held_out" if share < self.held_out else "train"

    def problems(self, split: Split, generator: torch.Generator) -> Iterator[Sum]:
        """Draw problems of one split, uniformly and for ever.

        Raises: ValueError if the split is neither "train" nor "held_out".
        """
        if split not in ("train", "held_out"):
            raise ValueError(f"split must be 'train' or 'held_out'; got {split!r}.")
        return self._draw(split, generator)

    def _draw(self, split: Split, generator: torch.Generator) -> Iterator[Sum]:
        size = 10**self.digits
        while True:
            a, b = torch.randint(size, (2,), generator=generator, device=generator.device).tolist()
            problem = Sum(a, b)
            if self.split_of(problem) == split:
                yield problem

    def prompt(self, problem: Sum) -> str:
        """Write the problem, for example `12+34=`."""
        return f"{problem.a:0{self.digits}d}+{problem.b:0{self.digits}d}="

    def answer(self, problem: Sum) -> str:
        """Write the one right answer: digits + 1 digits, least significant first."""
        return f"{problem.a + problem.b:0{self.digits + 1}d}"[::-1]

    def demonstrate(self, problem: Sum, generator: torch.Generator) -> str:
        """Answer as a demonstrator who gets each digit wrong now and then.

        All digits are right with probability (1 - 0.9 * noise) ** (digits + 1).
        """
        answer = self.answer(problem)
        size = (len(answer),)
        where = generator.device
        slips = torch.rand(size, generator=generator, device=where) < self.noise
        others = torch.randint(10, size, generator=generator, device=where)
        return "".join(
            str(other) if slip else digit
            for digit, slip, other in zip(answer, slips.tolist(), others.tolist(), strict=True)
        )

    def verify(self, problem: Sum, text: str) -> bool:
        """Accept exactly the right answer: no spaces, no missing zero, nothing after it."""
        return text == self.answer(problem)
