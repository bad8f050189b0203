# SPDX-License-Identifier: MIT
"""Many submissions: the cache, equal ones, lanes side by side, interrupts."""

import json
import threading
from dataclasses import replace

import pytest

from autograder import pool
from autograder.assignment import load_assignment
from autograder.checker import LaneError
from autograder.pool import Job, cached_result, grade_jobs, job_key, prepare
from autograder.report import Finished, Outcome, submission_result
from autograder.secret import new_secret
from policylab.sandbox.backends import UNSAFE

TOY = "03_toy"


class FakeLane:
    """Grades without a checker: every check passes, unless a cell says what else to do."""

    made: list["FakeLane"] = []
    both = threading.Barrier(2, timeout=10)

    def __init__(self, assignment, view, secret, backend):
        self.assignment, self.backend, self.graded = assignment, backend, []
        self.is_interrupted = False
        FakeLane.made.append(self)

    def grade(self, cells, key):
        source = cells[0][1]
        if source == "meet":
            self.both.wait()  # passes only if another lane is at work meanwhile
        if source == "lane error":
            raise LaneError("no checker")
        self.graded.append(source)
        status = "grader_fault" if source == "fault" else "passed"
        finished = {check.id: Finished(Outcome(status), 0.1) for check in self.assignment.checks}
        return submission_result(
            self.assignment, finished, backend=self.backend, key=key, seed="s", seconds=0.1
        )

    def interrupt(self):
        self.is_interrupted = True

    def close(self):
        pass


@pytest.fixture
def assignment(toy_course, monkeypatch):
    monkeypatch.setattr(pool, "Lane", FakeLane)
    FakeLane.made = []
    return load_assignment(TOY, toy_course)


def graded():
    return sorted(source for lane in FakeLane.made for source in lane.graded)


def job(source, label=""):
    return Job((("answer", source),), label)


def grade(assignment, *jobs, **options):
    return grade_jobs(jobs, assignment, **{"backend": "namespaces", "lanes": 1, **options})


def test_results_come_by_key_and_are_kept(assignment):
    seen = []
    jobs = [job("one", "ann"), job("two", "bob")]
    first = grade(assignment, *jobs, on_result=lambda *row: seen.append(row))
    key = job_key(jobs[0], prepare(assignment).fingerprint)
    assert first[key].score == 8.0 and cached_result(assignment, key) == first[key]
    assert [(j.label, cached) for j, _, cached in seen] == [("ann", False), ("bob", False)]
    assert grade(assignment, *jobs) == first
    assert graded() == ["one", "two"]  # once each


def test_equal_submissions_are_graded_once_and_labels_do_not_count(assignment):
    seen = []
    found = grade(
        assignment,
        job("same", "ann"),
        job("same", "bob"),
        on_result=lambda j, result, cached: seen.append((j.label, cached)),
    )
    assert len(found) == 1 and graded() == ["same"]
    assert sorted(seen) == [("ann", False), ("bob", True)]


def test_two_lanes_work_side_by_side(assignment):
    jobs = [Job((("a", "meet"), ("b", str(n)))) for n in range(2)]
    assert len(grade(assignment, *jobs, lanes=2)) == 2
    assert len(FakeLane.made) == 2


def test_no_more_lanes_than_submissions(assignment):
    grade(assignment, job("one"), lanes=8)
    assert len(FakeLane.made) == 1


def test_grader_faults_are_not_kept(assignment):
    grade(assignment, job("fault"))
    grade(assignment, job("fault"))
    assert graded() == ["fault", "fault"]


@pytest.mark.parametrize("damage", ["", "{", "null", '{"schema": 1}', "rename", "points"])
def test_a_damaged_entry_is_graded_anew(assignment, damage):
    (key,) = grade(assignment, job("one"))
    path = assignment.state_dir / "cache" / TOY / f"{key}.json"
    if damage == "rename":  # the result of another submission
        path.write_text(path.read_text().replace(key, "0" * len(key)))
    elif damage == "points":
        raw = json.loads(path.read_text())
        raw["checks"][0]["status"] = "failed"
        path.write_text(json.dumps(raw))
    else:
        path.write_text(damage)
    assert cached_result(assignment, key) is None
    assert grade(assignment, job("one"))[key].score == 8.0
    assert graded() == ["one", "one"]


def test_a_result_without_a_sandbox_counts_only_where_none_is_asked_for(assignment):
    grade(assignment, job("one"), backend="none")
    grade(assignment, job("one"), backend="none")
    assert graded() == ["one"]
    found = grade(assignment, job("one"), backend="landlock")
    assert graded() == ["one", "one"] and {r.backend for r in found.values()} == {"landlock"}
    grade(assignment, job("one"), backend="namespaces")  # both are safe, and results are the same
    assert graded() == ["one", "one"]


def change_check(assignment):
    path = assignment.directory / "test_toy.py"
    path.write_text(path.read_text() + "\n# another tolerance\n")


def change_limits(assignment):
    path = assignment.directory / "assignment.toml"
    path.write_text(path.read_text().replace("load_s = 3", "load_s = 4"))


def change_points(assignment):
    path = assignment.notebook
    path.write_text(path.read_text().replace('"points": 4', '"points": 5'))


def change_secret(assignment):
    new_secret(assignment.state_dir)


@pytest.mark.parametrize("change", [change_check, change_limits, change_points, change_secret])
def test_whatever_a_result_depends_on_makes_it_stale(assignment, change):
    grade(assignment, job("one"))
    change(assignment)
    grade(load_assignment(TOY, assignment.root), job("one"))
    assert graded() == ["one", "one"]


def test_an_interrupt_loses_nothing_that_was_graded(assignment):
    def interrupt(*_):
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        grade(assignment, job("one"), job("two"), job("three"), on_result=interrupt)
    assert all(lane.is_interrupted for lane in FakeLane.made)
    done = graded()
    assert done
    found = grade(assignment, job("one"), job("two"), job("three"))
    assert len(found) == 3 and graded() == ["one", "three", "two"]  # none twice


def test_a_lane_that_does_not_start_ends_the_run_with_the_reason(assignment):
    with pytest.raises(LaneError, match="no checker"):
        grade(assignment, job("lane error"), job("one"), lanes=2)


def test_two_real_lanes_grade_what_one_grades(lane, session_course, toy_answer, tmp_path):
    assignment = replace(lane.assignment)
    right = tuple((f"{name}_answer", source) for name, source in toy_answer.items())
    jobs = [Job(right), Job(right[:2]), Job((("added_1", "while True: pass"), *right[1:]))]
    options = {"backend": lane.backend, "cache_dir": tmp_path}
    seen = []
    found = grade_jobs(
        jobs, assignment, lanes=2, on_result=lambda *row: seen.append(row), **options
    )
    keys = [job_key(job, prepare(assignment).fingerprint) for job in jobs]
    assert [found[key].score for key in keys] == [8.0, 7.0, 0.0]
    again = grade_jobs(jobs, assignment, lanes=2, **options)
    assert again == found and len(seen) == 3


def test_an_unjailed_lane_grades_alike_and_says_so(session_course, toy_answer, tmp_path):
    assignment = load_assignment(TOY, session_course)
    right = Job(tuple((f"{name}_answer", source) for name, source in toy_answer.items()))
    (result,) = grade_jobs(
        [right], assignment, lanes=1, backend=UNSAFE, cache_dir=tmp_path
    ).values()
    assert (result.score, result.backend) == (8.0, UNSAFE)
