# SPDX-License-Identifier: MIT
import ast
import time

import pytest

from autograder.submission import drop_magics, runnable_cells


@pytest.mark.parametrize(
    ("source", "left"),
    [
        ("%matplotlib inline\nimport torch\n", "pass\nimport torch\n"),
        ("!pip install (x\ny = 1\n", "pass\ny = 1\n"),
        ("!echo it's\nx = 1\n", "pass\nx = 1\n"),
        ("!echo '''\nx = 1\n", "pass\nx = 1\n"),
        ("!ls \\\n -l\nx = 1\n", "pass\n\nx = 1\n"),
        ("torch.tensor?\ny = 2", "pass\ny = 2"),
        ("?torch\nx = 1", "pass\nx = 1"),
        ("if True:\n    %time x = f(2)\n    y = !ls\n", "if True:\n    x = f(2)\n    pass\n"),
        ("x = %env HOME\n", "pass\n"),
        ("%%bash\nrm -rf ~\n", "pass"),
        ("\n%%time\nx = 1\n%ls\n", "\npass\nx = 1\npass\n"),
    ],
)
def test_magics_are_dropped_and_lines_keep_their_numbers(source, left):
    assert drop_magics(source) == left
    ast.parse(left)


@pytest.mark.parametrize(
    "source",
    [
        "x = '''\n%not a magic\n!ls\nwhy?\n'''\n",
        'f"""{x}\n%s\n"""',
        "a = [1,\n  %b\n]",
        "a = (5\n  % 3)\n",
        "a = b \\\n  % c\n",
        "x %= 3\ny = 7 % 3\nz = x != 3\n",
        "x = 'what?'  # why?\n",
        "s = 'don\\'t'  # it's\n",
        "d = {'a': 1}\nd['a'] = 5 % 3\n",
        "",
    ],
)
def test_python_is_left_alone(source):
    assert drop_magics(source) == source


@pytest.mark.parametrize(
    "source",
    ["'" * 300_000, '"""' + "\\" * 300_000, "!(" * 200_000, "(" * 300_000, " " * 300_000]
    + ["%\\" * 200_000, "a " * 100_000 + "=\n", "%%time\n" * 50_000, "\n" * 300_000],
)
def test_hostile_sources_take_linear_time(source):
    start = time.perf_counter()
    drop_magics(source)
    assert time.perf_counter() - start < 10  # quadratic would take minutes


def cell(source, cell_type="code", **label):
    defaults = {"grade": False, "solution": False, "locked": False}
    metadata = {"nbgrader": defaults | label} if label else {}
    return {"cell_type": cell_type, "metadata": metadata, "source": source}


def test_which_cells_run_and_what_they_are_called():
    cells = [
        cell("# text", "markdown"),
        cell("setup", grade_id="setup", locked=True),
        cell("mine"),
        cell("answer", grade_id="ex_1_answer", solution=True),
        cell("visible", grade_id="ex_1_visible", locked=True),
        cell("graded", grade_id="ex_1", grade=True, locked=True),
        cell("explore", grade_id="plots_explore", locked=True),
        cell("%pylab"),
        cell("why", "markdown", grade_id="ex_2", grade=True, solution=True),
    ]
    assert runnable_cells({"cells": cells}) == (
        ("setup", "setup"),
        ("added_1", "mine"),
        ("ex_1_answer", "answer"),
        ("added_2", "pass"),
    )


def test_an_answer_cell_runs_whatever_its_name():
    answer = cell("x = 1", grade_id="ex_1_explore", solution=True)
    assert runnable_cells({"cells": [answer]}) == (("ex_1_explore", "x = 1"),)
