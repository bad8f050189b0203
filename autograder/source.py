# SPDX-License-Identifier: MIT
"""What grading reads from a solution notebook: cells with points, and the modules it imports."""

import ast
import json
import math
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from autograder.inventory import AssignmentError

__all__ = ["GradedCell", "Source", "read_source"]

NOT_RUN = ("_visible", "_explore")


@dataclass(frozen=True)
class GradedCell:
    """A cell that carries points in the solution notebook."""

    name: str
    points: float


@dataclass(frozen=True)
class Source:
    """A solution notebook.

    Args:
        cells: graded by checks, in notebook order.
        manual_cells: graded by a person, in notebook order.
        imports: modules that the cells which the grader runs import, in order.
    """

    cells: tuple[GradedCell, ...]
    manual_cells: tuple[GradedCell, ...]
    imports: tuple[str, ...]


def read_source(path: Path) -> Source:
    """Read a solution notebook.

    Raises: AssignmentError if it is no notebook, or a graded cell lacks its name or points.
    """
    try:
        notebook = json.loads(path.read_text("utf-8"))
        rows = [
            (cell["cell_type"], cell["metadata"].get("nbgrader", {}), "".join(cell["source"]))
            for cell in notebook["cells"]
        ]
    except FileNotFoundError:
        raise AssignmentError(f"{path} is missing: it owns the graded cells' points.") from None
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise AssignmentError(f"{path} is not a notebook: {error!r}") from None
    automatic: list[GradedCell] = []
    manual: list[GradedCell] = []
    imports: dict[str, None] = {}
    for cell_type, label, text in rows:
        if label.get("grade"):
            by_hand = cell_type != "code" or label.get("solution")
            (manual if by_hand else automatic).append(_graded_cell(path, label))
        elif cell_type == "code" and not str(label.get("grade_id", "")).endswith(NOT_RUN):
            imports.update(dict.fromkeys(_imports(path, text)))
    for name, count in Counter(cell.name for cell in [*automatic, *manual]).items():
        if count > 1:
            raise AssignmentError(f"{path}: {count} cells have the grade_id {name!r}.")
    return Source(tuple(automatic), tuple(manual), tuple(imports))


def _graded_cell(path: Path, label: dict[str, Any]) -> GradedCell:
    name: Any = label.get("grade_id")
    points: Any = label.get("points")
    is_number = isinstance(points, int | float) and not isinstance(points, bool)
    if type(name) is not str or not is_number or not 0 <= points < math.inf:
        raise AssignmentError(f"{path}: cell {name!r} needs a grade_id and points of at least 0.")
    return GradedCell(name, float(points))


def _imports(path: Path, text: str) -> Iterator[str]:
    """Yield the modules that a cell imports."""
    try:
        tree = ast.parse(text)
    except SyntaxError as error:
        raise AssignmentError(f"{path}: a code cell is not Python: {error}") from None
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
            yield node.module
