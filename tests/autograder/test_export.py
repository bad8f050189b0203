# SPDX-License-Identifier: MIT
import csv
import io
import json

import pytest

from autograder.export import guard, render
from autograder.gradebook import CellGrade, StudentGrade


def cell(name, auto, manual=None, *, points=4.0, by_hand=False, pending=False):
    return CellGrade(name, points, auto, manual, 0.0, by_hand, pending)


GRADES = [
    StudentGrade(
        "ada",
        'Ada, "the first"',
        "Lovelace",
        "ada@example.org",
        (cell("ex_1", 2.5), cell("ex_2", None, 3.0, by_hand=True)),
        0.5,
    ),
    StudentGrade(
        "=cmd|' /C calc'!A0",
        "@SUM(A1)",
        "-1+1",
        "",
        (cell("ex_1", 4.0), cell("ex_2", None, by_hand=True, pending=True)),
        0.0,
    ),
]


def rows(format):
    return list(csv.DictReader(io.StringIO(render(format, "toy", GRADES))))


def test_csv_has_a_column_a_cell_and_says_what_is_pending():
    ada, eve = rows("csv")
    assert (ada["ex_1"], ada["ex_2"], ada["automatic"], ada["score"]) == ("2.5", "3", "2.5", "5")
    assert (eve["ex_2"], eve["pending"], eve["score"]) == ("", "ex_2", "4")


def test_csv_quotes_commas_and_quotes():
    assert rows("csv")[0]["first_name"] == 'Ada, "the first"'


@pytest.mark.parametrize("format", ["csv", "canvas", "moodle"])
def test_no_text_can_run_as_a_formula(format):
    for row in csv.reader(io.StringIO(render(format, "toy", GRADES))):
        assert not any(value.startswith(("=", "+", "-", "@", "\t", "\r")) for value in row)


@pytest.mark.parametrize("text", ["=1", "+1", "-1", "@x", "\tx", "\rx", "\nx"])
def test_formula_starts_are_guarded(text):
    assert guard(text) == f"'{text}"


def test_numbers_and_plain_text_are_left_alone():
    assert [guard(value) for value in (-1.5, 2.0, 1 / 3, 7, "a=b")] == [
        "-1.5",
        "2",
        "0.3333333333",
        "7",
        "a=b",
    ]


def test_canvas_has_its_columns_and_no_score_while_something_is_pending():
    points, ada, eve = rows("canvas")
    assert list(points) == ["Student", "ID", "SIS User ID", "SIS Login ID", "Section", "toy"]
    assert (points["Student"].strip(), points["toy"]) == ("Points Possible", "8")
    assert (ada["Student"], ada["toy"], eve["toy"]) == ('Lovelace, Ada, "the first"', "5", "")


def test_moodle_matches_by_id_and_says_what_is_pending():
    ada, eve = rows("moodle")
    assert (ada["ID number"], ada["toy"], ada["Feedback comments"]) == ("ada", "5", "")
    assert (eve["toy"], eve["Feedback comments"]) == ("", "to be graded by hand: ex_2")


def test_json_is_complete():
    data = json.loads(render("json", "toy", GRADES))
    assert data["schema"] == 1
    assert data["students"][1]["student"].startswith("=cmd")
    assert data["students"][1]["cells"][1]["pending"] is True
    assert data["students"][0]["late_penalty"] == 0.5


def test_nobody_gives_a_header_alone():
    assert render("csv", "toy", []).count("\n") == 1
