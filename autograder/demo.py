# SPDX-License-Identifier: MIT
"""`autograder demo`: the main job on a small class, from the solution to feedback.

The course root is made anew under _build/demo, and an instructor's own course is never touched.
The demo fails where a score differs from what the submission deserves (see `demo_class`), or where
the table and the gradebook differ.
"""

import functools
import json
import shutil
import sqlite3
import sys
from collections.abc import Sequence
from contextlib import closing
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from rich.table import Table
from rich.text import Text

from autograder.assignment import Assignment, load_assignment
from autograder.course import CONFIG, Course, CourseError, find_course
from autograder.demo_class import Entry, demo_class
from autograder.expected import trusted_points
from autograder.feedback import make_feedback
from autograder.grade import GradeRow, grade_assignment
from autograder.gradebook import short_name, total
from autograder.progress import show_progress
from autograder.release import release
from autograder.secret import read_secret
from autograder.submission import runnable_cells
from autograder.tables import points, print_table

__all__ = ["Outcome", "run_demo"]

ASSIGNMENT = "02_llm_as_policy"
MARKER = ".policylab-demo"


@dataclass(frozen=True)
class Outcome:
    """What one submission deserved and got, by exercise."""

    entry: Entry
    expected: dict[str, float]
    row: GradeRow
    gradebook: dict[str, float | None]

    @property
    def got(self) -> dict[str, float | None]:
        cells = self.row.grade.cells if self.row.grade else ()
        return {cell.name: cell.auto for cell in cells if not cell.is_manual}

    @property
    def is_right(self) -> bool:
        return self.expected == self.got == self.gradebook


def run_demo(root: str | None, course_root: str | None, *, as_json: bool) -> int:
    """Run the demo; return 0 if every score is what it should be, else 1."""
    home = find_course(course_root)
    course = _fresh_course(home, Path(root).resolve() if root else home.root / "_build" / "demo")
    _say(f"course root: {course.root}")
    released = json.loads(release(course, ASSIGNMENT).read_text(encoding="utf-8"))
    assignment = load_assignment(ASSIGNMENT, course.root)
    entries = demo_class(assignment, home.root / "tests" / "answers" / ASSIGNMENT)
    _hand_in(course, entries, released)
    _say(f"grading {len(entries)} submissions; some never end or take all memory")
    with show_progress() as progress:
        rows = {row.student: row for row in grade_assignment(course, ASSIGNMENT, progress=progress)}
    _say("asking the checks what each submission deserves")
    expected = _expected(course, assignment, entries, released)
    stored = _stored_scores(course)
    outcomes = [
        Outcome(entry, expected[entry.student], rows[entry.student], stored.get(entry.student, {}))
        for entry in entries
    ]
    pages, failures = make_feedback(course, ASSIGNMENT)
    if as_json:
        print(json.dumps(_json(course, outcomes), indent=1))
    else:
        _print(home, course, outcomes, pages)
    for failure in failures:
        _say(f"no feedback for {failure}")
    is_right = all(outcome.is_right for outcome in outcomes)
    return int(not is_right or len(pages) != len(entries))


def _say(text: str) -> None:
    print(f"demo: {text}", file=sys.stderr, flush=True)


def _fresh_course(home: Course, root: Path) -> Course:
    """Make an empty course with the assignment's solution.

    Raises: CourseError if `root` holds anything but an earlier demo.
    """
    if root.exists() and any(root.iterdir()) and not (root / MARKER).is_file():
        raise CourseError(f"{root} is not empty, and no earlier demo. Name another with --root.")
    shutil.rmtree(root, ignore_errors=True)
    root.mkdir(parents=True)
    (root / MARKER).write_text("Made by `autograder demo`, which removes it on its next run.\n")
    shutil.copy(home.root / CONFIG, root)
    shutil.copytree(home.solutions / ASSIGNMENT, root / "solutions" / ASSIGNMENT)
    return find_course(root)


