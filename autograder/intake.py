# SPDX-License-Identifier: MIT
"""Read what students handed in, as hostile files, and stage clean copies for grading.

Of a notebook only the cells' types, nbgrader labels and sources are kept: outputs, attachments,
metadata, kernel and file name are the student's and count for nothing.  What cannot be read is a
*problem*, data and not an exception: that submission is graded as an empty notebook, its message
says why, and all others go on.
"""

import errno
import json
import os
import re
import shutil
import stat
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from autograder.cleaning import one_line
from autograder.timestamps import parse_time

__all__ = ["Limits", "Submission", "clean_notebook", "read_submission", "stage"]

KEPT_TYPES = ("code", "markdown", "raw")
_STRING = re.compile(rb'"(?:[^"\\]|\\.)*(?:"|\\?\Z)', re.DOTALL)
_STRUCTURE = re.compile(rb"[\[\]{},]")
_CONFLICT = re.compile(r"^(<{7} |>{7} )", re.MULTILINE)
_KERNEL = {"name": "python3", "display_name": "Python 3", "language": "python"}


@dataclass(frozen=True)
class Limits:
    """Caps, all checked before the part they bound is built in memory."""

    file_bytes: int = 20_000_000
    files: int = 500
    depth: int = 40
    nodes: int = 500_000
    cells: int = 1000
    source_chars: int = 1_000_000


class UnreadableError(ValueError):
    """The submission cannot be read; the text is for student and instructor."""


@dataclass(frozen=True)
class Submission:
    """One student's submission, cleaned.

    Args:
        student, assignment: their names.
        cells: (type, grade_id or "", source) in notebook order.
        timestamp: "YYYY-MM-DD HH:MM:SS UTC", "" if the submission has none.
        problem: why nothing could be read, "" if it could.
        warnings: what was repaired.
    """

    student: str
    assignment: str
    cells: tuple[tuple[str, str, str], ...] = ()
    timestamp: str = ""
    problem: str = ""
    warnings: tuple[str, ...] = field(default=())

    def notebook(self) -> dict[str, Any]:
        """Return the clean notebook, as JSON data of nbformat 4.5."""
        notes = {"problem": self.problem, "warnings": list(self.warnings)}
        return {
            "cells": [_cell(number, *cell) for number, cell in enumerate(self.cells)],
            "metadata": {"kernelspec": dict(_KERNEL), "policylab": notes},
            "nbformat": 4,
            "nbformat_minor": 5,
        }


def read_submission(
    folder: Path, student: str, assignment: str, limits: Limits | None = None
) -> Submission:
    """Read `folder`, which holds what `student` handed in for `assignment`."""
    limits = limits or Limits()
    warnings: list[str] = []
    try:
        files = _list_files(folder, limits)
        name = _choose_notebook(files, assignment, warnings)
        cells = _read_cells(_read_file(folder / name, limits.file_bytes), limits, warnings)
    except UnreadableError as error:
        return Submission(
            student, assignment, (), _read_timestamp(folder, warnings), str(error), tuple(warnings)
        )
    timestamp = _read_timestamp(folder, warnings)
    return Submission(student, assignment, cells, timestamp, "", tuple(warnings))


def clean_notebook(notebook: dict[str, Any]) -> dict[str, Any]:
    """Return the clean form of a notebook that nbgrader has parsed already.

    Raises: UnreadableError if its parts are not what a notebook's are.
    """
    return Submission("", "", _cells_of(notebook, Limits(), [])).notebook()


def stage(submission: Submission, staged: Path) -> Path:
    """Write the clean copy, and nothing else, to `staged`/student/assignment; return the folder."""
    target = staged / submission.student / submission.assignment
    if target.is_symlink() or target.exists():
        shutil.rmtree(target)
    staged.mkdir(mode=0o700, parents=True, exist_ok=True)
    target.mkdir(parents=True)
    text = json.dumps(submission.notebook(), indent=1, ensure_ascii=False, sort_keys=True)
    (target / f"{submission.assignment}.ipynb").write_text(text + "\n", encoding="utf-8")
    if submission.timestamp:
        (target / "timestamp.txt").write_text(submission.timestamp + "\n", encoding="utf-8")
    return target


def _list_files(folder: Path, limits: Limits) -> list[str]:
    """Return the names of the regular files of `folder`; its subfolders are only counted."""
    if folder.is_symlink():
        raise UnreadableError("the submission's folder is a symbolic link, which is refused")
    names = []
    for count, entry in enumerate(_walk(folder, limits.depth), start=1):
        if count > limits.files:
            raise UnreadableError(f"more than {limits.files} files were handed in")
        if os.path.dirname(entry.path) == str(folder) and not entry.is_dir(follow_symlinks=False):
            names.append(entry.name)
    return sorted(names)


def _walk(folder: Path | str, depth: int) -> Iterator[os.DirEntry[str]]:
    """Yield all entries below `folder` without following a link."""
    try:
        with os.scandir(folder) as entries:
            for entry in entries:
                yield entry
                if entry.is_dir(follow_symlinks=False):
                    if depth <= 0:
                        raise UnreadableError("folders are nested too deeply")
                    yield from _walk(entry.path, depth - 1)
    except OSError as error:
        raise UnreadableError(f"a folder cannot be read: {error.strerror}") from None


