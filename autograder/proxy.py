# SPDX-License-Identifier: MIT
"""The student's process as a check sees it: `student` for its names, `process` to control it.

A submission is loaded once and each check runs in a fork of that state, so that no check can spoil
another.  Where the sandbox cannot fork, each check loads the submission anew.

Trust rule: what comes back is a claim of what the student's function returned.  Comparing it with
our own answer is sound; a property that is claimed must be measured again here.
"""

import math
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import torch

from autograder.assignment import Assignment, GradingLimits
from autograder.budget import Budget
from autograder.cleaning import clean
from autograder.connection import Connection
from autograder.errors import StudentCrashed, StudentError, StudentFailure
from autograder.handles import RemoteName, RemoteObject
from policylab.sandbox import Limits, SandboxError, Zygote

__all__ = ["Student", "StudentProcess", "start_zygote"]

MAX_LOAD_FAILURES = 2  # then the checks that are left are not run
START_SECONDS = 20.0  # for a worker's first answer
FORK_SECONDS = 10.0  # for making a fork, and for ending it
CPU_GRACE = 2  # CPU seconds beyond the wall time that the student's code may use
OUTPUT_LIMIT = 20_000
# The second is what torch imports at the first vector-Jacobian product, which takes seconds.  Each
# megabyte here slows every fork, so torch._dynamo, which optimizers want, is not among them.
PREIMPORT = ("torch", "torch.fx.experimental.symbolic_shapes")


