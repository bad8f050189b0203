# SPDX-License-Identifier: MIT
"""`autograder release`: the students' notebook out of the solution, and the gradebook's entry.

nbgrader's generate_assignment does the work.  The notebook is then written in one normal form, so
that the same solution gives the same bytes on every machine, and exercises/ can be committed.
"""

import json
import shutil
from pathlib import Path
from typing import Any

from autograder.converters import ConversionError, convert
from autograder.course import Course, CourseError

__all__ = ["normal_form", "release"]

#: Notebook metadata that depends on the machine or on who saved last.
KEPT_METADATA = ("kernelspec", "policylab")


def release(course: Course, assignment: str) -> Path:
    """Write exercises/`assignment` and register it in the gradebook; return the notebook's path.

    Raises: CourseError if the solution cannot be released, with nbgrader's reason.
    """
    course.require_assignment(assignment)
    with course.locked():
        try:
            convert("GenerateAssignment", course, assignment)
        except ConversionError as error:
            raise CourseError(f"{assignment} cannot be released: {error}") from None
    folder = course.exercises / assignment
    for path in sorted(folder.rglob("*.ipynb")):
        path.write_text(normal_form(json.loads(path.read_text(encoding="utf-8"))), encoding="utf-8")
    shutil.rmtree(folder / ".ipynb_checkpoints", ignore_errors=True)
    return folder / f"{assignment}.ipynb"


def normal_form(notebook: dict[str, Any]) -> str:
    """Return a notebook's text with sorted keys, nbformat 4.5, stable ids and no outputs."""
    seen: set[str] = set()
    cells = []
    for number, cell in enumerate(notebook["cells"]):
        source = cell["source"] if isinstance(cell["source"], str) else "".join(cell["source"])
        label = cell["metadata"].get("nbgrader", {})
        identity = cell.get("id") or label.get("grade_id", f"cell-{number}")[:64]
        if identity in seen:
            identity = f"{identity[:50]}-{number}"
        seen.add(identity)
        plain = {
            "cell_type": cell["cell_type"],
            "id": identity,
            "metadata": cell["metadata"],
            "source": source.splitlines(keepends=True),
        }
        if cell["cell_type"] == "code":
            plain |= {"execution_count": None, "outputs": []}
        cells.append(plain)
    metadata = {
        key: notebook["metadata"][key] for key in KEPT_METADATA if key in notebook["metadata"]
    }
    normal = {"cells": cells, "metadata": metadata, "nbformat": 4, "nbformat_minor": 5}
    return json.dumps(normal, indent=1, sort_keys=True, ensure_ascii=False) + "\n"
