# SPDX-License-Identifier: MIT
"""One submission on the command line of pytest: `--submission PATH`."""

import json
from pathlib import Path

from autograder.assignment import Assignment
from autograder.fingerprint import prepare
from autograder.grading import Grading
from autograder.proxy import StudentProcess, start_zygote
from autograder.secret import check_seed
from autograder.submission import runnable_cells
from policylab.sandbox import choose_backend

__all__ = ["open_submission"]


def open_submission(assignment: Assignment, path: Path, backend: str | None) -> Grading:
    """Start a sandbox and put a notebook, or a .py file, into it."""
    if path.suffix == ".py":
        cells: tuple[tuple[str, str], ...] = ((path.stem, path.read_text("utf-8")),)
    else:
        cells = runnable_cells(_notebook(path))
    prepared = prepare(assignment)
    zygote = start_zygote(assignment, prepared.view.path, backend or choose_backend())
    process = StudentProcess(zygote, cells, assignment.limits)
    seeds = {
        info.id: check_seed(prepared.secret, assignment.name, info.id) for info in assignment.checks
    }
    sources = tuple(source for _, source in cells)
    return Grading(assignment, seeds, process, sources, on_close=zygote.close)


def _notebook(path: Path) -> dict:
    """Read a notebook whose cells' labels are complete, as released or as submitted."""
    notebook = json.loads(path.read_text("utf-8"))
    for cell in notebook["cells"]:
        if type(cell["source"]) is list:
            cell["source"] = "".join(cell["source"])
    return notebook
