# SPDX-License-Identifier: MIT
"""A small course in a temporary folder: one assignment, two graded cells, a handful of checks."""

import json
from pathlib import Path

import pytest

TOY = "03_toy"

SETTINGS = """\
title = "A toy"
given = []

[limits]
load_s = 3
check_s = 2
submission_s = 60
memory_mb = 512
"""

CHECKS = """\
# SPDX-License-Identifier: MIT
import torch

from autograder.checking import assert_bool, assert_gradient, assert_tensor, check, raises


@check(cell="toy_1_scale", share=3, title="the gradient is the factor", needs=("scale_value",))
def test_scale_gradient(student, draw):
    x = draw.normal(4).requires_grad_()
    assert_gradient(student.scale(x, 3.0).sum(), x, torch.full((4,), 3.0))


@check(cell="toy_1_scale", share=1, title="multiplies each number", hint="use *")
def test_scale_value(student, draw):
    x = draw.normal(4)
    assert_tensor(student.scale(x, 3.0), 3 * x)


@check(cell="toy_2_is_even", title="tells even from odd", hint="look at the last bit")
def test_is_even_both_answers(student, draw):
    for number in draw.shuffled(range(6)):
        assert_bool(student.is_even(number), number % 2 == 0)


@check(cell="toy_2_is_even", title="refuses text", needs=("is_even_both_answers",))
def test_is_even_refuses(student):
    with raises("TypeError"):
        student.is_even("two")


@check(cell="toy_2_is_even", title="starts from a fresh load", fresh=True)
def test_is_even_fresh(student, process):
    assert process.has("is_even")
    assert student.is_even(2) is True
"""

ANSWER = {
    "toy_1_scale": "def scale(x, factor):\n    return x * factor\n",
    "toy_2_is_even": (
        "def is_even(number):\n"
        "    if type(number) is not int:\n"
        "        raise TypeError('an int, please')\n"
        "    return number % 2 == 0\n"
    ),
}


def graded_cell(name, points, cell_type="code"):
    label = {"grade_id": name, "grade": True, "solution": cell_type != "code", "points": points}
    cell = {"cell_type": cell_type, "id": name, "metadata": {"nbgrader": label}, "source": ""}
    return cell if cell_type != "code" else {**cell, "outputs": [], "execution_count": None}


def write_course(root: Path) -> Path:
    checks, solution = root / "autograder" / "checks" / TOY, root / "solutions" / TOY
    checks.mkdir(parents=True)
    solution.mkdir(parents=True)
    (checks / "assignment.toml").write_text(SETTINGS)
    (checks / "test_toy.py").write_text(CHECKS)
    cells = [
        graded_cell("toy_1_scale", 4),
        graded_cell("toy_2_is_even", 3),
        graded_cell("toy_3_why", 2, "markdown"),
    ]
    notebook = {"cells": cells, "metadata": {}, "nbformat": 4, "nbformat_minor": 5}
    (solution / f"{TOY}.ipynb").write_text(json.dumps(notebook))
    return root


@pytest.fixture
def toy_course(tmp_path):
    """Root of a new course with the assignment 03_toy; a test may edit its files."""
    return write_course(tmp_path / "course")


@pytest.fixture
def toy_answer():
    """Sources of the right answers by graded cell."""
    return dict(ANSWER)