def _choose_notebook(names: list[str], assignment: str, warnings: list[str]) -> str:
    """Return the file to grade: the one with the right name, or else the only notebook."""
    wanted = f"{assignment}.ipynb"
    if wanted in names:
        return wanted
    found = [name for name in names if name.lower().endswith(".ipynb")]
    if len(found) == 1:
        warnings.append(f"{one_line(found[0], 80)} was taken for {wanted}, as the only notebook")
        return found[0]
    if not found:
        raise UnreadableError(f"no notebook was handed in; expected {wanted}")
    raise UnreadableError(f"{len(found)} notebooks were handed in, and none is called {wanted}")


def _read_file(path: Path, limit: int) -> bytes:
    """Return the content of a regular file of at most `limit` bytes; refuse links and devices."""
    name = one_line(path.name, 80)
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    except OSError as error:
        if error.errno == errno.ELOOP:
            raise UnreadableError(f"{name} is a symbolic link, which is refused") from None
        raise UnreadableError(f"{name} cannot be read: {error.strerror}") from None
    with os.fdopen(descriptor, "rb") as file:
        if not stat.S_ISREG(os.fstat(file.fileno()).st_mode):
            raise UnreadableError(f"{name} is not a regular file")
        data = file.read(limit + 1)
    if len(data) > limit:
        raise UnreadableError(
            f"{name} is larger than {limit / 1e6:g} MB. Clear its outputs and hand it in again"
        )
    return data


def _read_cells(
    data: bytes, limits: Limits, warnings: list[str]
) -> tuple[tuple[str, str, str], ...]:
    try:
        text = data.decode("utf-8-sig")
    except UnicodeDecodeError:
        raise UnreadableError("the file is not a notebook: it is not UTF-8 text") from None
    _check_structure(data, limits)
    try:
        notebook = json.loads(text)
    except (ValueError, RecursionError):
        if _CONFLICT.search(text):
            raise UnreadableError(
                "the file holds merge conflict markers (<<<<<<<, >>>>>>>) and is not a notebook"
            ) from None
        raise UnreadableError("the file is not a notebook: it is not valid JSON") from None
    return _cells_of(notebook, limits, warnings)


def _check_structure(data: bytes, limits: Limits) -> None:
    """Bound depth and number of values before a parser builds them."""
    depth = nodes = 0
    for match in _STRUCTURE.finditer(_STRING.sub(b"", data)):
        character = match.group()
        if character in b"[{":
            depth += 1
        elif character in b"]}":
            depth -= 1
        else:
            nodes += 1
        if depth > limits.depth or nodes > limits.nodes:
            raise UnreadableError(
                "the file is not a notebook: its JSON is too deep or has too many values"
            )


def _cells_of(
    notebook: Any, limits: Limits, warnings: list[str]
) -> tuple[tuple[str, str, str], ...]:
    """Return (type, grade_id, source) of each cell of parsed JSON."""
    if not isinstance(notebook, dict) or not isinstance(notebook.get("nbformat"), int):
        raise UnreadableError("the file is JSON, but not a notebook")
    if notebook["nbformat"] != 4:
        raise UnreadableError(
            f"the notebook has format {str(notebook['nbformat'])[:9]}; "
            "open it in a current Jupyter, save it, and hand it in again"
        )
    raw_cells = notebook.get("cells")
    if not isinstance(raw_cells, list):
        raise UnreadableError("the notebook has no list of cells")
    if len(raw_cells) > limits.cells:
        raise UnreadableError(f"the notebook has more than {limits.cells} cells")
    cells = [cell for raw in raw_cells if (cell := _kept(raw)) is not None]
    if len(cells) < len(raw_cells):
        warnings.append(f"{len(raw_cells) - len(cells)} malformed cells were left out")
    if sum(len(source) for _, _, source in cells) > limits.source_chars:
        raise UnreadableError(f"the cells hold more than {limits.source_chars:,} characters")
    return tuple(cells)


def _kept(raw: Any) -> tuple[str, str, str] | None:
    """Return what counts of one cell, None if it is not a cell."""
    if not isinstance(raw, dict) or raw.get("cell_type") not in KEPT_TYPES:
        return None
    source = raw.get("source", "")
    if isinstance(source, list) and all(isinstance(line, str) for line in source):
        source = "".join(source)
    if not isinstance(source, str):
        return None
    metadata = raw.get("metadata")
    label = metadata.get("nbgrader") if isinstance(metadata, dict) else None
    grade_id = label.get("grade_id") if isinstance(label, dict) else None
    if not isinstance(grade_id, str) or len(grade_id) > 200:
        grade_id = ""
    # A lone surrogate can stand in JSON but in no file.
    return raw["cell_type"], _encodable(grade_id), _encodable(source)


def _encodable(text: str) -> str:
    return text.encode("utf-8", "replace").decode("utf-8")


def _cell(number: int, cell_type: str, grade_id: str, source: str) -> dict[str, Any]:
    cell: dict[str, Any] = {
        "cell_type": cell_type,
        "id": f"cell-{number}",
        "metadata": {"nbgrader": {"grade_id": grade_id}} if grade_id else {},
        "source": source,
    }
    if cell_type == "code":
        cell |= {"execution_count": None, "outputs": []}
    return cell


def _read_timestamp(folder: Path, warnings: list[str]) -> str:
    """Return the time of timestamp.txt in UTC, "" if there is none that can be read."""
    path = folder / "timestamp.txt"
    if not os.path.lexists(path):
        return ""
    try:
        return f"{parse_time(_read_file(path, 100).decode('ascii').strip()):%Y-%m-%d %H:%M:%S} UTC"
    except (ValueError, OverflowError, KeyError) as error:
        reason = str(error) if isinstance(error, UnreadableError) else "it is not a time"
        warnings.append(f"timestamp.txt was ignored: {reason}")
        return ""
