# SPDX-License-Identifier: MIT
"""`SaveGrades`: nbgrader's SaveAutoGrades, but for faults of the grader and for what a person gave.

nbgrader has no output that says "this needs a person": a fault would become 0 or the maximum.
"""

from typing import Any

from nbformat.notebooknode import NotebookNode
from nbgrader.preprocessors import SaveAutoGrades

from autograder.preprocessors.sandbox_grade import VERDICT, is_test_cell

__all__ = ["SaveGrades", "read_verdict"]


class SaveGrades(SaveAutoGrades):
    """Writes the automatic scores to the gradebook and reads them back."""

    def _add_score(self, cell: NotebookNode, resources: dict[str, Any]) -> None:
        if not is_test_cell(cell):
            super()._add_score(cell, resources)
            return
        verdict = read_verdict(cell)
        name = cell.metadata.nbgrader["grade_id"]
        grade = self.gradebook.find_grade(
            name, self.notebook_id, self.assignment_id, self.student_id
        )
        before = grade.auto_score
        needed_review = grade.needs_manual_grade
        super()._add_score(cell, resources)
        if verdict["grader_fault"]:
            grade.auto_score, grade.needs_manual_grade = None, True
        elif grade.auto_score != verdict["score"]:
            raise RuntimeError(f"{name}: {verdict['score']} points became {grade.auto_score}")
        elif grade.manual_score is not None and before == grade.auto_score:
            grade.needs_manual_grade = needed_review  # nothing new for the person to look at
        self.gradebook.db.commit()


def read_verdict(cell: NotebookNode) -> dict[str, Any]:
    """Return the verdict in a graded test cell.

    Raises: RuntimeError if nbgrader would read anything else out of the cell's outputs.
    """
    name = cell.metadata.nbgrader["grade_id"]
    if [output.output_type for output in cell.outputs] != ["execute_result"]:
        raise RuntimeError(f"{name} must hold exactly one result; was SandboxGrade left out?")
    data = cell.outputs[0].data
    verdict: dict[str, Any] = data.get(VERDICT) or {}
    score, points = verdict.get("score"), float(cell.metadata.nbgrader["points"])
    if not isinstance(score, float) or data.get("text/plain") != repr(score):
        raise RuntimeError(f"{name}: the result's text is not its score")
    if not 0 <= score <= points:
        raise RuntimeError(f"{name}: {score} is not between 0 and {points} points")
    return verdict
