# SPDX-License-Identifier: MIT
import json
import subprocess
import sys

import pytest

from autograder.assignment import AssignmentError, GradedCell, load_assignment

TOY = "03_toy"


def edit(course, file, old, new):
    path = course / "autograder" / "checks" / TOY / file
    text = path.read_text()
    assert old in text
    path.write_text(text.replace(old, new, 1))


def edit_notebook(course, change):
    path = course / "solutions" / TOY / f"{TOY}.ipynb"
    notebook = json.loads(path.read_text())
    change(notebook["cells"])
    path.write_text(json.dumps(notebook))


def test_reads_settings_cells_and_checks(toy_course):
    assignment = load_assignment(TOY, toy_course)
    assert assignment.title == "A toy" and assignment.limits.memory_mb == 512
    assert assignment.cells == (
        GradedCell("toy_1_scale", 4.0),
        GradedCell("toy_2_is_even", 3.0),
        GradedCell("toy_4_trap", 1.0),
    )
    assert assignment.manual_cells == (GradedCell("toy_3_why", 2.0),)
    assert assignment.state_dir == toy_course / ".autograder"


def test_checks_come_after_those_they_need(toy_course):
    ids = [check.id for check in load_assignment(TOY, toy_course).checks]
    assert ids.index("scale_value") < ids.index("scale_gradient")  # the file has them reversed
    assert len(ids) == 7


def test_points_are_split_by_shares(toy_course):
    scores = load_assignment(TOY, toy_course).max_scores()
    assert scores["scale_gradient"] == 3.0 and scores["scale_value"] == 1.0  # 4 points as 3 : 1
    assert sum(scores.values()) == 8.0


def test_limit_of_a_check_is_its_own_or_the_assignments(toy_course):
    edit(toy_course, "test_toy.py", "share=1,", "share=1, timeout_s=7,")
    assignment = load_assignment(TOY, toy_course)
    limits = {check.id: assignment.timeout_s(check) for check in assignment.checks}
    assert limits["scale_value"] == 7 and limits["scale_gradient"] == 2


@pytest.mark.parametrize(
    ("file", "old", "new", "message"),
    [
        ("test_toy.py", 'needs=("scale_value",)', 'needs=("scale_valeu",)', "mean 'scale_value'"),
        ("test_toy.py", "share=1,", 'share=1, needs=("scale_gradient",),', "in a circle"),
        ("test_toy.py", 'cell="toy_1_scale", share=1', 'cell="toy_1_scal"', "mean 'toy_1_scale'"),
        ("test_toy.py", "def test_scale_value", "def test_scale_gradient", "stands in"),
        ("test_toy.py", "share=1", "shares=1", "mean 'share'"),
        ("test_toy.py", "share=1", "share=-1", "at least 0"),
        ("test_toy.py", "share=1", "share=len(X)", "literal"),
        ("test_toy.py", "share=1", 'share="1"', "must be int or float"),
        ("test_toy.py", 'needs=("scale_value",)', 'needs="scale_value"', "tuple of check ids"),
        ("test_toy.py", "import torch", "import torch\ndef test_plain(): pass", "one decorator"),
        ("test_toy.py", "import torch", "import torch as", "line 6: invalid syntax"),
        ("assignment.toml", "given", "givne", "mean 'given'"),
        ("assignment.toml", "load_s", "loads", "mean 'load_s'"),
        ("assignment.toml", "load_s = 3", "load_s = -3", "positive"),
        ("assignment.toml", "load_s = 3", "load_s = true", "positive"),
        ("assignment.toml", "given = []", "given = [3]", "list of function names"),
        ("assignment.toml", "title =", "title", "assignment.toml"),
    ],
)
def test_a_mistake_is_named(toy_course, file, old, new, message):
    edit(toy_course, file, old, new)
    with pytest.raises(AssignmentError, match=message):
        load_assignment(TOY, toy_course)


def test_a_cell_without_checks_is_refused(toy_course):
    def add(cells):
        extra = json.loads(json.dumps(cells[0]))
        extra["metadata"]["nbgrader"]["grade_id"] = "toy_4_lonely"
        cells.append(extra)

    edit_notebook(toy_course, add)
    with pytest.raises(AssignmentError, match="'toy_4_lonely' has no check"):
        load_assignment(TOY, toy_course)


def test_two_cells_of_one_name_and_bad_points_are_refused(toy_course):
    edit_notebook(toy_course, lambda cells: cells.append(cells[0]))
    with pytest.raises(AssignmentError, match="2 cells"):
        load_assignment(TOY, toy_course)

    def spoil(cells):
        cells.pop()
        cells[0]["metadata"]["nbgrader"]["points"] = "4"

    edit_notebook(toy_course, spoil)
    with pytest.raises(AssignmentError, match="points"):
        load_assignment(TOY, toy_course)


def test_an_unknown_assignment_is_refused_by_name(toy_course):
    with pytest.raises(AssignmentError, match="mean '03_toy'"):
        load_assignment("03_tyo", toy_course)
    (toy_course / "solutions" / TOY / f"{TOY}.ipynb").unlink()
    with pytest.raises(AssignmentError, match="is missing"):
        load_assignment(TOY, toy_course)


def test_reading_imports_neither_torch_nor_a_check(toy_course):
    edit(toy_course, "test_toy.py", "import torch", "import torch\nprint('IMPORTED')")
    code = (
        "import sys; from pathlib import Path; from autograder.assignment import load_assignment;"
        f"load_assignment('{TOY}', Path(sys.argv[1])); assert 'torch' not in sys.modules"
    )
    command = [sys.executable, "-c", code, str(toy_course)]
    assert subprocess.run(command, check=True, capture_output=True, text=True).stdout == ""
