# SPDX-License-Identifier: MIT
"""`autograder grade`: from submitted/ to the gradebook.

Intake and rebuilding read the submissions, the pool grades in parallel what the cache does not
hold, then one process writes the gradebook, student by student.  What was graded is in the cache
and what was written is in the run record, so that a run that was killed goes on where it stopped,
and a run without news changes nothing.  Trouble with one submission is a row of the table.
"""

import hashlib
import json
import os
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from nbformat.notebooknode import from_dict

from autograder.assignment import Assignment, load_assignment
from autograder.converters import ConversionError, convert
from autograder.course import STAGED, STUDENT_NAME, Course, CourseError
from autograder.gradebook import StudentGrade, is_released, read_grades, short_name
from autograder.intake import Submission, read_submission, stage
from autograder.pool import Job, grade_jobs, job_key, prepare
from autograder.preprocessors.rebuild import read_source_cells, rebuild
from autograder.preprocessors.sandbox_grade import SandboxGrade
from autograder.results import SubmissionResult
from autograder.run_record import RunRecord
from autograder.secret import new_secret
from autograder.submission import runnable_cells
from autograder.suggest import did_you_mean
from policylab.sandbox.backends import UNSAFE

__all__ = ["GradeRow", "Progress", "grade_assignment"]

#: Called with a stage ("checks" or "gradebook"), how much of it is done, and how much there is.
Progress = Callable[[str, int, int], None]


@dataclass(frozen=True)
class GradeRow:
    """What became of one submission.

    Args:
        student: name of the folder.
        status: "graded", "unreadable" (graded as empty), "review" (the grader could not judge), or
            "failed" (nothing was written).
        notes: what a person should know.
        grade: the gradebook's row, None if there is none.
        backend: of the sandbox, "" if nothing ran.
        is_new: whether this run wrote to the gradebook.
    """

    student: str
    status: str
    notes: tuple[str, ...] = ()
    grade: StudentGrade | None = None
    backend: str = ""
    is_new: bool = False


@dataclass(frozen=True)
class _Work:
    """One submission on its way."""

    submission: Submission
    job: Job
    key: str
    repairs: tuple[str, ...]


def grade_assignment(
    course: Course,
    name: str,
    *,
    students: Sequence[str] = (),
    lanes: int | None = None,
    fresh_seed: bool = False,
    unsafe_no_sandbox: bool = False,
    progress: Progress = lambda stage, done, size: None,
) -> list[GradeRow]:
    """Grade the submissions of an assignment; return a row for each.

    Args:
        course, name: which.
        students: only these; all by default.
        lanes: submissions at a time; one per core by default.
        fresh_seed: draw the hidden inputs anew, which grades everything anew.
        unsafe_no_sandbox: run student code unprotected, marked in every result.
        progress: told after each step.
    Raises: CourseError, AssignmentError, and whatever says that no sandbox is safe here.
    """
    course.require_assignment(name)
    if not is_released(course, name):
        raise CourseError(f"{name} is not in the gradebook. Run: autograder release {name}")
    folders, refused = _submitted(course, name, students)
    with course.locked():
        assignment = load_assignment(name, course.root)
        if fresh_seed:
            new_secret(course.state)
        works, rows = _prepare_all(course, assignment, folders)
        results = _run_checks(works, assignment, lanes, unsafe_no_sandbox, progress)
        rows += _write_all(course, works, results, progress)
    grades = {grade.student: grade for grade in read_grades(course, name)}
    rows = [replace(row, grade=grades.get(row.student)) for row in [*rows, *refused]]
    return sorted(rows, key=lambda row: row.student)


def _submitted(
    course: Course, name: str, students: Sequence[str]
) -> tuple[dict[str, Path], list[GradeRow]]:
    """Return the submissions' folders by student, and rows for folders that cannot be used."""
    folders, refused = {}, []
    entries = sorted(course.submitted.iterdir()) if course.submitted.is_dir() else []
    for entry in entries:
        if entry.name.startswith(".") or not _may_hold(entry, name):
            continue
        if entry.is_symlink():
            refused.append(GradeRow(entry.name, "failed", ("the folder is a symbolic link",)))
        elif not STUDENT_NAME.fullmatch(entry.name):
            refused.append(
                GradeRow(entry.name, "failed", ("rename the folder: letters, digits, . _ - @ +",))
            )
        else:
            folders[entry.name] = entry / name
    for student in students:
        if student not in folders:
            hint = did_you_mean(student, folders)
            raise CourseError(f"{student!r} handed in nothing for {name}{hint}")
    if students:
        return {student: folders[student] for student in students}, []
    if not folders and not refused:
        raise CourseError(
            f"nobody handed in {name}: expected {course.submitted}/STUDENT/{name}/{name}.ipynb"
        )
    return folders, refused


def _may_hold(folder: Path, name: str) -> bool:
    """Whether there is something of this name; a folder that cannot be read is not passed over."""
    try:
        os.lstat(folder / name)
    except (FileNotFoundError, NotADirectoryError):
        return False
    except OSError:
        return True
    return True


