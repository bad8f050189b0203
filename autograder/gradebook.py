# SPDX-License-Identifier: MIT
"""Read nbgrader's gradebook: what tables, exports and the demo's comparison are made of."""

import math
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from nbgrader.api import Gradebook, MissingEntry

from autograder.course import Course, CourseError

__all__ = ["CellGrade", "StudentGrade", "is_released", "read_grades", "short_name", "total"]


@dataclass(frozen=True)
class CellGrade:
    """Points of one graded cell.

    Args:
        name: grade_id of the cell.
        max_score: its points.
        auto: what the checks gave, None where a person must grade.
        manual: what a person gave, None if nobody did; it stands over `auto`.
        extra: a person's extra credit.
        is_manual: whether checks never grade this cell.
        pending: whether a person must look at it.
    """

    name: str
    max_score: float
    auto: float | None
    manual: float | None
    extra: float
    is_manual: bool
    pending: bool

    @property
    def score(self) -> float:
        """What counts now; a pending cell without any mark counts 0."""
        mark = self.auto if self.manual is None else self.manual
        return 0.0 if mark is None else mark + self.extra


@dataclass(frozen=True)
class StudentGrade:
    """One student's row for one assignment."""

    student: str
    first_name: str
    last_name: str
    email: str
    cells: tuple[CellGrade, ...]
    late_penalty: float

    @property
    def automatic(self) -> float:
        """Points that checks gave."""
        return total(cell.auto for cell in self.cells if not cell.is_manual)

    @property
    def max_automatic(self) -> float:
        return total(cell.max_score for cell in self.cells if not cell.is_manual)

    @property
    def score(self) -> float:
        """All points so far, less the penalty for lateness."""
        return max(0.0, total([*(cell.score for cell in self.cells), -self.late_penalty]))

    @property
    def max_score(self) -> float:
        return total(cell.max_score for cell in self.cells)

    @property
    def pending(self) -> tuple[str, ...]:
        """Names of the cells that a person must look at."""
        return tuple(cell.name for cell in self.cells if cell.pending)


def is_released(course: Course, assignment: str) -> bool:
    """Whether the gradebook knows the assignment's notebook."""
    if not course.gradebook.exists():
        return False
    with Gradebook(course.db_url) as gradebook:
        try:
            gradebook.find_notebook(assignment, assignment)
        except MissingEntry:
            return False
    return True


def read_grades(course: Course, assignment: str) -> list[StudentGrade]:
    """Return the graded submissions, sorted by student.

    Raises: CourseError if the gradebook does not know the assignment.
    """
    if not is_released(course, assignment):
        raise CourseError(
            f"the gradebook does not know {assignment}. Run: autograder release {assignment}"
        )
    with Gradebook(course.db_url) as gradebook:
        submissions = gradebook.assignment_submissions(assignment)
        return sorted((_student_grade(entry) for entry in submissions), key=lambda row: row.student)


def short_name(cell: str) -> str:
    """Return "ex02_1" of "ex02_1_completion_logprobs"."""
    return "_".join(cell.split("_")[:2])


def total(marks: Iterable[float | None]) -> float:
    """Sum what is there, without the residue of thirds."""
    return round(math.fsum(mark for mark in marks if mark is not None), 6)


def _student_grade(entry: Any) -> StudentGrade:
    student = entry.student
    grades = [grade for notebook in entry.notebooks for grade in notebook.grades]
    penalties = [notebook.late_submission_penalty or 0.0 for notebook in entry.notebooks]
    return StudentGrade(
        student=student.id,
        first_name=student.first_name or "",
        last_name=student.last_name or "",
        email=student.email or "",
        cells=tuple(sorted((_cell_grade(grade) for grade in grades), key=lambda cell: cell.name)),
        late_penalty=total(penalties),
    )


def _cell_grade(grade: Any) -> CellGrade:
    solutions = {cell.name for cell in grade.notebook.notebook.solution_cells}
    return CellGrade(
        name=grade.cell.name,
        max_score=float(grade.max_score),
        auto=grade.auto_score,
        manual=grade.manual_score,
        extra=grade.extra_credit or 0.0,
        is_manual=grade.cell.cell_type != "code" or grade.cell.name in solutions,
        pending=bool(grade.needs_manual_grade),
    )
