# SPDX-License-Identifier: MIT
"""Results of one graded submission, and their JSON form (schema 1).

The checker writes them after the student's process is dead; the gradebook's process replays them.
Reading is strict: a file that is malformed, or that claims a score its status does not give, is
refused, so that a damaged result can never become points.
"""

import math
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, fields

import msgspec

__all__ = ["SCHEMA", "STATUSES", "CellError", "CheckResult", "ResultError", "SubmissionResult"]

SCHEMA = 1

PASSED = "passed"
FAILED = "failed"
ERROR = "error"
TIMEOUT = "timeout"
MEMORY = "memory"
CRASHED = "crashed"
SKIPPED = "skipped"
GRADER_FAULT = "grader_fault"

STATUSES = {
    PASSED: "the check held",
    FAILED: "the check did not hold",
    ERROR: "the student's code raised an exception",
    TIMEOUT: "the student's code ran past a time limit",
    MEMORY: "the student's code asked for more memory than it may have",
    CRASHED: "the student's process ended, or broke the protocol",
    SKIPPED: "not run, because a check that it needs did not pass",
    GRADER_FAULT: "the grader could not judge: a person grades it, it is never 0 by itself",
}


class ResultError(ValueError):
    """A result is malformed or contradicts itself."""


@dataclass(frozen=True)
class CellError:
    """A cell of the notebook that raised while it was loaded.

    Args:
        cell: name of the cell.
        type: name of the exception's class.
        line: the student's own source line, "" where there is none.
        number: of that line in the cell, from 1; 0 where there is none.
    """

    cell: str
    type: str
    line: str
    number: int


@dataclass(frozen=True)
class CheckResult:
    """Outcome of one check.

    Args:
        id: of the check, unique in the assignment.
        cell: grade_id of the graded cell whose points it shares.
        title, hint: what the check's author shows to the student.
        status: a key of `STATUSES`.
        score: `max_score` if passed, else 0.
        max_score: the check's share of the cell's points.
        message: safe text for the student (type of an exception, the student's own line).
        seconds: wall time.
        detail: for instructors only; may hold hidden inputs and expected values.
    """

    id: str
    cell: str
    title: str
    hint: str
    status: str
    score: float
    max_score: float
    message: str
    seconds: float
    detail: str

    def __post_init__(self) -> None:
        if self.status not in STATUSES:
            raise ResultError(f"{self.id}: unknown status {self.status!r}")
        if not (0 <= self.max_score < math.inf and 0 <= self.seconds < math.inf):
            raise ResultError(f"{self.id}: max_score and seconds must be finite and at least 0")
        if self.score != (self.max_score if self.status == PASSED else 0):
            raise ResultError(f"{self.id}: status {self.status} does not give {self.score} points")


@dataclass(frozen=True)
class SubmissionResult:
    """Outcome of all checks of one submission.

    Args:
        schema: version of the JSON form.
        assignment: its name.
        backend: of the sandbox the student's code ran in.
        key: hash of the graded cells and of everything else the result depends on.
        seed: names the course secret that hidden inputs were drawn from (not the secret).
        seconds: wall time.
        checks: one result per check.
        cell_errors: cells that raised while the notebook was loaded.
        note: safe text about the whole submission, "" for none.
    """

    schema: int
    assignment: str
    backend: str
    key: str
    seed: str
    seconds: float
    checks: tuple[CheckResult, ...]
    cell_errors: tuple[CellError, ...] = ()
    note: str = ""

    def __post_init__(self) -> None:
        if self.schema != SCHEMA:
            raise ResultError(f"schema must be {SCHEMA}; got {self.schema}")
        if not 0 <= self.seconds < math.inf:
            raise ResultError("seconds must be finite and at least 0")
        doubles = [name for name, n in Counter(check.id for check in self.checks).items() if n > 1]
        if doubles:
            raise ResultError(f"more than one result of {', '.join(doubles)}")

    @property
    def score(self) -> float:
        """Sum of the points of all checks."""
        return _total(check.score for check in self.checks)

    def cell_score(self, cell: str) -> float:
        """Points earned in a cell; 0 where nothing was checked (see `has_grader_fault`)."""
        return _total(check.score for check in self._of(cell))

    def max_score(self, cell: str) -> float:
        """Points that the cell's checks could give."""
        return _total(check.max_score for check in self._of(cell))

    def has_grader_fault(self, cell: str) -> bool:
        """Whether a person must grade the cell: a check could not judge, or there is no result."""
        checks = list(self._of(cell))
        return not checks or any(check.status == GRADER_FAULT for check in checks)

    @property
    def is_faulty(self) -> bool:
        """Whether any check could not judge."""
        return not self.checks or any(check.status == GRADER_FAULT for check in self.checks)

    def to_json(self) -> str:
        """Return the JSON text, with the order of keys fixed."""
        return msgspec.json.format(msgspec.json.encode(self), indent=1).decode()

    @classmethod
    def from_json(cls, text: str | bytes) -> "SubmissionResult":
        """Read what `to_json` wrote.

        Raises: ResultError if a field is missing, unknown, of the wrong type, or contradictory.
        """
        try:
            raw = msgspec.json.decode(text)
            result = msgspec.convert(raw, cls, strict=True)
            _refuse_unknown(raw, cls)
            for row in raw["checks"]:
                _refuse_unknown(row, CheckResult)
            for row in raw["cell_errors"]:
                _refuse_unknown(row, CellError)
        except (msgspec.MsgspecError, UnicodeDecodeError, KeyError, RecursionError) as error:
            raise ResultError(f"not a result: {error}") from None
        return result

    def _of(self, cell: str) -> Iterator[CheckResult]:
        return (check for check in self.checks if check.cell == cell)


def _refuse_unknown(row: dict[str, object], kind: type) -> None:
    names = {field.name for field in fields(kind)}
    if set(row) != names:
        raise ResultError(f"not a {kind.__name__}: {', '.join(sorted(set(row) ^ names))}")


def _total(scores: Iterator[float]) -> float:
    """Sum without the residue of thirds: shares of a cell add up to its points exactly."""
    return round(math.fsum(scores), 6)