class StudentProcess:
    """One submission in the sandbox.

    Args:
        zygote: makes the workers.
        cells: (name, source) in notebook order.
        limits: of the submission.
        used_s: seconds of the submission's limit that are spent already.

    Attributes:
        student: names of the notebook; `student.f(x)` is `process.call("f", x)`.
        load_errors: per cell that raised when it was loaded, (name of the cell, error).
    """

    def __init__(
        self,
        zygote: Zygote,
        cells: Sequence[tuple[str, str]],
        limits: GradingLimits,
        *,
        used_s: float = 0.0,
    ) -> None:
        self.student = Student(self)
        self.load_errors: list[tuple[str, StudentError]] = []
        self.budget = Budget(limits.submission_s)
        self.budget.spend(used_s)
        self._zygote, self._limits = zygote, limits
        # a lone surrogate is no text that could be sent; Python would not compile it either
        self._cells = [[name, source.encode("utf8", "replace").decode()] for name, source in cells]
        self._sources = {name: source.splitlines() for name, source in self._cells}
        self._load_failures: list[StudentFailure] = []
        self._can_fork = True
        self._loaded: Connection | None = None  # idle, ready to fork
        self._current: Connection | None = None  # serves the check that runs

    @contextmanager
    def check(self, seconds: float, *, fresh: bool = False) -> Iterator[None]:
        """Give a check a state of its own, and the student's code `seconds` in it.

        Args:
            seconds: that the student's code may use inside, loading apart.
            fresh: load the submission anew instead of forking the loaded state.
        """
        assert self._current is None, "checks run one after the other"
        connection, is_fork = self._start(seconds, fresh)
        connection.budget = Budget(seconds, self.budget)
        self._current = connection
        try:
            yield
        finally:
            self._current = None
            if is_fork:
                self._give_back(connection)
            else:
                connection.close()

    def call(self, name: str, *args: Any, timeout_s: float | None = None, **kwargs: Any) -> Any:
        """Call a function of the notebook.

        Args:
            name: may be dotted.
            timeout_s: limit of this call; without one, what the check has left.
        """
        return self._request("call", target=name, args=args, kwargs=kwargs, timeout_s=timeout_s)

    def call_mutating(self, name: str, *args: Any, **kwargs: Any) -> tuple[Any, tuple[Any, ...]]:
        """Call, and return the result with the positional arguments as the call left them."""
        reply = self._request("call_mutating", target=name, args=args, kwargs=kwargs)
        if type(reply) is not list or len(reply) != 3:
            raise StudentCrashed("broke the protocol: not a result with its arguments")
        result, after, _ = reply
        if type(after) is not list or len(after) != len(args):
            raise StudentCrashed("broke the protocol: not as many arguments as were sent")
        return result, tuple(after)

    def value(self, name: str) -> Any:
        """Return a variable of the notebook."""
        return self._request("value", target=name)

    def has(self, name: str) -> bool:
        """Whether the notebook defines this name."""
        return self._request("has", name=name) is True

    def seed(self, seed: int) -> None:
        """Seed the global random number generators of the student's process."""
        self._request("seed", seed=seed)

    def stdout(self) -> str:
        """Return what the student's code has printed; it may hold hidden inputs."""
        pump = self._connection().worker.pump
        pump.drain_quietly()  # a reply that was there at once left no wait to read it in
        return clean(pump.text(), OUTPUT_LIMIT)

    def parameters(self, module: RemoteObject) -> dict[str, torch.nn.Parameter]:
        """Return copies of a remote module's parameters, and their gradients, by name."""
        rows = self._request("params", target=module.__dict__["_number"])
        found = {}
        for row in rows if type(rows) is list else [None]:
            if not isinstance(row, tuple) or len(row) != 4 or type(row[0]) is not str:
                raise StudentCrashed("broke the protocol: malformed parameters")
            name, value, grad, requires_grad = row
            if type(value) is not torch.Tensor or type(grad) not in (torch.Tensor, type(None)):
                raise StudentCrashed("broke the protocol: a parameter that is no tensor")
            if grad is not None and (grad.shape != value.shape or grad.dtype != value.dtype):
                raise StudentCrashed("broke the protocol: a gradient that does not fit")
            can_learn = requires_grad is True and value.is_floating_point()
            found[name] = torch.nn.Parameter(value.detach().clone(), requires_grad=can_learn)
            found[name].grad = grad if can_learn else None
        return found

    def functional_call(
        self, module: RemoteObject, parameters: Mapping[str, torch.Tensor], *args: Any
    ) -> Any:
        """Call a remote module with parameters held here: the strongest check of training."""
        number = module.__dict__["_number"]
        return self._request(
            "functional_call", target=number, parameters=dict(parameters), args=args
        )

    def close(self) -> None:
        """Kill what runs."""
        for connection in (self._current, self._loaded):
            if connection is not None:
                connection.close()
        self._current = self._loaded = None

    def _connection(self) -> Connection:
        if self._current is None:
            raise RuntimeError("the student's process can be used inside a check only")
        return self._current

    def _request(self, operation: str, **fields: Any) -> Any:
        return self._connection().request(operation, **fields)

    def _start(self, seconds: float, fresh: bool) -> tuple[Connection, bool]:
        """Return a connection to the submission's loaded state, and whether a fork serves it."""
        if fresh:
            return self._new(seconds), False
        connection, self._loaded = self._loaded, None
        if connection is None:
            connection = self._new(seconds)
        if not (connection.worker.can_fork and self._can_fork):
            return connection, False
        try:
            connection.budget = Budget(FORK_SECONDS)
            connection.request("fork", cpu_s=math.ceil(seconds) + CPU_GRACE)
            return connection, True
        except StudentFailure:  # processes that the notebook left behind are in the way
            connection.close()
            self._can_fork = False
            return self._new(seconds), False

    def _give_back(self, connection: Connection) -> None:
        """End the fork; the loaded state beneath it is kept for the next check."""
        if connection.failure is not None:
            return
        try:
            connection.budget = Budget(FORK_SECONDS)
            connection.request("end")
            self._loaded = connection
        except StudentFailure:  # it does not end: the next check loads anew
            connection.close()

    def _new(self, seconds: float) -> Connection:
        """Start a worker and run the notebook's cells in it."""
        if len(self._load_failures) >= MAX_LOAD_FAILURES:
            raise self._load_failures[-1]
        cpu_s = math.ceil(self._limits.load_s + seconds) + CPU_GRACE
        limits = Limits(memory=self._limits.memory_mb << 20, cpu_s=cpu_s)
        connection = Connection(self._zygote.spawn(limits), self._sources, Budget(START_SECONDS))
        try:
            connection.request("has", name="")  # the jail stands
        except StudentFailure as failure:  # but nothing of theirs has run yet
            connection.close()
            raise SandboxError(f"a worker did not start: {failure}") from None
        try:
            connection.budget = Budget(self._limits.load_s, self.budget)
            reports = connection.request("load", cells=self._cells)
            errors = list(self._cell_errors(connection, reports))
        except StudentFailure as failure:
            connection.close()
            self._load_failures.append(failure)
            raise
        self.load_errors = errors
        return connection

    def _cell_errors(
        self, connection: Connection, reports: Any
    ) -> Iterator[tuple[str, StudentError]]:
        if type(reports) is not list or len(reports) != len(self._cells):
            raise StudentCrashed("broke the protocol: not a report per cell")
        for (name, _), report in zip(self._cells, reports, strict=True):
            if report is not None:
                yield name, connection.student_error(report)


class Student:
    """Names of the notebook as attributes; a function is called in the student's process."""

    def __init__(self, process: StudentProcess) -> None:
        self._process = process

    def __getattr__(self, name: str) -> RemoteName:
        if name.startswith("_"):
            raise AttributeError(name)
        return RemoteName(self._process, name)


def start_zygote(assignment: Assignment, view: Path, backend: str) -> Zygote:
    """Start a sandbox that has imported what the assignment's solution imports."""
    return Zygote(view, backend=backend, preimport=(*PREIMPORT, *assignment.imports))
