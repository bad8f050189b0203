# SPDX-License-Identifier: MIT
"""What a chapter needs, what is there, and what is missing: the list behind `--check`.

Files are read, never imported or run.  Whether the parts are *right* is for the other tests to say.
"""

import json
import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from autograder.chapter.places import Chapter
from autograder.inventory import AssignmentError, CheckInfo, read_inventory
from autograder.view import graded_functions

__all__ = ["Need", "needs_of"]

CHECKS, CHECKS_EACH = 25, 5
WRONG, WRONG_TRIVIAL, RIGHT = 8, 4, 2
"""Answers to a function; it is trivial where the notebook gives it one dot of difficulty."""
QUESTIONS = (4, 6)
PAGE = (
    ("1 “Reading: about … minutes”", r"\bReading: about \d+ minutes", 1, 1),
    ("1 “Builds on”", r"^\*\*Builds on\*\* \S", 1, 1),
    ("2 section “The question”", r"^## The question$", 1, 1),
    ("2 numbered formulas", r"^```\{math\}\n:label:", 1, None),
    ("2 inline diagrams, {svg-figure}", r"^:::+\{svg-figure\}", 1, None),
    ("2 explorables", r"^:::+\{explorable\}", 1, None),
    ("3 section on a batch, followed by eye", r"^## .*\bbatch\b.*\beye\b", 1, None),
    ("3 ungraded exercises", r"^:::+\{exercise\}", 1, None),
    ("3 their folded solutions", r"^:::+\{solution\} \S+\n:class: dropdown", 1, None),
    ("4 figures of runs, show(…, alt=…)", r"^ *show\(", 1, None),
    ("4 numbers from runs, {glue:text}", r"\{glue:text\}`", 1, None),
    ("5 section “Pitfalls”", r"^## .*\b[Pp]itfalls\b", 1, 1),
    ("6 section “In production”", r"^## In production", 1, 1),
    ("7 quizzes", r"^::::+\{quiz\}", 1, 1),
    ("7 questions of the quiz", r"^:::+\{question\} ", *QUESTIONS),
    ("8 section “Recap”", r"^## Recap", 1, 1),
    ("8 terms of the glossary, {term}", r"\{term\}`", 5, None),
    ("8 rows of the table of exercises", r"^\| \d+\.\d+ \| .+ \| [●○]{5} \| ", 5, None),
    ("8 citations", r"\{cite:[pt]\}`", 1, None),
)
"""Of the page: part of the anatomy and what it needs, its pattern, how many at least and most."""
CAUGHT = "# caught by: "


@dataclass(frozen=True)
class Need:
    """One thing that a chapter needs.

    Args:
        part: file or folder it belongs to.
        needed: what, in words.
        there: what was found, in words.
        is_met: whether that will do.
    """

    part: str
    needed: str
    there: str
    is_met: bool


def needs_of(chapter: Chapter) -> list[Need]:
    """Return all that the chapter needs, in the order in which it is written."""
    cells = _cells(chapter.notebook)
    functions = _functions(cells)
    return [
        *_library(chapter, functions),
        *_notebook(chapter, cells, functions),
        *_checks(chapter, functions),
        *_answers(chapter, cells, functions),
        *_page(chapter),
        *_claim(chapter),
        _marks(chapter),
    ]


def _count(part: str, needed: str, there: int, least: int, most: int | None = None) -> Need:
    is_met = least <= there and (most is None or there <= most)
    amount = f"{least} or more" if most is None else f"{least} to {most}" if most > least else least
    return Need(part, f"{needed}: {amount}", str(there), is_met)


def _there(part: str, needed: str, is_met: bool) -> Need:
    return Need(part, needed, "yes" if is_met else "no", is_met)


def _cells(notebook: Path) -> list[dict[str, Any]]:
    if not notebook.is_file():
        return []
    cells = json.loads(notebook.read_text("utf-8"))["cells"]
    return [cell | {"source": "".join(cell["source"])} for cell in cells]


def _label(cell: dict[str, Any]) -> dict[str, Any]:
    return dict(cell["metadata"].get("nbgrader", {}))


def _functions(cells: list[dict[str, Any]]) -> dict[str, str]:
    """Return the grade_id of each function that the notebook grades."""
    labels = [_label(cell) for cell in cells if cell["cell_type"] == "code"]
    names = [label["grade_id"] for label in labels if label.get("grade")]
    return {name.split("_", 2)[2]: name for name in names if name.count("_") >= 2}


def _library(chapter: Chapter, functions: dict[str, str]) -> Iterator[Need]:
    marked = {
        node.name
        for path in sorted((chapter.root / "policylab").rglob("*.py"))
        for name, node in graded_functions(path.read_text("utf-8"))
        if name == chapter.name
    }
    for name in sorted(functions.keys() | marked):
        needed = f'{name}, marked @exercise("{chapter.name}")'
        yield _there("policylab/", needed, name in marked)


