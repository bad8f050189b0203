# SPDX-License-Identifier: MIT
"""The plug-in as a maintainer uses it: pytest on the command line, one submission."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from autograder.errors import StudentError, StudentMemory, StudentTimeout
from autograder.outcomes import CheckOverran, NeedsNotMet, judge

TOY = "03_toy"
ROOT = Path(__file__).resolve().parents[2]


def run_pytest(course, submission, *options):
    command = [sys.executable, "-m", "pytest", "-p", "autograder.plugin", "-p", "no:cacheprovider"]
    checks = str(course / "autograder" / "checks" / TOY)
    arguments = [*command, "-rA", "-c", os.devnull, "--import-mode=importlib", checks, *options]
    if submission is not None:
        arguments += ["--submission", str(submission)]
    environment = {**os.environ, "PYTHONPATH": str(ROOT), "PYTHONDONTWRITEBYTECODE": "1"}
    return subprocess.run(arguments, capture_output=True, text=True, env=environment, timeout=300)


def test_a_maintainer_sees_an_ordinary_pytest_run(toy_course, toy_answer, tmp_path, strongest):
    cells = [
        {
            "cell_type": "code",
            "id": name,
            "metadata": {
                "nbgrader": {
                    "grade_id": f"{name}_answer",
                    "grade": False,
                    "solution": True,
                    "locked": False,
                }
            },
            "source": source.splitlines(keepends=True),
        }
        for name, source in toy_answer.items()
    ]
    cells[1]["source"] = ["def is_even(number):\n", "    return 'yes'\n"]
    notebook = tmp_path / "one.ipynb"
    notebook.write_text(json.dumps({"cells": cells, "nbformat": 4, "nbformat_minor": 5}))
    run = run_pytest(toy_course, notebook, "--backend", strongest)
    assert run.returncode == 1, run.stdout + run.stderr
    for line in (
        "PASSED",
        "3 passed, 3 failed, 1 skipped",
        "test_is_even_both_answers",
        "expected a bool; got str",
        "tells even from odd",
    ):
        assert line in run.stdout.replace("3 failed, 3 passed", "3 passed, 3 failed"), run.stdout


def test_a_python_file_is_a_submission_too_and_one_check_can_be_chosen(
    toy_course, toy_answer, tmp_path, strongest
):
    answer = tmp_path / "answer.py"
    answer.write_text("\n".join(toy_answer.values()))
    run = run_pytest(toy_course, answer, "--backend", strongest, "-k", "scale_gradient")
    assert run.returncode == 0, run.stdout + run.stderr
    assert "1 passed" in run.stdout


def test_without_a_submission_it_says_what_to_do(toy_course):
    run = run_pytest(toy_course, None)
    assert run.returncode == pytest.ExitCode.USAGE_ERROR
    assert "--submission PATH.ipynb" in run.stdout + run.stderr


def test_a_check_that_says_something_else_than_its_source_is_refused(
    toy_course, tmp_path, strongest
):
    path = toy_course / "autograder" / "checks" / TOY / "test_toy.py"
    path.write_text(path.read_text() + "\ntest_trap.check_spec = test_scale_value.check_spec\n")
    answer = tmp_path / "answer.py"
    answer.write_text("")
    run = run_pytest(toy_course, answer, "--backend", strongest)
    assert "test_trap: @check says something else" in run.stdout + run.stderr


@pytest.mark.parametrize(
    ("error", "status"),
    [
        (None, "passed"),
        (AssertionError("x"), "failed"),
        (StudentError("ValueError"), "error"),
        (StudentTimeout("x"), "timeout"),
        (StudentMemory("x"), "memory"),
        (NeedsNotMet("x"), "skipped"),
        (CheckOverran("x"), "grader_fault"),
        (AttributeError("x"), "grader_fault"),
        (KeyboardInterrupt(), "grader_fault"),
        (SystemExit(0), "grader_fault"),
    ],
)
def test_what_a_check_raises_decides_its_status(error, status):
    assert judge(error, ()).status == status


@pytest.mark.parametrize(
    ("name", "shown"),
    [
        ("ValueError", True),
        ("MyError", True),  # the student's source names it
        ("My", False),
        ("Input3", False),
        ("<b>", False),
        ("", False),
    ],
)
def test_only_known_names_of_exceptions_are_shown(name, shown):
    source = "class MyError(Exception): pass"
    message = judge(StudentError(name, "text"), [source]).message
    assert message == (f"your code raised {name}" if shown else "your code raised an exception")


def test_skipping_a_check_is_no_way_out():
    with pytest.raises(pytest.skip.Exception) as caught:
        pytest.skip("too hard")
    assert judge(caught.value, ()).status == "grader_fault"
