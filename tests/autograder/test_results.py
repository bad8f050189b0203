# SPDX-License-Identifier: MIT
import json
from dataclasses import replace

import pytest

from autograder.results import (
    STATUSES,
    CellError,
    CheckResult,
    ResultError,
    SubmissionResult,
)


def check_result(id="one", cell="ex", status="passed", points=1.5):
    score = points if status == "passed" else 0.0
    return CheckResult(id, cell, "title", "hint", status, score, points, "", 0.1, "")


def submission(*checks):
    errors = (CellError("setup", "NameError", "oops", 2),)
    return SubmissionResult(1, "02", "namespaces", "k" * 32, "seed", 0.5, checks, errors, "note")


def test_json_gives_the_same_result_back():
    result = submission(check_result(), check_result("two", status="error"))
    assert SubmissionResult.from_json(result.to_json()) == result


def test_cell_scores_add_up_without_residue():
    # 5 points in shares 1 : 1 : 1 are 5/3 each; their float sum need not be 5
    result = submission(*(check_result(str(n), points=5 / 3) for n in range(3)))
    assert result.cell_score("ex") == result.max_score("ex") == 5.0
    assert result.score == 5.0


@pytest.mark.parametrize("status", STATUSES)
def test_only_passed_gives_points(status):
    result = submission(check_result(status=status))
    assert result.cell_score("ex") == (1.5 if status == "passed" else 0)
    assert result.has_grader_fault("ex") == (status == "grader_fault")


def test_a_cell_without_a_result_is_a_grader_fault_not_its_maximum():
    result = submission(check_result())
    assert result.has_grader_fault("other") and result.cell_score("other") == 0
    assert submission().is_faulty


@pytest.mark.parametrize(
    "change",
    [
        {"status": "excellent"},
        {"status": "failed"},  # but keeps its points
        {"score": 2.0},
        {"score": "1.5"},
        {"score": True},
        {"max_score": -1.5, "score": -1.5},
        {"seconds": -1.0},
        {"title": None},
        {"extra": 1},
        {"id": "two"},  # twice
    ],
)
def test_a_contradictory_check_is_refused(change):
    raw = json.loads(submission(check_result(), check_result("two")).to_json())
    raw["checks"][0].update(change)
    with pytest.raises(ResultError):
        SubmissionResult.from_json(json.dumps(raw))


@pytest.mark.parametrize("text", ["", "[]", "{}", "null", "[" * 5000, b"\xff", "{" + '"a":' * 9])
def test_text_that_is_no_result_is_refused(text):
    with pytest.raises(ResultError):
        SubmissionResult.from_json(text)


def test_a_missing_field_another_schema_and_nan_are_refused():
    raw = json.loads(submission(check_result()).to_json())
    short = {key: value for key, value in raw.items() if key != "note"}
    for text in (json.dumps(short), json.dumps({**raw, "schema": 2})):
        with pytest.raises(ResultError):
            SubmissionResult.from_json(text)
    with pytest.raises(ResultError):
        SubmissionResult.from_json(json.dumps({**raw, "seconds": float("nan")}))
    with pytest.raises(ResultError):
        replace(check_result(), max_score=float("inf"), score=float("inf"))
