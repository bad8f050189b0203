# SPDX-License-Identifier: MIT
"""The files of a new chapter: planned as a whole, then written, and never over existing ones."""

import builtins
import json
import keyword
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

from autograder.chapter.contents import with_chapter
from autograder.chapter.library import Answer, find_answer, stub_answer
from autograder.chapter.notebook import (
    MINUTES,
    POINTS,
    cell_name,
    minutes_of,
    notebook_text,
    words_of,
)
from autograder.chapter.places import Chapter, ChapterError, chapters
from autograder.chapter.templates import read, render

__all__ = ["Plan", "lay_out", "plan"]

VALUE = "FILL a slip that the pitfalls name"
RIGHT = "the whole function"
#: Slug, what is wrong, the check that must be the only one to catch it, what to write.
WRONG = (
    ("first_slip", VALUE, "value", f"{RIGHT}, with this slip"),
    ("second_slip", VALUE, "value", f"{RIGHT}, with this slip"),
    ("third_slip", VALUE, "value", f"{RIGHT}, with this slip"),
    ("no_gradient", "gives the right value without its graph", "gradient", f"{RIGHT}, cut off"),
    ("property_broken", "FILL breaks the property", "property", f"{RIGHT}, but this"),
    ("always_float32", "rounds to float32", "float64", f"{RIGHT}, in float32"),
    ("no_guard", "looks at no argument before it computes", "malformed", f"{RIGHT}, unguarded"),
    ("in_place", "writes into the caller's tensor", "inputs_kept", f"{RIGHT}, in place"),
)
RIGHTS = ("loop", "other_way")
#: What the notebook of a chapter already means by these names.
TAKEN = frozenset({"torch", "Tensor", "exercise", *dir(builtins)})


@dataclass(frozen=True)
class Plan:
    """What laying out will do.

    Args:
        new: contents of the files to make, by path.
        toc: the table of contents with the chapter in it.
        to_write: source of each function that the library lacks, to be written by hand.
        stubs: names of the functions that the library lacks.
    """

    chapter: Chapter
    new: dict[Path, str]
    toc: str
    to_write: dict[str, str]
    stubs: tuple[str, ...]

    @property
    def toc_path(self) -> Path:
        return self.chapter.root / "_toc.yml"


def plan(chapter: Chapter, title: str, functions: Sequence[str], module: str | None = None) -> Plan:
    """Plan the files of a new chapter; write nothing.

    Args:
        chapter: none of its files exists.
        title: for people, such as "Reward models".
        functions: names of the graded functions, in the order of the exercises.
        module: of policylab, to be made with a stub of each function that the library lacks.
    Raises: ChapterError if a name will not do or a file exists.
    """
    _refuse_existing(chapter.root, chapter.own_files())
    same = [other.name for other in chapters(chapter.root) if other.digits == chapter.digits]
    if same and same != [chapter.name]:
        raise ChapterError(f"chapter {chapter.digits} is {same[0]}. Take another number.")
    _check_words(title, functions)
    found = {name: find_answer(chapter, name) for name in functions}
    missing = [name for name, answer in found.items() if answer is None]
    path = _module_path(chapter, module) if module is not None else None
    dotted = ".".join(path.relative_to(chapter.root).with_suffix("").parts) if path else ""
    stub = read("stub")
    answers = [answer or stub_answer(name, stub, dotted) for name, answer in found.items()]
    new = _files(chapter, title, answers)
    marked = {
        answer.name: f'@exercise("{chapter.name}")\n{answer.source}\n'
        for answer in answers
        if answer.name in missing
    }
    if path is not None:
        new[path] = "\n\n".join([read("module"), *marked.values()])
        marked = {}
    _refuse_existing(chapter.root, new)
    toc = (chapter.root / "_toc.yml").read_text("utf-8")
    return Plan(chapter, new, with_chapter(toc, chapter.name), marked, tuple(missing))


