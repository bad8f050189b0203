# SPDX-License-Identifier: MIT
"""From outcomes of checks to the result of a submission: titles, points and what did not run."""

from collections.abc import Mapping
from dataclasses import dataclass

from autograder import results
from autograder.assignment import Assignment
from autograder.inventory import CheckInfo
from autograder.results import SCHEMA, CellError, CheckResult, SubmissionResult

__all__ = ["FAULT", "Finished", "Outcome", "submission_result"]

FAULT = "the grader could not judge this; a person will grade it"


@dataclass(frozen=True)
class Outcome:
    """How a check ended; see `CheckResult` for the fields."""

    status: str
    message: str = ""
    detail: str = ""


@dataclass(frozen=True)
class Finished:
    """A check that has run."""

    outcome: Outcome
    seconds: float


def submission_result(
    assignment: Assignment,
    finished: Mapping[str, Finished],
    *,
    backend: str,
    key: str,
    seed: str,
    seconds: float,
    cell_errors: tuple[CellError, ...] = (),
    note: str = "",
    fault: str = "it did not run",
) -> SubmissionResult:
    """Return the result; checks that did not run could not be judged, for the reason `fault`."""
    missing = Finished(Outcome(results.GRADER_FAULT, FAULT, fault), 0.0)
    points = assignment.max_scores()
    rows = [
        _row(info, finished.get(info.id, missing), points[info.id]) for info in assignment.checks
    ]
    return SubmissionResult(
        schema=SCHEMA,
        assignment=assignment.name,
        backend=backend,
        key=key,
        seed=seed,
        seconds=round(seconds, 3),
        checks=tuple(rows),
        cell_errors=cell_errors,
        note=note,
    )


def _row(info: CheckInfo, done: Finished, points: float) -> CheckResult:
    return CheckResult(
        id=info.id,
        cell=info.cell,
        title=info.title,
        hint=info.hint,
        status=done.outcome.status,
        score=points if done.outcome.status == results.PASSED else 0.0,
        max_score=points,
        message=done.outcome.message,
        seconds=round(done.seconds, 4),
        detail=done.outcome.detail,
    )
