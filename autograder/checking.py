# SPDX-License-Identifier: MIT
"""What the author of a hidden check imports: `check`, strict assertions, and seeded inputs.

A check is a pytest function with the fixtures `student`, `draw` and `process`.  What the student's
function returns is a claim: the assertions here look at type, dtype, shape and finiteness before
they compare values, so that a NaN, a subclass or a broadcast never passes for a right answer.
"""

import math
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TypeVar

import torch
from torch import Tensor

from autograder.errors import StudentError

__all__ = [
    "CheckSpec",
    "Draw",
    "assert_bool",
    "assert_float",
    "assert_gradient",
    "assert_tensor",
    "check",
    "check_id",
    "raises",
]

PREFIX = "test_"
T = TypeVar("T")


@dataclass(frozen=True)
class CheckSpec:
    """What a check says about itself.

    Args:
        cell: grade_id of the graded cell whose points it shares.
        title: the property, shown to the student; no hidden input, no expected value.
        share: weight among the checks of the same cell.
        hint: the likely slip, shown when the check does not pass.
        needs: ids of checks that must pass first; otherwise this one is skipped and earns nothing.
        fresh: load the submission anew instead of using a fork of the loaded state.
        timeout_s: seconds for the whole check; None takes the assignment's limit.
    """

    cell: str
    title: str
    share: float = 1.0
    hint: str = ""
    needs: tuple[str, ...] = ()
    fresh: bool = False
    timeout_s: float | None = None


def check(
    *,
    cell: str,
    title: str,
    share: float = 1.0,
    hint: str = "",
    needs: Sequence[str] = (),
    fresh: bool = False,
    timeout_s: float | None = None,
) -> Callable[[Callable[..., None]], Callable[..., None]]:
    """Mark a test function as a hidden check; its id is its name without `test_`."""
    if isinstance(needs, str):
        raise TypeError(f'needs must be a tuple of check ids; got {needs!r}. Write ("{needs}",).')
    if not (math.isfinite(share) and share >= 0):
        raise ValueError(f"share must be a number of at least 0; got {share}.")
    spec = CheckSpec(cell, title, float(share), hint, tuple(needs), fresh, timeout_s)

    def mark(function: Callable[..., None]) -> Callable[..., None]:
        check_id(function)  # refuses a name that pytest would not collect
        function.check_spec = spec  # type: ignore[attr-defined]
        return function

    return mark


def check_id(function: Callable[..., None]) -> str:
    """Return the id of a check: the function's name without `test_`."""
    name = function.__name__
    if not name.startswith(PREFIX):
        raise ValueError(f"a check's name must start with {PREFIX!r}; got {name!r}.")
    return name.removeprefix(PREFIX)


def assert_tensor(
    actual: object,
    expected: Tensor,
    *,
    rtol: float | None = None,
    atol: float | None = None,
    allow_nonfinite: bool = False,
) -> None:
    """Assert that `actual` is a plain tensor with the dtype, shape and values of `expected`.

    Args:
        actual: what the student's function returned.
        expected: the right answer.
        rtol, atol: both or neither; the default is torch.testing's for the dtype.
        allow_nonfinite: accept infinities (equal ones) where `expected` has them.
    """
    if type(actual) is not Tensor:
        raise AssertionError(f"expected a torch.Tensor; got {type(actual).__name__}")
    if actual.dtype != expected.dtype:
        raise AssertionError(f"expected dtype {expected.dtype}; got {actual.dtype}")
    if actual.shape != expected.shape:
        raise AssertionError(f"expected shape {tuple(expected.shape)}; got {tuple(actual.shape)}")
    actual, expected = actual.detach(), expected.detach()
    if not allow_nonfinite and not torch.isfinite(actual).all():
        raise AssertionError("expected finite values; got NaN or infinity")
    torch.testing.assert_close(actual, expected, rtol=rtol, atol=atol)


def assert_float(
    actual: object, expected: float, *, rtol: float = 1e-6, atol: float = 1e-9
) -> None:
    """Assert that `actual` is a Python float, finite and close to `expected`."""
    if type(actual) is not float:
        raise AssertionError(f"expected a float; got {type(actual).__name__}")
    if not math.isfinite(actual):
        raise AssertionError(f"expected a finite number; got {actual}")
    if not abs(actual - expected) <= atol + rtol * abs(expected):
        raise AssertionError(f"expected {expected}; got {actual}")


