# SPDX-License-Identifier: MIT
"""From what a check raised to a status and a message that the student may read.

A message holds the exception's type and the student's own line.  It never holds an exception's
text or an assertion's: both can carry hidden inputs and expected values.  Even a type's name could,
where the student's code makes the class, so only names of Python or of the source are shown.
"""

import builtins
import re
from collections.abc import Iterable, Sequence

from _pytest.outcomes import Failed, Skipped

from autograder import results
from autograder.cleaning import clean
from autograder.connection import MissingName
from autograder.errors import StudentError, StudentFailure
from autograder.report import FAULT, Outcome
from autograder.results import CellError

__all__ = ["CheckOverran", "NeedsNotMet", "cell_errors", "judge"]

DETAIL_LIMIT = 4_000
LINE_LIMIT = 120
MESSAGES = {
    results.TIMEOUT: "your code did not finish in time",
    results.MEMORY: "your code asked for more memory than it may have",
    results.CRASHED: "your code ended the process, or gave an answer that cannot be read",
    results.GRADER_FAULT: FAULT,
}
KNOWN_TYPES = {
    name
    for name, value in vars(builtins).items()
    if isinstance(value, type) and issubclass(value, BaseException)
} | {"OutOfMemoryError", "LinAlgError"}


class NeedsNotMet(Skipped):
    """A check that this one needs did not pass."""


class CheckOverran(BaseException):
    """The check itself, not the student's code, did not end in time.

    No Exception: a check's `except Exception` must not catch it.
    """


def judge(error: BaseException | None, sources: Iterable[str]) -> Outcome:
    """Return the outcome of a check that raised `error`, or None.

    Args:
        error: anything that is neither an assertion nor a student's failure is the grader's fault.
        sources: the student's cells.
    """
    if error is None:
        return Outcome(results.PASSED)
    detail = clean(f"{type(error).__name__}: {error}", DETAIL_LIMIT)
    if isinstance(error, StudentError):
        return Outcome(error.status, _error_message(error, sources), detail)
    if isinstance(error, StudentFailure):
        return Outcome(error.status, MESSAGES[error.status], detail)
    if isinstance(error, NeedsNotMet):
        return Outcome(results.SKIPPED, f"not run before this holds: {error.msg}")
    if isinstance(error, AssertionError | Failed):
        return Outcome(results.FAILED, "", detail)
    return Outcome(results.GRADER_FAULT, FAULT, detail)


def cell_errors(
    errors: Sequence[tuple[str, StudentError]], sources: Iterable[str]
) -> tuple[CellError, ...]:
    """Return what the student may read about cells that raised when they were loaded."""
    sources = tuple(sources)
    rows = []
    for cell, error in errors:
        own = [frame for frame in error.frames if frame.cell == cell]
        line, number = (own[-1].text, own[-1].line) if own else ("", 0)
        name = _safe_type(error.type, sources) or "an exception"
        rows.append(CellError(cell, name, clean(line, LINE_LIMIT), number))
    return tuple(rows)


def _error_message(error: StudentError, sources: Iterable[str]) -> str:
    if isinstance(error, MissingName):
        return f"your notebook does not define {error.name}"
    name = _safe_type(error.type, sources)
    text = f"your code raised {name}" if name else "your code raised an exception"
    if not error.frames:
        return text
    frame = error.frames[-1]
    line = clean(frame.text, LINE_LIMIT)
    return f"{text} in cell {frame.cell}, line {frame.line}: {line}"


def _safe_type(name: str, sources: Iterable[str]) -> str:
    """Return the name if it tells nothing that the student did not write, else ""."""
    if name in KNOWN_TYPES:
        return name
    is_written = name.isidentifier() and any(
        re.search(rf"\b{re.escape(name)}\b", source) for source in sources
    )
    return name if is_written else ""
