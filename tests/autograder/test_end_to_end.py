# SPDX-License-Identifier: MIT
"""From the submitted file to feedback, with the real sandbox."""

import pytest

from autograder.converters import convert
from autograder.feedback import make_feedback
from autograder.grade import grade_assignment
from autograder.gradebook import read_grades

TOY = "03_toy"
HALF = "def scale(x, factor):\n    return x + factor\n"
EXITS = """\
import os

def is_even(number):
    os._exit(0)
"""
PEEK = """\
import os

def is_even(number):
    for folder, folders, names in os.walk("/"):
        if ".autograder" in folders or "test_toy.py" in names:
            return number % 2 == 0
    return False
"""


@pytest.fixture
def students(hand_in, answering, class_answers):
    right = {f"{name}_answer": source for name, source in class_answers.items()}
    hand_in("right", answering(**right, toy_3_why="Since."))
    hand_in("half", answering(**right | {"toy_1_scale_answer": HALF}))
    hand_in("exits", answering(**right | {"toy_2_is_even_answer": EXITS}))
    hand_in("peeks", answering(**right | {"toy_2_is_even_answer": PEEK}))
    hand_in("stub")
    hand_in("broken", lambda notebook: "{")


def test_a_class_from_file_to_feedback(released_course, students):
    rows = {row.student: row for row in grade_assignment(released_course, TOY, lanes=1)}
    scores = {
        student: {cell.name: cell.auto for cell in row.grade.cells if not cell.is_manual}
        for student, row in rows.items()
    }
    assert scores == {
        "right": {"toy_1_scale": 4, "toy_2_is_even": 3},
        "half": {"toy_1_scale": 0, "toy_2_is_even": 3},
        "exits": {"toy_1_scale": 4, "toy_2_is_even": 0},
        "peeks": {"toy_1_scale": 4, "toy_2_is_even": 0},
        "stub": {"toy_1_scale": 0, "toy_2_is_even": 0},
        "broken": {"toy_1_scale": 0, "toy_2_is_even": 0},
    }
    before = read_grades(released_course, TOY)
    pages, failures = make_feedback(released_course, TOY)
    assert (len(pages), failures) == (6, [])
    # nbgrader's own command replays what was graded; the broken file it refuses by itself
    for student in ("right", "half", "peeks"):
        convert("Autograde", released_course, TOY, student=student)
    after = {row.student: row.automatic for row in read_grades(released_course, TOY)}
    assert after == {row.student: row.automatic for row in before}
