# SPDX-License-Identifier: MIT
"""`SandboxGrade`: writes what the checks gave into the graded cells, in place of nbgrader's
Execute.

Not a subclass of Execute: `--no-execute` would switch that off, and whatever output the student
saved would count.  Every output is cleared here.  nbgrader reads a score out of a cell's outputs,
and gives the maximum where it finds none: so each graded test cell gets exactly one
`execute_result`.
"""

import html
from collections.abc import Callable
from pathlib import Path
from typing import Any

from nbformat.notebooknode import NotebookNode
from nbformat.v4 import new_output
from nbgrader.preprocessors import NbGraderPreprocessor
from nbgrader.utils import is_grade, is_solution
from traitlets import Any as AnyTrait
from traitlets import Bool

from autograder.assignment import load_assignment
from autograder.pool import Job, cached_result, grade_jobs, job_key, prepare
from autograder.results import STATUSES, SubmissionResult
from autograder.submission import runnable_cells
from policylab.sandbox.backends import UNSAFE

__all__ = ["VERDICT", "SandboxGrade", "is_test_cell", "write_verdicts"]

#: Media type of the output's machine-readable part; what feedback shows is made from it.
VERDICT = "application/vnd.policylab.verdict+json"
FAULT_NOTE = "This could not be checked automatically; a person will grade it."

Cells = tuple[tuple[str, str], ...]


class SandboxGrade(NbGraderPreprocessor):
    """Replays the cached result of the submission, or grades it now with one lane.

    So `nbgrader autograde` and formgrader's button give the same score as `autograder grade`.
    """

    unsafe_no_sandbox = Bool(
        False, help="run student code without any sandbox; recorded in every result"
    ).tag(config=True)
    #: Gives the result of the cells to run; None: replay or grade in the course of the converter.
    grader: Callable[[Cells], SubmissionResult] | None = AnyTrait(None)

    def preprocess(
        self, nb: NotebookNode, resources: dict[str, Any]
    ) -> tuple[NotebookNode, dict[str, Any]]:
        context = resources["nbgrader"]
        cells = runnable_cells(nb)
        if self.grader is None:
            result = self._grade(context["assignment"], cells)
        else:
            result = self.grader(cells)
        if result.assignment != context["assignment"]:
            raise RuntimeError(f"the result is of {result.assignment}, not {context['assignment']}")
        return write_verdicts(nb, result), resources

    def _grade(self, name: str, cells: Cells) -> SubmissionResult:
        assignment = load_assignment(name, Path(self.parent.parent.coursedir.root))
        job = Job(cells=cells)
        key = job_key(job, prepare(assignment).fingerprint)
        cached = cached_result(assignment, key)
        if cached is not None and (cached.backend != UNSAFE or self.unsafe_no_sandbox):
            return cached
        backend = UNSAFE if self.unsafe_no_sandbox else None
        return grade_jobs([job], assignment, lanes=1, backend=backend)[key]


def write_verdicts(notebook: NotebookNode, result: SubmissionResult) -> NotebookNode:
    """Clear every output of `notebook` and write the result into its graded test cells."""
    for cell in notebook.cells:
        if cell.cell_type == "code":
            cell.execution_count, cell.outputs = None, []
        if is_test_cell(cell):
            cell.outputs = [_output(cell.metadata.nbgrader, result)]
    notes = notebook.metadata.setdefault("policylab", {})
    notes["backend"] = result.backend
    notes["note"] = result.note
    notes["cell_errors"] = [
        {"cell": error.cell, "type": error.type, "line": error.line, "number": error.number}
        for error in result.cell_errors
    ]
    return notebook


def is_test_cell(cell: NotebookNode) -> bool:
    """Whether the checks give this cell its points."""
    return cell.cell_type == "code" and is_grade(cell) and not is_solution(cell)


def _output(label: dict[str, Any], result: SubmissionResult) -> NotebookNode:
    """Return the one output of a graded test cell."""
    name, points = label["grade_id"], float(label["points"])
    fault = result.has_grader_fault(name) or abs(result.max_score(name) - points) > 1e-6
    verdict = {
        "schema": 1,
        "cell": name,
        "score": 0.0 if fault else min(result.cell_score(name), points),
        "max_score": points,
        "grader_fault": fault,
        "backend": result.backend,
        "checks": [
            {
                "id": check.id,
                "title": check.title,
                "status": check.status,
                "score": check.score,
                "max_score": check.max_score,
                "hint": "" if check.status == "passed" else check.hint,
                "message": check.message,
            }
            for check in result.checks
            if check.cell == name
        ],
    }
    data = {
        "text/plain": repr(verdict["score"]),
        "text/html": _table(verdict),
        VERDICT: verdict,
    }
    return new_output("execute_result", execution_count=1, data=data)


def _table(verdict: dict[str, Any]) -> str:
    """Return the table that formgrader shows; every text in it is escaped."""
    rows = []
    for check in verdict["checks"]:
        note = " ".join(text for text in (check["message"], check["hint"]) if text)
        points = f"{check['score']:g} / {check['max_score']:g}"
        row = (STATUSES[check["status"]], check["title"], points, note)
        rows.append("<tr>" + "".join(f"<td>{html.escape(text)}</td>" for text in row) + "</tr>")
    head = "<tr><th>result</th><th>check</th><th>points</th><th>note</th></tr>"
    notes = [FAULT_NOTE] if verdict["grader_fault"] else []
    if verdict["backend"] == UNSAFE:
        notes.append("Graded without a sandbox: the student's code could have changed this result.")
    return f"<table>{head}{''.join(rows)}</table>" + "".join(f"<p>{note}</p>" for note in notes)
