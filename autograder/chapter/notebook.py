# SPDX-License-Identifier: MIT
"""The solution notebook of a new chapter, out of templates of cells.

A template is text; a line `%% kind name flag` starts a cell.  Kind is code or markdown; the flags
are solution, locked, graded, explore and manual, as tests/test_solutions.py wants them.
"""

import re
from typing import Any

from autograder.chapter.library import Answer, answer_cell, sorted_imports
from autograder.chapter.places import Chapter
from autograder.chapter.templates import render

__all__ = ["MINUTES", "POINTS", "cell_name", "minutes_of", "notebook_text", "words_of"]

POINTS, MINUTES = 4, (15, 10)
"""Of each exercise; minutes of a function and of the question."""
HEAD = re.compile(r"^%% (code|markdown) (\S+)(?: (\w+))?\n", re.M)
FLAGS: dict[str, dict[str, Any]] = {
    "": {},
    "solution": {"solution": True},
    "locked": {"locked": True},
    "explore": {"locked": True},
    "graded": {"grade": True, "locked": True, "points": POINTS},
    "manual": {"grade": True, "solution": True, "points": POINTS},
}


def cell_name(chapter: Chapter, index: int, function: str) -> str:
    """Return the grade_id of a function's graded cell."""
    return f"ex{chapter.digits}_{index}_{function}"


def words_of(function: str) -> str:
    """Return the heading of a function's exercise."""
    return function.replace("_", " ")


def minutes_of(functions: int) -> int:
    """Return the minutes of all exercises."""
    return MINUTES[0] * functions + MINUTES[1]


def notebook_text(chapter: Chapter, title: str, answers: list[Answer]) -> str:
    """Return the notebook as normalised JSON."""
    import nbformat

    last = len(answers) + 1
    imports = sorted({line for answer in answers for line in answer.imports})
    words = {
        "number": str(int(chapter.digits)),
        "digits": chapter.digits,
        "title_low": title if title[1:2].isupper() else title[:1].lower() + title[1:],
        "automatic": str(POINTS * len(answers)),
        "total": str(POINTS * last),
        "minutes": str(minutes_of(len(answers))),
        "last": str(last),
        "imports": "".join(f"\n{line}" for line in imports),
    }
    text = render("notebook", **words)
    for index, answer in enumerate(answers, start=1):
        text += render(
            "exercise",
            **words,
            index=str(index),
            function=answer.name,
            words=words_of(answer.name),
            cell=cell_name(chapter, index, answer.name),
            answer=answer_cell(answer),
        )
    cells = _cells(text + render("closing", **words))
    setup = next(cell for cell in cells if cell["id"] == "setup")
    setup["source"] = sorted_imports(setup["source"])
    kernel = {"display_name": "Python 3", "language": "python", "name": "python3"}
    notebook = {
        "cells": cells,
        "metadata": {"kernelspec": kernel, "language_info": {"name": "python"}},
        "nbformat": 4,
        "nbformat_minor": 5,
    }
    return str(nbformat.writes(nbformat.from_dict(notebook))) + "\n"


def _cells(text: str) -> list[dict[str, Any]]:
    parts = HEAD.split(text)[1:]
    return [_cell(*parts[start : start + 4]) for start in range(0, len(parts), 4)]


def _cell(kind: str, name: str, flag: str | None, source: str) -> dict[str, Any]:
    metadata: dict[str, Any] = {}
    if flag:
        plain = {"grade": False, "locked": False, "solution": False, "task": False}
        metadata["nbgrader"] = plain | {"grade_id": name, "schema_version": 3} | FLAGS[flag]
    if flag == "explore":
        metadata["policylab"] = {"explore": True}
    cell: dict[str, Any] = {
        "cell_type": kind,
        "id": name.replace("_", "-")[:64],
        "metadata": metadata,
        "source": source.rstrip("\n"),
    }
    return cell | ({"execution_count": None, "outputs": []} if kind == "code" else {})
