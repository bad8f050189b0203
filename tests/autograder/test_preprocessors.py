# SPDX-License-Identifier: MIT
import pytest
from nbformat.v4 import new_code_cell, new_notebook, new_output

from autograder.preprocessors.sandbox_grade import VERDICT, SandboxGrade, write_verdicts
from autograder.preprocessors.save_grades import read_verdict
from autograder.results import CheckResult, SubmissionResult

POINTS = 3.0


def result(*statuses, points=POINTS, backend="namespaces"):
    share = points / max(len(statuses), 1)
    checks = tuple(
        CheckResult(
            id=f"check_{number}",
            cell="ex_1",
            title="<b>title</b>",
            hint="a hint",
            status=status,
            score=share if status == "passed" else 0.0,
            max_score=share,
            message="ValueError",
            seconds=0.1,
            detail="the hidden value is 42",
        )
        for number, status in enumerate(statuses)
    )
    return SubmissionResult(1, "toy", backend, "key", "seed", 0.1, checks)


@pytest.fixture
def notebook():
    label = {"grade_id": "ex_1", "grade": True, "solution": False, "locked": True, "points": POINTS}
    cells = [
        new_code_cell("x = 1", outputs=[new_output("stream", name="stderr", text="warning")]),
        new_code_cell("# checks", metadata={"nbgrader": {"schema_version": 3, **label}}),
    ]
    cells[1].outputs = [new_output("execute_result", data={"text/plain": "3.0"})]
    return new_notebook(cells=cells)


def verdict(notebook, *statuses, **options):
    return read_verdict(write_verdicts(notebook, result(*statuses, **options)).cells[1])


def test_partial_credit_is_the_sum_of_the_checks(notebook):
    assert verdict(notebook, "passed", "failed", "passed")["score"] == 2.0
    assert notebook.cells[1].outputs[0].data["text/plain"] == "2.0"


def test_every_saved_output_is_gone(notebook):
    write_verdicts(notebook, result("failed"))
    assert notebook.cells[0].outputs == []
    assert len(notebook.cells[1].outputs) == 1


@pytest.mark.parametrize("statuses", [(), ("passed", "grader_fault")])
def test_a_fault_or_no_result_is_a_fault_with_score_zero_never_the_maximum(notebook, statuses):
    found = verdict(notebook, *statuses)
    assert (found["grader_fault"], found["score"]) == (True, 0.0)


def test_points_that_differ_from_the_gradebook_are_a_fault(notebook):
    assert verdict(notebook, "passed", points=5.0)["grader_fault"]


def test_the_detail_for_instructors_stays_out_and_text_is_escaped(notebook):
    write_verdicts(notebook, result("failed"))
    data = notebook.cells[1].outputs[0].data
    assert "42" not in str(data)
    assert "&lt;b&gt;title" in data["text/html"]
    assert "<b>" not in data["text/html"]


def test_a_missing_sandbox_is_said_where_the_person_looks(notebook):
    write_verdicts(notebook, result("passed", backend="none"))
    assert "without a sandbox" in notebook.cells[1].outputs[0].data["text/html"]


def forge_text(cell):
    cell.outputs[0].data["text/plain"] = "3.0"


def forge_score(cell):
    cell.outputs[0].data[VERDICT]["score"] = 9.0
    cell.outputs[0].data["text/plain"] = "9.0"


def forge_none(cell):
    cell.outputs = []


def forge_second(cell):
    cell.outputs = [*cell.outputs, *cell.outputs]


def forge_nan(cell):
    cell.outputs[0].data[VERDICT]["score"] = float("nan")
    cell.outputs[0].data["text/plain"] = "nan"


@pytest.mark.parametrize("forge", [forge_text, forge_score, forge_none, forge_second, forge_nan])
def test_outputs_that_nbgrader_would_misread_are_refused(notebook, forge):
    write_verdicts(notebook, result("failed"))
    forge(notebook.cells[1])
    with pytest.raises(RuntimeError, match="ex_1"):
        read_verdict(notebook.cells[1])


def test_a_result_of_another_assignment_is_refused(notebook):
    step = SandboxGrade(grader=lambda cells: result("passed"))
    with pytest.raises(RuntimeError, match="toy, not other"):
        step.preprocess(notebook, {"nbgrader": {"assignment": "other"}})
