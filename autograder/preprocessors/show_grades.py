# SPDX-License-Identifier: MIT
"""`ShowGrades`: what feedback shows of the gradebook and of the verdicts, as plain data.

The template gets text and numbers only; it escapes all of them.
"""

from typing import Any

from nbformat.notebooknode import NotebookNode
from nbgrader.preprocessors import GetGrades
from nbgrader.utils import is_grade, is_solution

from autograder.preprocessors.sandbox_grade import VERDICT

__all__ = ["ShowGrades"]


class ShowGrades(GetGrades):
    """Adds scores, comments, what is pending, and the checks' outcome to the cells."""

    def preprocess(
        self, nb: NotebookNode, resources: dict[str, Any]
    ) -> tuple[NotebookNode, dict[str, Any]]:
        self.pending = 0
        nb, resources = super().preprocess(nb, resources)
        resources["nbgrader"]["pending"] = self.pending
        resources["nbgrader"]["notes"] = nb.metadata.get("policylab", {})
        return nb, resources

    def preprocess_cell(
        self, cell: NotebookNode, resources: dict[str, Any], cell_index: int
    ) -> tuple[NotebookNode, dict[str, Any]]:
        cell, resources = super().preprocess_cell(cell, resources, cell_index)
        if is_grade(cell):
            grade = self.gradebook.find_grade(
                cell.metadata.nbgrader["grade_id"],
                self.notebook_id,
                self.assignment_id,
                self.student_id,
            )
            cell.metadata.nbgrader["pending"] = bool(grade.needs_manual_grade)
            cell.metadata.nbgrader["by_hand"] = is_solution(cell) or cell.cell_type != "code"
            cell.metadata.nbgrader["manual"] = grade.manual_score is not None
            self.pending += grade.needs_manual_grade
        if cell.cell_type == "code":
            for output in cell.outputs:
                cell.metadata["verdict"] = output.get("data", {}).get(VERDICT)
            cell.outputs = []
        return cell, resources
