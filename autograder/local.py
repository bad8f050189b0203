# SPDX-License-Identifier: MIT
"""Run checks against trusted answers in this process: the same interface as the jailed student.

For this repository's own answers only (they prove the checks).  Nothing here protects anything:
code given to `LocalProcess` can do whatever the interpreter can.  Students' code goes through
`autograder.proxy`.  What crosses is treated as the wire would treat it: arguments are copies,
gradients pass a bridge, subclasses become the plain type, and other objects become opaque.
"""

import contextlib
import io
import random
import traceback
import warnings
from collections.abc import Callable, Iterable, Iterator
from typing import Any, NoReturn

import numpy as np
import torch
from torch import Tensor
from torch.autograd.function import once_differentiable

from autograder.errors import (
    Frame,
    OpaqueValueError,
    StudentCrashed,
    StudentError,
    StudentMemory,
)

PLAIN = (bool, int, float, complex, str, bytes)


class Opaque:
    """Stands for an object that has no plain form; refuses truth and equality."""

    __hash__ = object.__hash__

    def __init__(self, type_name: str) -> None:
        self.type_name = type_name

    def __bool__(self) -> NoReturn:
        raise OpaqueValueError(f"a {self.type_name} has no truth value here")

    def __eq__(self, other: object) -> NoReturn:
        raise OpaqueValueError(f"a {self.type_name} has no equality here")


class LocalProcess:
    """A loaded answer.  `sources` are code cells, or (name, code) pairs; errors at load are kept.

    Attributes:
        student: names of the answer; `student.f(x)` is `self.call("f", x)`.
        load_errors: one StudentError for each cell that raised.
    """

    def __init__(self, sources: Iterable[str | tuple[str, str]]) -> None:
        self.namespace: dict[str, Any] = {"__name__": "__main__"}
        self.student = Student(self)
        self.load_errors: list[StudentError] = []
        self._lines: dict[str, list[str]] = {}
        self._output = io.StringIO()
        for number, source in enumerate(sources):
            name, code = (f"cell {number}", source) if isinstance(source, str) else source
            self._load(name, code)

    def call(self, name: str, *args: Any, timeout_s: float | None = None, **kwargs: Any) -> Any:
        """Call a function of the answer; `timeout_s` is accepted and ignored (trusted code)."""
        return self._call(name, args, kwargs)[0]

    def call_mutating(self, name: str, *args: Any, **kwargs: Any) -> tuple[Any, tuple[Any, ...]]:
        """Call, and return the result with the positional arguments as the call left them."""
        result, inside = self._call(name, args, kwargs)
        return result, tuple(_outwards(value, []) for value in inside)

    def seed(self, seed: int) -> None:
        """Seed the global random number generators that the answer could use."""
        torch.manual_seed(seed)
        random.seed(seed)
        np.random.seed(seed % 2**32)

    def has(self, name: str) -> bool:
        """Whether the answer defines this name."""
        return name in self.namespace

    def stdout(self) -> str:
        """What the answer has printed so far."""
        return self._output.getvalue()

    def _load(self, name: str, code: str) -> None:
        self._lines[f"<{name}>"] = code.splitlines()
        try:
            with self._student_code():
                exec(compile(code, f"<{name}>", "exec"), self.namespace)
        except StudentError as error:
            self.load_errors.append(error)

    def _call(self, name: str, args: tuple, kwargs: dict) -> tuple[Any, list[Any]]:
        leaves: list[tuple[Tensor, Tensor]] = []
        inside = [_inwards(value, leaves) for value in args]
        named = {key: _inwards(value, leaves) for key, value in kwargs.items()}
        with self._student_code(), torch.enable_grad():
            if name not in self.namespace:
                raise NameError(f"name {name!r} is not defined")
            result = self.namespace[name](*inside, **named)
        return self._bridge(result, leaves), inside

    def _bridge(self, result: Any, leaves: list[tuple[Tensor, Tensor]]) -> Any:
        graphs: list[Tensor] = []
        _outwards(result, graphs)
        if not graphs:
            return _outwards(result, [])
        anchor = torch.zeros((), requires_grad=True)  # backward runs even without leaves
        outer, inner = [pair[0] for pair in leaves], [pair[1] for pair in leaves]
        bridged = _Bridge.apply(self, graphs, inner, anchor, *outer)
        return _outwards(result, [], iter(bridged))

    @contextlib.contextmanager
    def _student_code(self) -> Iterator[None]:
        try:
            with contextlib.redirect_stdout(self._output), warnings.catch_warnings():
                warnings.simplefilter("ignore")
                yield
        except MemoryError as error:
            raise StudentMemory(str(error)) from None
        except SystemExit as error:
            raise StudentCrashed(f"exit {error.code}") from None
        except Exception as error:
            raise StudentError(type(error).__name__, str(error), self._frames(error)) from None

    def _frames(self, error: Exception) -> tuple[Frame, ...]:
        frames = []
        for entry in traceback.extract_tb(error.__traceback__):
            lines, number = self._lines.get(entry.filename), entry.lineno or 0
            if lines is not None:
                text = lines[number - 1].strip() if 0 < number <= len(lines) else ""
                frames.append(Frame(entry.filename.strip("<>"), number, text))
        if isinstance(error, SyntaxError) and error.filename in self._lines:
            cell = str(error.filename).strip("<>")
            frames.append(Frame(cell, error.lineno or 0, (error.text or "").strip()))
        return tuple(frames)


