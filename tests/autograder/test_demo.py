# SPDX-License-Identifier: MIT
import json
import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from autograder import demo
from autograder.assignment import load_assignment
from autograder.course import CourseError, find_course
from autograder.demo_class import demo_class
from autograder.expected import trusted_points

ROOT = Path(__file__).parents[2]
NAME = demo.ASSIGNMENT


@pytest.fixture(scope="module")
def assignment():
    return load_assignment(NAME, ROOT)


@pytest.fixture(scope="module")
def entries(assignment):
    return demo_class(assignment, ROOT / "tests" / "answers" / NAME)


@pytest.fixture(scope="module")
def released():
    return json.loads((ROOT / "exercises" / NAME / f"{NAME}.ipynb").read_text(encoding="utf-8"))


def test_the_class_has_every_kind_of_submission(entries):
    names = {entry.student for entry in entries}
    assert len(names) == len(entries) >= 14
    assert {"reference", "second_right", "stub", "endless_loop", "memory_bomb", "quits"} <= names
    assert {"always_equal", "reader", "importer", "deleted_cells", "copied_cells"} <= names
    assert sum(name.startswith("mistake_") for name in names) == 5


def test_every_hand_in_differs_from_the_release_but_the_stub(entries, released):
    texts = {entry.student: entry.text(released) for entry in entries}
    assert len(set(texts.values())) == len(entries)
    assert json.loads(texts["stub"]) == released


def test_right_answers_deserve_everything_and_nothing_deserves_nothing(assignment, entries):
    by_name = {entry.student: entry for entry in entries}
    full = {cell.name: cell.points for cell in assignment.cells}
    secret = b"s" * 32

    def deserved(student):
        imports = "import torch\nfrom torch import Tensor\nfrom policylab.masking import *\n"
        imports += "from policylab.sampling import Policy\nfrom policylab.shapes import *\n"
        cells = [("setup", imports), *by_name[student].deserves.items()]
        return trusted_points(assignment, cells, secret)

    assert deserved("second_right") == full
    assert set(deserved("stub").values()) == {0.0}
    mistake = deserved("mistake_reinforce_loss")
    assert 0 < mistake["ex02_4_reinforce_loss"] < full["ex02_4_reinforce_loss"]
    assert {**mistake, "ex02_4_reinforce_loss": 5.0} == full


def test_a_folder_that_is_no_demo_is_left_alone(tmp_path):
    (tmp_path / "thesis.txt").write_text("mine")
    with pytest.raises(CourseError, match="not empty"):
        demo._fresh_course(find_course(ROOT), tmp_path)
    assert (tmp_path / "thesis.txt").exists()


def test_an_earlier_demo_is_replaced(tmp_path):
    course = demo._fresh_course(find_course(ROOT), tmp_path / "demo")
    (course.root / "gradebook.db").write_text("old")
    assert not (demo._fresh_course(find_course(ROOT), course.root).root / "gradebook.db").exists()


@pytest.mark.full
def test_the_demo_finds_what_it_expects_and_notices_a_changed_gradebook(
    tmp_path, capsys, monkeypatch
):
    root = tmp_path / "demo"
    assert demo.run_demo(str(root), str(ROOT), as_json=True) == 0
    report = json.loads(capsys.readouterr().out)
    assert report["is_right"]
    assert len(list(root.glob("feedback/*/*/*.html"))) == len(report["submissions"])
    original = demo._stored_scores

    def tampered(course):
        with closing(sqlite3.connect(course.gradebook)) as connection:
            connection.execute("update grade set auto_score = 5 where auto_score = 0")
            connection.commit()
        return original(course)

    monkeypatch.setattr(demo, "_stored_scores", tampered)
    assert demo.run_demo(str(root), str(ROOT), as_json=True) == 1
