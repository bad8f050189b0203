# SPDX-License-Identifier: MIT
"""Tables and JSON of the command line: renderers of what the commands return."""

import json
import sys
from collections.abc import Sequence
from typing import Any

from rich.console import Console
from rich.table import Table
from rich.text import Text

from autograder.cleaning import one_line
from autograder.grade import GradeRow
from autograder.gradebook import CellGrade, short_name

__all__ = ["console", "grade_json", "grade_table", "points", "print_table"]

COLOURS = {"graded": "green", "unreadable": "red", "review": "yellow", "failed": "red"}
PLAIN_WIDTH = 160


def console(*, stderr: bool = False) -> Console:
    """Return a console with colour on a terminal only, and room for whole lines elsewhere."""
    stream = sys.stderr if stderr else sys.stdout
    is_terminal = stream.isatty()
    return Console(
        file=stream,
        width=None if is_terminal else PLAIN_WIDTH,
        highlight=False,
        soft_wrap=not is_terminal,
        emoji=False,
        markup=False,
    )


def points(value: float | None) -> str:
    """Return points without trailing zeros, "-" for none."""
    return "-" if value is None else f"{round(value, 3):g}"


def grade_table(rows: Sequence[GradeRow]) -> Table:
    """Return the table that ends `autograder grade`."""
    names = _cell_names(rows)
    table = Table(box=None, pad_edge=False, header_style="bold")
    table.add_column("student", overflow="fold")
    for name in names:
        table.add_column(short_name(name), justify="right")
    table.add_column("auto", justify="right")
    table.add_column("by hand", justify="right")
    table.add_column("status")
    table.add_column("notes", overflow="fold")
    for row in rows:
        cells = {cell.name: cell for cell in row.grade.cells} if row.grade else {}
        table.add_row(
            one_line(row.student, 64),
            *(points(cells[name].auto) if name in cells else "-" for name in names),
            points(row.grade.automatic) if row.grade else "-",
            _by_hand(row),
            Text(row.status, style=COLOURS[row.status]),
            _notes(row.notes),
        )
    return table


def print_table(table: Table) -> None:
    """Print to stdout."""
    console().print(table)


def grade_json(assignment: str, rows: Sequence[GradeRow]) -> str:
    """Return the rows as JSON, schema 1."""
    return json.dumps(
        {"schema": 1, "assignment": assignment, "submissions": [_row_json(row) for row in rows]},
        indent=1,
    )


def _row_json(row: GradeRow) -> dict[str, Any]:
    grade = row.grade
    return {
        "student": row.student,
        "status": row.status,
        "notes": list(row.notes),
        "backend": row.backend,
        "is_new": row.is_new,
        "automatic": grade.automatic if grade else None,
        "max_automatic": grade.max_automatic if grade else None,
        "score": grade.score if grade else None,
        "max_score": grade.max_score if grade else None,
        "pending": list(grade.pending) if grade else [],
        "cells": {cell.name: cell.score for cell in grade.cells} if grade else {},
    }


def _by_hand(row: GradeRow) -> str:
    """Return what people gave so far, or that they have yet to."""
    if row.grade is None:
        return "-"
    if row.grade.pending:
        return f"{len(row.grade.pending)} pending"
    manual = [cell.score for cell in row.grade.cells if cell.is_manual]
    return points(sum(manual)) if manual else "-"


def _notes(notes: Sequence[str]) -> str:
    shown = [one_line(note, 200) for note in notes[:2]]
    return "; ".join([*shown, f"and {len(notes) - 2} more"] if len(notes) > 2 else shown)


def _cell_names(rows: Sequence[GradeRow]) -> list[str]:
    cells: list[CellGrade] = [cell for row in rows if row.grade for cell in row.grade.cells]
    return sorted({cell.name for cell in cells if not cell.is_manual})
