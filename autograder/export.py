# SPDX-License-Identifier: MIT
"""`autograder export`: grades as CSV, JSON, and the CSV that Canvas and Moodle import.

Pure renderers over the gradebook's rows.  In CSV, text that a spreadsheet would run as a formula
gets an apostrophe in front: a student chooses the name of a file, and so of a row.
"""

import csv
import io
import json
from collections.abc import Callable, Iterable, Sequence

from autograder.gradebook import CellGrade, StudentGrade

__all__ = ["FORMATS", "guard", "render"]

_FORMULA = ("=", "+", "-", "@", "\t", "\r", "\n")


def guard(value: object) -> str:
    """Return a CSV cell that no spreadsheet takes for a formula; numbers stay numbers."""
    if isinstance(value, float):
        return f"{value:.10g}"
    if isinstance(value, int):
        return str(value)
    text = str(value)
    return f"'{text}" if text.startswith(_FORMULA) else text


def to_csv(assignment: str, grades: Sequence[StudentGrade]) -> str:
    """One row a student, one column an exercise; a cell without a mark yet is empty."""
    names = _cell_names(grades)
    head = ["student", "last_name", "first_name", "assignment", *names]
    head += ["automatic", "late_penalty", "score", "max_score", "pending"]
    rows = []
    for grade in grades:
        marks = {cell.name: "" if _is_open(cell) else cell.score for cell in grade.cells}
        rows.append(
            [grade.student, grade.last_name, grade.first_name, assignment]
            + [marks.get(name, "") for name in names]
            + [grade.automatic, grade.late_penalty, grade.score, grade.max_score]
            + [" ".join(grade.pending)]
        )
    return _write([head, *rows])


def to_json(assignment: str, grades: Sequence[StudentGrade]) -> str:
    """All that the gradebook knows, schema 1."""
    students = [
        {
            "student": grade.student,
            "last_name": grade.last_name,
            "first_name": grade.first_name,
            "email": grade.email,
            "automatic": grade.automatic,
            "late_penalty": grade.late_penalty,
            "score": grade.score,
            "max_score": grade.max_score,
            "pending": list(grade.pending),
            "cells": [
                {
                    "name": cell.name,
                    "auto": cell.auto,
                    "manual": cell.manual,
                    "extra": cell.extra,
                    "score": cell.score,
                    "max_score": cell.max_score,
                    "pending": cell.pending,
                }
                for cell in grade.cells
            ],
        }
        for grade in grades
    ]
    return (
        json.dumps({"schema": 1, "assignment": assignment, "students": students}, indent=1) + "\n"
    )


def to_canvas(assignment: str, grades: Sequence[StudentGrade]) -> str:
    """Canvas's gradebook import; a student with open cells gets no score yet."""
    head = ["Student", "ID", "SIS User ID", "SIS Login ID", "Section", assignment]
    most = max((grade.max_score for grade in grades), default=0.0)
    rows: list[list[object]] = [["    Points Possible", "", "", "", "", most]]
    for grade in grades:
        name = ", ".join(part for part in (grade.last_name, grade.first_name) if part)
        score: object = "" if _has_open(grade) else grade.score
        rows.append([name or grade.student, "", grade.student, grade.student, "", score])
    return _write([head, *rows])


def to_moodle(assignment: str, grades: Sequence[StudentGrade]) -> str:
    """Moodle's grade import, matched by ID number; a student with open cells gets no score yet."""
    rows = [
        [grade.student, grade.email, "" if _has_open(grade) else grade.score, _remark(grade)]
        for grade in grades
    ]
    return _write([["ID number", "Email address", assignment, "Feedback comments"], *rows])


def render(format: str, assignment: str, grades: Sequence[StudentGrade]) -> str:
    """Return the text of an export."""
    return FORMATS[format](assignment, grades)


FORMATS: dict[str, Callable[[str, Sequence[StudentGrade]], str]] = {
    "csv": to_csv,
    "json": to_json,
    "canvas": to_canvas,
    "moodle": to_moodle,
}


def _is_open(cell: CellGrade) -> bool:
    """Whether nobody has marked the cell that a person must mark."""
    return cell.pending and cell.manual is None


def _has_open(grade: StudentGrade) -> bool:
    return any(_is_open(cell) for cell in grade.cells)


def _remark(grade: StudentGrade) -> str:
    return f"to be graded by hand: {', '.join(grade.pending)}" if grade.pending else ""


def _cell_names(grades: Iterable[StudentGrade]) -> list[str]:
    return sorted({cell.name for grade in grades for cell in grade.cells})


def _write(rows: Iterable[Iterable[object]]) -> str:
    text = io.StringIO()
    csv.writer(text, lineterminator="\n").writerows([guard(value) for value in row] for row in rows)
    return text.getvalue()
