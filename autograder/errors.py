# SPDX-License-Identifier: MIT
"""What can go wrong on the student's side of a check; the plug-in turns it into a status.

Texts in them come from the student: escape before showing.  An `AssertionError` is a failed check;
any exception that is neither is a fault of the grader.
"""

from typing import ClassVar, NamedTuple


class Frame(NamedTuple):
    """One line of the student's traceback."""

    cell: str
    line: int
    text: str


class StudentFailure(Exception):
    """The student's side did not give an answer; `status` is the result's status."""

    status: ClassVar[str] = "error"


class StudentError(StudentFailure):
    """The student's code raised an exception.

    Args:
        type: name of the exception's class, such as "ValueError".
        message: its text (instructors only: the student can print hidden inputs into it).
        frames: lines of the student's own cells, outermost first.
    """

    def __init__(self, type: str, message: str = "", frames: tuple[Frame, ...] = ()) -> None:
        super().__init__(type, message, frames)
        self.type, self.message, self.frames = type, message, frames

    def __str__(self) -> str:
        where = "".join(f"\n  {f.cell}, line {f.line}: {f.text}" for f in self.frames)
        return f"the student's code raised {self.type}: {self.message}{where}"


class StudentTimeout(StudentFailure):
    """The student's code ran past the limit of a load, a call, a check or the submission."""

    status = "timeout"


class StudentMemory(StudentFailure):
    """The student's code asked for more memory than it may have."""

    status = "memory"


class StudentCrashed(StudentFailure):
    """The student's process ended, or broke the protocol."""

    status = "crashed"


class OpaqueValueError(AssertionError):
    """A check asked for truth or equality of an object that lives on the student's side only.

    Such an answer proves nothing (its class may define `__eq__`), so the check fails.
    """