def _prepare_all(
    course: Course, assignment: Assignment, folders: dict[str, Path]
) -> tuple[list[_Work], list[GradeRow]]:
    """Read, stage and rebuild each submission."""
    sources = read_source_cells(course.db_url, assignment.name, assignment.name)
    fingerprint = prepare(assignment).fingerprint
    works, rows = [], []
    for student, folder in folders.items():
        try:
            submission = read_submission(folder, student, assignment.name)
            stage(submission, course.staged)
            rebuilt, repairs = rebuild(from_dict(submission.notebook()), sources)
            job = Job(cells=runnable_cells(rebuilt), label=student)
            works.append(_Work(submission, job, job_key(job, fingerprint), repairs))
        except Exception as error:  # a bug of ours must not cost the others their grades
            note = f"could not be prepared: {type(error).__name__}: {error}"
            rows.append(GradeRow(student, "failed", (note,)))
    return works, rows


def _run_checks(
    works: list[_Work],
    assignment: Assignment,
    lanes: int | None,
    unsafe_no_sandbox: bool,
    progress: Progress,
) -> dict[str, SubmissionResult]:
    """Return the result of each distinct job by its key."""
    jobs = {work.key: work.job for work in works}
    done = 0

    def count(job: Job, result: SubmissionResult, cached: bool) -> None:
        nonlocal done
        done += 1
        progress("checks", done, len(jobs))

    progress("checks", 0, len(jobs))
    return grade_jobs(
        list(jobs.values()),
        assignment,
        lanes=lanes,
        backend=UNSAFE if unsafe_no_sandbox else None,
        on_result=count,
    )


def _write_all(
    course: Course, works: list[_Work], results: dict[str, SubmissionResult], progress: Progress
) -> list[GradeRow]:
    """Write each submission with news to the gradebook; nothing else writes it meanwhile."""
    rows = []
    for number, work in enumerate(works):
        progress("gradebook", number, len(works))
        rows.append(_write_one(course, work, results.get(work.key)))
    progress("gradebook", len(works), len(works))
    return rows


def _write_one(course: Course, work: _Work, result: SubmissionResult | None) -> GradeRow:
    submission = work.submission
    student, name = submission.student, submission.assignment
    if result is None:
        return GradeRow(student, "failed", ("the checks gave no result; run again",))
    record = RunRecord(course, name)
    digest = _digest(submission, result)
    is_new = record.get(student) != digest or not _is_written(course, student, name)
    if is_new:
        record.set(student, None)  # a run that is killed from here on is seen by the next one
        try:
            _autograde(course, student, name, result)
        except ConversionError as error:
            return GradeRow(student, "failed", (f"not written: {error}",), None, result.backend)
        record.set(student, digest)
    status = "unreadable" if submission.problem else "review" if result.is_faulty else "graded"
    notes = _notes(work, result)
    return GradeRow(student, status, notes, None, result.backend, is_new)


def _autograde(course: Course, student: str, name: str, result: SubmissionResult) -> None:
    """Let nbgrader write one submission, with the result in place of its own execution."""

    def replay(converter: Any) -> None:
        converter.autograde_preprocessors = [
            SandboxGrade(grader=lambda cells: result) if "SandboxGrade" in str(step) else step
            for step in converter.autograde_preprocessors
        ]

    convert(
        "Autograde",
        course,
        name,
        student=student,
        prepare=replay,
        CourseDirectory={"submitted_directory": STAGED},
        Rebuild={"staged": True},
    )


def _notes(work: _Work, result: SubmissionResult) -> tuple[str, ...]:
    if work.submission.problem:
        return (work.submission.problem,)
    errors = [f"{error.cell} raised {error.type}" for error in result.cell_errors]
    unsafe = ["graded without a sandbox"] if result.backend == UNSAFE else []
    note = [result.note] if result.note else []
    return (*note, *errors, *_limits_met(result), *work.submission.warnings, *work.repairs, *unsafe)


def _limits_met(result: SubmissionResult) -> list[str]:
    """Name the exercises whose checks ended at a limit or with the process."""
    met = {(check.status, check.cell) for check in result.checks}
    return [
        f"{status} in {short_name(cell)}"
        for status, cell in sorted(met)
        if status in ("timeout", "memory", "crashed")
    ]


def _is_written(course: Course, student: str, name: str) -> bool:
    """Whether the notebook and the gradebook's row are there."""
    if not (course.autograded / student / name / f"{name}.ipynb").is_file():
        return False
    from nbgrader.api import Gradebook, MissingEntry

    with Gradebook(course.db_url) as gradebook:
        try:
            gradebook.find_submission_notebook(name, name, student)
        except MissingEntry:
            return False
    return True


def _digest(submission: Submission, result: SubmissionResult) -> str:
    """Return a hash of all that is written for a submission."""
    checks = [(check.id, check.status, check.score, check.message) for check in result.checks]
    errors = [(error.cell, error.type, error.line, error.number) for error in result.cell_errors]
    parts = [
        submission.notebook(),
        submission.timestamp,
        checks,
        errors,
        result.note,
        result.backend,
    ]
    return hashlib.sha256(json.dumps(parts, sort_keys=True).encode()).hexdigest()
