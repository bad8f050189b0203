# SPDX-License-Identifier: MIT
"""Where the files of a chapter lie, and where they still have the mark FILL."""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from autograder.course import CourseError
from autograder.suggest import did_you_mean
from autograder.view import graded_functions

__all__ = ["Chapter", "ChapterError", "Mark", "chapter_at", "chapters"]

NAME = re.compile(r"([0-9]{2})_([a-z][a-z0-9]*(?:_[a-z0-9]+)*)")
MARK = re.compile(r"\bFILL\b")
#: In a notebook as JSON with sorted keys, the line of a cell's id stands above its source.
CELL = re.compile(r' +"id": "([\w-]+)",$')


class ChapterError(CourseError):
    """A chapter cannot be laid out or looked at; the text says why and what to do."""


@dataclass(frozen=True)
class Mark:
    """A line that somebody has yet to write.

    Args:
        path: of the file, relative to the checkout.
        line: its number, from 1.
        cell: id of the notebook's cell that holds it; empty in other files.
    """

    path: Path
    line: int
    cell: str = ""

    def __str__(self) -> str:
        return f"{self.path}:{self.line}"


@dataclass(frozen=True)
class Chapter:
    """A chapter by its name, whether or not its files are there yet.

    Args:
        root: the checkout.
        name: such as "03_reward_models".
    """

    root: Path
    name: str

    @property
    def digits(self) -> str:
        return self.name[:2]

    @property
    def slug(self) -> str:
        return self.name[3:]

    @property
    def page(self) -> Path:
        return self.root / "book" / f"{self.name}.md"

    @property
    def diagram(self) -> Path:
        return self.root / "book" / "diagrams" / f"{self.slug}.svg"

    @property
    def notebook(self) -> Path:
        return self.root / "solutions" / self.name / f"{self.name}.ipynb"

    @property
    def exercise(self) -> Path:
        return self.root / "exercises" / self.name / f"{self.name}.ipynb"

    @property
    def checks(self) -> Path:
        return self.root / "autograder" / "checks" / self.name

    @property
    def answers(self) -> Path:
        return self.root / "tests" / "answers" / self.name

    @property
    def benchmark(self) -> Path:
        return self.root / "benchmarks" / f"{self.slug}.py"

    @property
    def results(self) -> Path:
        return self.benchmark.with_suffix(".json")

    def own_files(self) -> Iterator[Path]:
        """Yield the files that are there and belong to no other chapter."""
        for path in (self.page, self.diagram, self.notebook, self.benchmark, self.results):
            if path.is_file():
                yield path
        for folder in (self.checks, self.answers):
            yield from (path for path in sorted(folder.rglob("*")) if _is_text(path))

    def files(self) -> Iterator[Path]:
        """Yield the chapter's own files and the library's modules with its graded functions."""
        yield from self.own_files()
        for module in sorted((self.root / "policylab").rglob("*.py")):
            marked = graded_functions(module.read_text("utf-8"))
            if any(name == self.name for name, _ in marked):
                yield module

    def marks(self) -> list[Mark]:
        """Return each line of the chapter's files that has the mark."""
        return [mark for path in self.files() for mark in _marks(path, self.root)]


def chapter_at(root: Path, name: str) -> Chapter:
    """Return the chapter called `name`.

    Raises: ChapterError if that cannot be a chapter's name.
    """
    if not NAME.fullmatch(name):
        raise ChapterError(
            f"{name!r} is no name for a chapter. Write two digits, an underscore and a slug of "
            "small letters, digits and underscores, such as 03_reward_models."
        )
    return Chapter(root, name)


def chapters(root: Path) -> list[Chapter]:
    """Return the chapters that have a page or a notebook, in order."""
    found = {path.stem for path in root.glob("book/*.md") if NAME.fullmatch(path.stem)}
    found |= {path.parent.name for path in root.glob("solutions/*/*.ipynb")}
    return [Chapter(root, name) for name in sorted(found)]


def existing(root: Path, name: str) -> Chapter:
    """Return the chapter called `name`, which has a page or a notebook.

    Raises: ChapterError that guesses what was meant.
    """
    chapter = chapter_at(root, name)
    known = [other.name for other in chapters(root)]
    if name not in known:
        raise ChapterError(f"no chapter {name!r}{did_you_mean(name, known)}")
    return chapter


def _marks(path: Path, root: Path) -> Iterator[Mark]:
    cell = ""
    for number, line in enumerate(path.read_text("utf-8").splitlines(), start=1):
        if path.suffix == ".ipynb" and (found := CELL.match(line)):
            cell = found[1]
        if MARK.search(line):
            yield Mark(path.relative_to(root), number, cell)


def _is_text(path: Path) -> bool:
    return path.is_file() and path.suffix in {".py", ".toml", ".md"}
