# SPDX-License-Identifier: MIT
"""`Rebuild`: the submission's cells, put back into the shape that the gradebook knows.

In place of nbgrader's DeduplicateIds and OverwriteCells.  Of the submission only the text of
known, unlocked cells and of the student's own added cells counts; labels, points, types and locked
texts are the gradebook's.  Copied, split, deleted, retyped and re-labelled cells are repaired
instead of ending the run for every student after this one.
"""

import copy
import os
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from nbformat.notebooknode import NotebookNode, from_dict
from nbgrader.api import Gradebook
from nbgrader.preprocessors import NbGraderPreprocessor
from nbgrader.utils import find_all_files
from traitlets import Bool

from autograder.intake import clean_notebook

__all__ = ["Rebuild", "SourceCell", "read_source_cells", "rebuild"]


@dataclass(frozen=True)
class SourceCell:
    """A labelled cell as it was released, from the gradebook."""

    name: str
    cell_type: str
    source: str
    locked: bool
    grade: bool
    solution: bool
    task: bool
    points: float | None
    checksum: str | None

    def label(self) -> dict[str, Any]:
        """Return the cell's nbgrader metadata."""
        label = {
            "grade_id": self.name,
            "grade": self.grade,
            "solution": self.solution,
            "task": self.task,
            "locked": self.locked,
            "checksum": self.checksum,
            "cell_type": self.cell_type,
            "schema_version": 3,
        }
        return label if self.points is None else label | {"points": self.points}


def read_source_cells(db_url: str, assignment: str, notebook: str) -> tuple[SourceCell, ...]:
    """Return the labelled cells of a released notebook, in order.

    Raises: nbgrader.api.MissingEntry if it was never released.
    """
    with Gradebook(db_url) as gradebook:
        entry = gradebook.find_notebook(notebook, assignment)
        graded = {cell.name: float(cell.max_score) for cell in entry.grade_cells}
        tasks = {cell.name: float(cell.max_score) for cell in entry.task_cells}
        solutions = {cell.name for cell in entry.solution_cells}
        return tuple(
            SourceCell(
                name=cell.name,
                cell_type=cell.cell_type,
                source=cell.source,
                locked=bool(cell.locked),
                grade=cell.name in graded,
                solution=cell.name in solutions,
                task=cell.name in tasks,
                points=graded.get(cell.name, tasks.get(cell.name)),
                checksum=cell.checksum,
            )
            for cell in entry.source_cells
        )


def rebuild(
    notebook: NotebookNode, sources: Sequence[SourceCell]
) -> tuple[NotebookNode, tuple[str, ...]]:
    """Return the rebuilt notebook and what was repaired; the argument is not changed.

    The first cell of each known label is that cell; an unchanged copy of a locked cell is dropped,
    any other copy is an added cell of the student's.  A missing cell is put back after the one that
    precedes it in the release.
    """
    rebuilt = copy.deepcopy(notebook)
    known = {source.name: source for source in sources}
    found, repairs = _claim_cells(rebuilt, known)
    previous = None
    for source in sources:
        cell = found.get(source.name)
        if cell is None:
            cell = from_dict(
                {"cell_type": source.cell_type, "metadata": {}, "source": source.source}
            )
            _insert_after(rebuilt, previous, cell)
            repairs.append(f"{source.name} was missing and is back as it was released")
        if cell.cell_type != source.cell_type:
            repairs.append(
                f"{source.name} was a {cell.cell_type} cell and is {source.cell_type} again"
            )
        if source.locked and cell.source != source.source:
            repairs.append(f"{source.name} was edited and is back as it was released")
            cell.source = source.source
        cell.cell_type = source.cell_type
        cell.metadata = from_dict({"nbgrader": source.label()})
        previous = cell
    for number, cell in enumerate(rebuilt.cells):
        _normalise(cell, number)
    return rebuilt, tuple(repairs)


def _claim_cells(
    notebook: NotebookNode, known: dict[str, SourceCell]
) -> tuple[dict[str, NotebookNode], list[str]]:
    """Strip every label; return the first cell of each known one, and what was repaired."""
    found: dict[str, NotebookNode] = {}
    kept, repairs = [], []
    for cell in notebook.cells:
        label = cell.metadata.get("nbgrader")
        name = label.get("grade_id") if isinstance(label, dict) else None
        cell.metadata = NotebookNode()
        if isinstance(name, str) and name in known:
            if name not in found:
                found[name] = cell
            elif known[name].locked and cell.source == known[name].source:
                repairs.append(f"a copy of {name} was dropped")
                continue
            else:
                repairs.append(f"a copy of {name} counts as an added cell")
        kept.append(cell)
    notebook.cells = kept
    return found, repairs


def _insert_after(
    notebook: NotebookNode, previous: NotebookNode | None, cell: NotebookNode
) -> None:
    # By identity: list.index compares cells by value, and copies are equal.
    places = (place for place, other in enumerate(notebook.cells, start=1) if other is previous)
    notebook.cells.insert(next(places, 0), cell)


def _normalise(cell: NotebookNode, number: int) -> None:
    """Leave the cell with no output, attachment or id of the student's."""
    for key in set(cell) - {"cell_type", "metadata", "source"}:
        del cell[key]
    cell.id = f"cell-{number}"
    if cell.cell_type == "code":
        cell.execution_count, cell.outputs = None, []


class Rebuild(NbGraderPreprocessor):
    """nbgrader's step around `rebuild`; must stand first."""

    staged = Bool(
        False, help="the notebook is a clean copy of autograder's own, with notes in its metadata"
    ).tag(config=True)

    def preprocess(
        self, nb: NotebookNode, resources: dict[str, Any]
    ) -> tuple[NotebookNode, dict[str, Any]]:
        context = resources["nbgrader"]
        if not self.staged:
            nb = from_dict(clean_notebook(nb))
            self._drop_foreign_files(context["assignment"], context["student"])
        sources = read_source_cells(context["db_url"], context["assignment"], context["notebook"])
        rebuilt, repairs = rebuild(nb, sources)
        notes = rebuilt.metadata.get("policylab", {})
        problem, warnings = notes.get("problem", ""), notes.get("warnings", [])
        if not problem:  # otherwise every cell is missing
            warnings = [*warnings, *repairs]
        for warning in warnings:
            self.log.warning("%s: %s", context["student"], warning)
        rebuilt.metadata["policylab"] = {"problem": problem, "warnings": warnings}
        return rebuilt, resources

    def _drop_foreign_files(self, assignment: str, student: str) -> None:
        """Remove what nbgrader copied from the submission: feedback would hand it out again.

        nbgrader follows links there, so that a file may be anyone's.
        """
        coursedir = self.parent.parent.coursedir
        target = coursedir.format_path(coursedir.autograded_directory, student, assignment)
        source = coursedir.format_path(coursedir.source_directory, ".", assignment)
        own = {os.path.relpath(path, source) for path in find_all_files(source)}
        for path in find_all_files(target):
            name = os.path.relpath(path, target)
            if name not in own and name != "timestamp.txt":
                self.log.warning("%s: %s is not part of the assignment: dropped", student, name)
                os.remove(path)