def _notebook(
    chapter: Chapter, cells: list[dict[str, Any]], functions: dict[str, str]
) -> Iterator[Need]:
    part = f"solutions/{chapter.name}/"
    yield _count(part, "graded functions", len(functions), 1)
    names = {_label(cell).get("grade_id") for cell in cells}
    hints = {cell["id"] for cell in cells if "<summary>Hint</summary>" in cell["source"]}
    for cell in functions.values():
        yield _there(part, f"{cell}_answer", f"{cell}_answer" in names)
        yield _there(part, f"{cell}_visible", f"{cell}_visible" in names)
        yield _there(part, f"a hint for {cell}", f"{cell}_hint".replace("_", "-") in hints)
    by_hand = [c for c in cells if c["cell_type"] == "markdown" and _label(c).get("grade")]
    yield _count(part, "questions marked by a person", len(by_hand), 1)
    explore = [cell for cell in cells if str(_label(cell).get("grade_id")).endswith("_explore")]
    yield _count(part, "cells that show something (_explore)", len(explore), 1)
    released = f"exercises/{chapter.name}/"
    yield _there(released, "the released notebook: make exercises", chapter.exercise.is_file())


def _checks(chapter: Chapter, functions: dict[str, str]) -> Iterator[Need]:
    part = f"autograder/checks/{chapter.name}/"
    for name in ("assignment.toml", "rubric.md"):
        yield _there(part, name, (chapter.checks / name).is_file())
    checks = _inventory(chapter)
    yield _count(part, "checks", len(checks), CHECKS)
    for function, cell in functions.items():
        mine = [check for check in checks if check.cell == cell]
        yield _count(part, f"checks of {function}", len(mine), CHECKS_EACH)


def _inventory(chapter: Chapter) -> tuple[CheckInfo, ...]:
    try:
        return read_inventory(chapter.checks)
    except AssignmentError:  # no checks yet, or faulty ones, which other tests name
        return ()


def _answers(
    chapter: Chapter, cells: list[dict[str, Any]], functions: dict[str, str]
) -> Iterator[Need]:
    known = {check.id for check in _inventory(chapter)}
    for function, cell in functions.items():
        folder = chapter.answers / function
        part = f"tests/answers/{chapter.name}/{function}/"
        wrong = sorted(folder.glob("wrong_*.py"))
        least = WRONG_TRIVIAL if _is_trivial(cells, cell) else WRONG
        yield _count(part, "wrong answers", len(wrong), least)
        yield _count(part, "right answers", len(list(folder.glob("right_*.py"))), RIGHT)
        yield _there(part, "shaped.py", (folder / "shaped.py").is_file())
        named = {path: path.read_text("utf-8").splitlines()[1:2] for path in wrong}
        lost = [
            path.stem
            for path, line in named.items()
            if not line or line[0].removeprefix(CAUGHT) not in known
        ]
        needed = f'each names its check in line 2: "{CAUGHT}…"'
        yield Need(part, needed, ", ".join(["not", *lost]) if lost else "yes", not lost)


def _is_trivial(cells: list[dict[str, Any]], cell: str) -> bool:
    number = ".".join(str(int(digits)) for digits in re.findall(r"\d+", cell)[:2])
    texts = [item["source"] for item in cells if f"### Exercise {number}: " in item["source"]]
    return any("Difficulty ●○○○○" in text for text in texts)


def _page(chapter: Chapter) -> Iterator[Need]:
    part = f"book/{chapter.name}.md"
    text = chapter.page.read_text("utf-8") if chapter.page.is_file() else ""
    toc = (chapter.root / "_toc.yml").read_text("utf-8")
    yield _there("_toc.yml", f"file: {chapter.name}", f"file: {chapter.name}\n" in toc)
    goals = re.search(r"^:::\{admonition\} You will be able to\n(.*?)^:::$", text, re.M | re.S)
    found = len(re.findall(r"^- ", goals[1], re.M)) if goals else 0
    yield _count(part, "1 goals under “You will be able to”", found, 3, 5)
    for needed, pattern, least, most in PAGE:
        yield _count(part, needed, len(re.findall(pattern, text, re.M)), least, most)
    box = f":::{{exercise-notebook}} {chapter.name}\n"
    yield _count(part, "8 box of the exercise notebook", text.count(box), 1, 1)


def _claim(chapter: Chapter) -> Iterator[Need]:
    text = chapter.page.read_text("utf-8") if chapter.page.is_file() else ""
    named = sorted(set(re.findall(r"\.\./(benchmarks/\w+)\.json", text)))
    yield _count(f"book/{chapter.name}.md", "4 claims read from benchmarks/*.json", len(named), 1)
    for stem in named:
        for suffix in (".py", ".json"):
            path = chapter.root / f"{stem}{suffix}"
            yield _there("benchmarks/", path.name, path.is_file())


def _marks(chapter: Chapter) -> Need:
    marks = chapter.marks()
    shown = f"{len(marks)}, the first in {marks[0]}" if marks else "0"
    return Need("everywhere", "no line with FILL", shown, not marks)