def assert_bool(actual: object, expected: bool) -> None:
    """Assert that `actual` is a Python bool and equals `expected`.

    One answer is worth a coin toss: ask in balanced, shuffled batches, all or nothing.
    """
    if type(actual) is not bool:
        raise AssertionError(f"expected a bool; got {type(actual).__name__}")
    if actual is not expected:
        raise AssertionError(f"expected {expected}; got {actual}")


def assert_gradient(
    output: object,
    leaves: Tensor | Sequence[Tensor],
    expected: Tensor | Sequence[Tensor],
    *,
    weights: Tensor | None = None,
    rtol: float | None = None,
    atol: float | None = None,
) -> None:
    """Assert the gradient of `output` with respect to each leaf; a detached leaf expects zeros.

    Args:
        output: what the student's function returned; must carry a graph.
        leaves: tensors that were passed in with requires_grad.
        expected: a gradient per leaf.
        weights: the vector of the vector-Jacobian product, for an output that is not a scalar.
    """
    if type(output) is not Tensor:
        raise AssertionError(f"expected a torch.Tensor; got {type(output).__name__}")
    if not output.requires_grad:
        raise AssertionError("the result carries no graph: no gradient can flow")
    if output.is_complex():  # for which autograd raises an error that would look like ours
        raise AssertionError(f"expected real numbers; got {output.dtype}")
    leaves = [leaves] if isinstance(leaves, Tensor) else list(leaves)
    expected = [expected] if isinstance(expected, Tensor) else list(expected)
    if weights is None and output.ndim:
        raise AssertionError(f"expected a 0-dim tensor; got shape {tuple(output.shape)}")
    if weights is not None and weights.shape != output.shape:
        raise AssertionError(f"expected shape {tuple(weights.shape)}; got {tuple(output.shape)}")
    grads = torch.autograd.grad(output, leaves, weights, retain_graph=True, allow_unused=True)
    for leaf, grad, right in zip(leaves, grads, expected, strict=True):
        assert_tensor(torch.zeros_like(leaf) if grad is None else grad, right, rtol=rtol, atol=atol)


@contextmanager
def raises(type_name: str) -> Iterator[None]:
    """Pass only if the student's code raises an exception whose class has exactly this name.

    A stub raises, too: pair this with `needs` or with a right value in the same check.
    """
    try:
        yield
    except StudentError as error:
        if error.type != type_name:
            raise
    else:
        raise AssertionError(f"expected {type_name}; nothing was raised")


class Draw:
    """Hidden inputs from one seed: equal for every student of a course, new in every course."""

    def __init__(self, seed: int) -> None:
        self.seed = seed
        self.generator = torch.Generator().manual_seed(seed % 2**63)

    def normal(self, *shape: int, dtype: torch.dtype = torch.float32) -> Tensor:
        """Standard normal numbers."""
        return torch.randn(shape, dtype=dtype, generator=self.generator)

    def uniform(
        self, *shape: int, low: float = 0.0, high: float = 1.0, dtype: torch.dtype = torch.float32
    ) -> Tensor:
        """Uniform numbers in [low, high)."""
        return low + (high - low) * torch.rand(shape, dtype=dtype, generator=self.generator)

    def integers(self, low: int, high: int, shape: Sequence[int]) -> Tensor:
        """int64 in [low, high)."""
        return torch.randint(low, high, tuple(shape), generator=self.generator)

    def integer(self, low: int, high: int) -> int:
        """Draw one int in [low, high)."""
        return int(self.integers(low, high, ()))

    def permutation(self, n: int) -> Tensor:
        """A random order of 0 … n − 1."""
        return torch.randperm(n, generator=self.generator)

    def choice(self, items: Sequence[T]) -> T:
        """Draw one of `items`."""
        return items[self.integer(0, len(items))]

    def shuffled(self, items: Sequence[T]) -> list[T]:
        """`items` in a random order."""
        return [items[i] for i in self.permutation(len(items)).tolist()]

    def prefix_mask(self, B: int, T: int) -> Tensor:
        """(B, T) bool, True on a prefix of each row; lengths 1 … T, as unequal as possible."""
        rounds = [self.permutation(T) + 1 for _ in range(-(-B // T))]
        return torch.arange(T) < torch.cat(rounds)[:B, None]

    def logprobs(self, B: int, T: int, *, dtype: torch.dtype = torch.float32) -> Tensor:
        """(B, T) log-probabilities of sampled tokens, between −3 and −0.1, in nats."""
        return self.uniform(B, T, low=-3.0, high=-0.1, dtype=dtype)