class Student:
    """Names of the answer as attributes."""

    def __init__(self, process: LocalProcess) -> None:
        self._process = process

    def __getattr__(self, name: str) -> Callable[..., Any]:
        if name.startswith("_"):
            raise AttributeError(name)

        def call(*args: Any, **kwargs: Any) -> Any:
            return self._process.call(name, *args, **kwargs)

        return call


class _Bridge(torch.autograd.Function):
    """Carries first-order gradients from copies inside to the check's tensors outside."""

    @staticmethod
    def forward(ctx: Any, process: LocalProcess, graphs: list, inner: list, *_outer: Tensor) -> Any:
        ctx.process, ctx.graphs, ctx.inner = process, graphs, inner
        return tuple(graph.detach().clone() for graph in graphs)

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, *grads: Tensor) -> tuple:
        inner = ctx.inner
        with ctx.process._student_code():
            found = torch.autograd.grad(
                ctx.graphs, inner, grads, retain_graph=True, allow_unused=True
            )
        return (None, None, None, None, *found)


def _inwards(value: Any, leaves: list[tuple[Tensor, Tensor]]) -> Any:
    """Copy an argument; remember leaves that require grad; wrap callables as callbacks."""
    if isinstance(value, Tensor):
        copy = value.detach().clone()
        if value.requires_grad:
            leaves.append((value, copy.requires_grad_()))
        return copy
    if isinstance(value, torch.Generator):
        generator = torch.Generator(value.device)
        generator.set_state(value.get_state())
        return generator
    if isinstance(value, (list, tuple, set)):
        return type(value)(_inwards(item, leaves) for item in value)
    if isinstance(value, dict):
        return {key: _inwards(item, leaves) for key, item in value.items()}
    if callable(value):
        return _callback(value)
    return value.copy() if isinstance(value, np.ndarray) else value


def _callback(function: Callable[..., Any]) -> Callable[..., Any]:
    """Let student code call a function of the check; of an error only the type's name crosses."""

    def callback(*args: Any, **kwargs: Any) -> Any:
        args = tuple(_outwards(value, []) for value in args)
        kwargs = {key: _outwards(value, []) for key, value in kwargs.items()}
        try:
            return _inwards(function(*args, **kwargs), [])
        except Exception as error:
            raise RuntimeError(f"callback raised {type(error).__name__}") from None

    return callback


def _outwards(value: Any, graphs: list[Tensor], bridged: Iterator[Tensor] | None = None) -> Any:
    """Reduce a result to plain types; collect tensors with a graph, or take them from `bridged`."""
    if isinstance(value, Tensor):
        if value.requires_grad and value.is_floating_point():
            graphs.append(value)
            if bridged is not None:
                return next(bridged)
        return value.detach().as_subclass(Tensor).clone()
    if value is None or type(value) in PLAIN:
        return value
    if isinstance(value, (np.ndarray, np.generic, torch.Generator)):
        return value
    if isinstance(value, PLAIN):  # a subclass, past any method of its own
        base = next(kind for kind in PLAIN[1:] if isinstance(value, kind))
        return getattr(base, f"__{base.__name__}__", base.__str__)(value)
    if isinstance(value, (list, tuple, set, frozenset)):
        kind = next(kind for kind in (list, tuple, set, frozenset) if isinstance(value, kind))
        return kind(_outwards(item, graphs, bridged) for item in value)
    if type(value) is dict:
        return {key: _outwards(item, graphs, bridged) for key, item in value.items()}
    return Opaque(type(value).__name__)
