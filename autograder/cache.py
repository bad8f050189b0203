# SPDX-License-Identifier: MIT
"""Kept results: one JSON file a key.  A damaged or foreign file counts as none."""

import os
import tempfile
from pathlib import Path

from autograder.assignment import Assignment
from autograder.results import ResultError, SubmissionResult

__all__ = ["load_result", "store_result"]


def load_result(directory: Path, assignment: Assignment, key: str) -> SubmissionResult | None:
    """Return the result kept under a key, if it is one of this assignment and has no fault."""
    path = directory / f"{key}.json"
    try:
        result = SubmissionResult.from_json(path.read_bytes())
    except (FileNotFoundError, ResultError):
        return None
    expected = {check.id: check.cell for check in assignment.checks}
    is_ours = (result.assignment, result.key) == (assignment.name, key)
    is_whole = {check.id: check.cell for check in result.checks} == expected
    return result if is_ours and is_whole and not result.is_faulty else None


def store_result(directory: Path, result: SubmissionResult) -> None:
    """Keep a result in one step; a result with a grader fault is not kept."""
    if result.is_faulty:
        return
    directory.mkdir(parents=True, exist_ok=True)
    handle, name = tempfile.mkstemp(prefix=".result-", dir=directory)
    try:
        with os.fdopen(handle, "w", encoding="utf-8") as file:
            file.write(result.to_json())
        os.replace(name, directory / f"{result.key}.json")
    except BaseException:
        os.unlink(name)
        raise