def lay_out(planned: Plan) -> None:
    """Write the files; an error part of the way leaves what exists untouched."""
    for path, text in planned.new.items():
        path.parent.mkdir(parents=True, exist_ok=True)
        with open(path, "x", encoding="utf-8") as file:
            file.write(text)
    planned.toc_path.write_text(planned.toc, encoding="utf-8")


def _check_words(title: str, functions: Sequence[str]) -> None:
    if not title.strip() or not title.isprintable():
        raise ChapterError('give the chapter a title of one line: --title "Reward models"')
    if not functions:
        raise ChapterError("name the graded functions: --functions preference_probability,…")
    for name in functions:
        if not re.fullmatch(r"[A-Za-z][A-Za-z0-9_]*", name) or keyword.iskeyword(name):
            raise ChapterError(f"{name!r} is no name for a function")
        if name in TAKEN:
            raise ChapterError(f"{name} means something else in the notebook; take another name")
        if functions.count(name) > 1:
            raise ChapterError(f"{name} is named twice")


def _module_path(chapter: Chapter, module: str) -> Path:
    parts = module.removesuffix(".py").replace("/", ".").removeprefix("policylab.").split(".")
    if not all(part.isidentifier() and not keyword.iskeyword(part) for part in parts):
        raise ChapterError(f"{module!r} is no module of policylab; write such as --module losses")
    return (chapter.root / "policylab").joinpath(*parts).with_suffix(".py")


def _files(chapter: Chapter, title: str, answers: list[Answer]) -> dict[Path, str]:
    words = {
        "name": chapter.name,
        "slug": chapter.slug,
        "digits": chapter.digits,
        "number": str(int(chapter.digits)),
        "title": title,
        "title_toml": json.dumps(title, ensure_ascii=False),
        "last": str(len(answers) + 1),
        "minutes": str(minutes_of(len(answers))),
        "table": _table(int(chapter.digits), answers),
        "calls": _listed([f"`{answer.name}`" for answer in answers]),
    }
    files = {
        chapter.page: render("page", **words),
        chapter.diagram: read("diagram"),
        chapter.benchmark: render("benchmark", **words),
        chapter.results: read("results"),
        chapter.notebook: notebook_text(chapter, title, answers),
        chapter.checks / "assignment.toml": render("assignment", **words),
        chapter.checks / "rubric.md": render("rubric", **words),
    }
    for index, answer in enumerate(answers, start=1):
        about = {"function": answer.name, "parameters": answer.parameters}
        check = render("check", **about, cell=cell_name(chapter, index, answer.name))
        files[chapter.checks / f"test_{answer.name}.py"] = check
        folder = chapter.answers / answer.name
        files[folder / "shaped.py"] = read("shaped")
        for slug, what, caught_by, body in WRONG:
            caught = f"# caught by: {answer.name}_{caught_by}\n"
            text = render("answer", **about, what=what, caught=caught, body=body)
            files[folder / f"wrong_{slug}.py"] = text
        for slug in RIGHTS:
            text = render("answer", **about, what="FILL its technique", caught="", body=RIGHT)
            files[folder / f"right_{slug}.py"] = text
    return files


def _listed(names: list[str]) -> str:
    return " and ".join([", ".join(names[:-1]), names[-1]] if names[1:] else names)


def _table(number: int, answers: list[Answer]) -> str:
    """Return the rows of the page's table of exercises, as the notebook's headers have them."""
    rows = [(words_of(answer.name), "●●○○○", MINUTES[0]) for answer in answers]
    rows.append(("read the figure (graded by a person)", "●●●○○", MINUTES[1]))
    return "".join(
        f"| {number}.{index} | {name} | {dots} | {minutes} | {POINTS} |\n"
        for index, (name, dots, minutes) in enumerate(rows, start=1)
    )


def _refuse_existing(root: Path, paths: Iterable[Path]) -> None:
    there = [str(path.relative_to(root)) for path in paths if path.exists()]
    if there:
        shown = ", ".join(there[:8]) + (f" and {len(there) - 8} more" if len(there) > 8 else "")
        raise ChapterError(f"nothing was written, because these exist: {shown}")