def _hand_in(course: Course, entries: Sequence[Entry], released: dict[str, Any]) -> None:
    for entry in entries:
        folder = course.submitted / entry.student / ASSIGNMENT
        folder.mkdir(parents=True)
        (folder / f"{ASSIGNMENT}.ipynb").write_text(entry.text(released), encoding="utf-8")


def _expected(
    course: Course, assignment: Assignment, entries: Sequence[Entry], released: dict[str, Any]
) -> dict[str, dict[str, float]]:
    """Return what each submission deserves, by student and cell."""
    secret = read_secret(course.state)

    @functools.cache
    def deserved(cells: tuple[tuple[str, str], ...]) -> dict[str, float]:
        return trusted_points(assignment, cells, secret)

    found = {}
    for entry in entries:
        harmless = replace(entry, code=entry.deserves, edit=lambda notebook: None)
        notebook = json.loads(harmless.text(released))
        for cell in notebook["cells"]:
            cell["source"] = "".join(cell["source"])
        found[entry.student] = deserved(runnable_cells(notebook))
    return found


def _stored_scores(course: Course) -> dict[str, dict[str, float | None]]:
    """Read the automatic scores out of the gradebook's tables, past nbgrader and our own code."""
    query = """
        select submitted_assignment.student_id, base_cell.name, grade.auto_score
        from grade
        join base_cell on base_cell.id = grade.cell_id
        join submitted_notebook on submitted_notebook.id = grade.notebook_id
        join submitted_assignment on submitted_assignment.id = submitted_notebook.assignment_id
        join grade_cells on grade_cells.id = base_cell.id
        where grade_cells.cell_type = 'code'
    """
    scores: dict[str, dict[str, float | None]] = {}
    with closing(sqlite3.connect(course.gradebook)) as connection:
        for student, cell, score in connection.execute(query):
            scores.setdefault(student, {})[cell] = score
    return scores


def _print(home: Course, course: Course, outcomes: Sequence[Outcome], pages: list[Path]) -> None:
    table = Table(box=None, pad_edge=False, header_style="bold")
    for name in ("student", "what it hands in"):
        table.add_column(name, overflow="fold")
    for name in ("expected", "got", "gradebook"):
        table.add_column(name, justify="right")
    table.add_column("by hand")
    table.add_column("")
    for outcome in outcomes:
        grade = outcome.row.grade
        table.add_row(
            outcome.entry.student,
            outcome.entry.title,
            points(total(outcome.expected.values())),
            points(total(outcome.got.values())),
            points(total(outcome.gradebook.values())),
            "pending" if grade and grade.pending else "-",
            Text("ok", "green") if outcome.is_right else Text(_difference(outcome), "red"),
        )
    print_table(table)
    book = home.root / "_build" / "html" / "index.html"
    print()
    print(f"book       {book if book.is_file() else 'not built yet: make book'}")
    print(f"feedback   {pages[0] if pages else '-'} and {len(pages) - 1} more")
    print(f"gradebook  {course.gradebook}")


def _difference(outcome: Outcome) -> str:
    """Return the exercises whose scores differ."""
    parts = [
        f"{short_name(name)}: {points(value)} / {points(outcome.got.get(name))}"
        f" / {points(outcome.gradebook.get(name))}"
        for name, value in outcome.expected.items()
        if not value == outcome.got.get(name) == outcome.gradebook.get(name)
    ]
    return "WRONG " + ", ".join(parts or outcome.row.notes)


def _json(course: Course, outcomes: Sequence[Outcome]) -> dict[str, Any]:
    return {
        "schema": 1,
        "course_root": str(course.root),
        "is_right": all(outcome.is_right for outcome in outcomes),
        "submissions": [
            {
                "student": outcome.entry.student,
                "title": outcome.entry.title,
                "expected": outcome.expected,
                "got": outcome.got,
                "gradebook": outcome.gradebook,
                "status": outcome.row.status,
                "notes": list(outcome.row.notes),
                "is_right": outcome.is_right,
            }
            for outcome in outcomes
        ],
    }
