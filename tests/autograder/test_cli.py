# SPDX-License-Identifier: MIT
import json
import os
import subprocess
import sys

import pytest

from autograder.cli import main
from policylab.sandbox.backends import NoSafeBackend

TOY = "03_toy"


@pytest.fixture
def run(released_course, pretend_checks, capsys, monkeypatch):
    """Run a command in the course; return its status, stdout and stderr."""
    monkeypatch.chdir(released_course.root)

    def command(*arguments):
        try:
            status = main(list(arguments))
        except SystemExit as stop:
            status = stop.code
        captured = capsys.readouterr()
        assert "Traceback" not in captured.err
        assert "\x1b" not in captured.out + captured.err  # no terminal, no colour, no bar
        return status, captured.out, captured.err

    return command


def test_grade_prints_a_table_to_stdout_and_the_rest_to_stderr(run, hand_in, answering):
    hand_in("ada", answering(toy_1_scale_answer="# passed", toy_3_why="Since."))
    hand_in("ben")
    status, out, err = run("grade", TOY)
    assert status == 0
    assert out.split("\n")[0].split() == [
        "student",
        "toy_1",
        "toy_2",
        "auto",
        "by",
        "hand",
        "status",
    ] + ["notes"]
    assert out.split("\n")[1].split() == ["ada", "4", "3", "7", "1", "pending", "graded"]
    assert "nbgrader.log" in err


def test_grade_as_json_is_only_json(run, hand_in, answering):
    hand_in("ada", answering(toy_1_scale_answer="# passed"))
    status, out, _ = run("grade", TOY, "--json")
    row = json.loads(out)["submissions"][0]
    assert (status, row["automatic"], row["status"], row["backend"]) == (
        0,
        7,
        "graded",
        "namespaces",
    )


def test_one_submission_that_needs_a_person_makes_the_status_1(run, hand_in, answering):
    hand_in("ada", answering(toy_1_scale_answer="# grader_fault"))
    status, out, _ = run("grade", TOY)
    assert (status, "review" in out) == (1, True)


def test_names_of_students_and_files_cannot_colour_the_terminal(run, hand_in, released_course):
    folder = hand_in("ada")
    os.rename(folder / f"{TOY}.ipynb", folder / "\x1b[31mred\x1b[0m.ipynb")
    os.makedirs(released_course.submitted / "\x1b[31m" / TOY)
    status, out, _ = run("grade", TOY)  # `run` looks for escapes
    assert status == 1
    assert "was taken for" in out


def test_no_safe_sandbox_refuses_and_names_the_fix(released_course, hand_in, capsys, monkeypatch):
    hand_in("ada")
    before = released_course.gradebook.read_bytes()

    def none_here():
        raise NoSafeBackend("no safe sandbox can be had on this machine:\n- What helps: sysctl")

    monkeypatch.setattr("autograder.pool.choose_backend", none_here)
    assert main(["grade", TOY, "--course-root", str(released_course.root)]) == 2
    assert "What helps: sysctl" in capsys.readouterr().err
    assert released_course.gradebook.read_bytes() == before
    assert not released_course.autograded.exists()


def test_feedback_export_and_release_work_from_the_command_line(run, hand_in, answering):
    hand_in("ada", answering(toy_1_scale_answer="# passed"))
    run("grade", TOY)
    status, out, _ = run("feedback", TOY)
    assert (status, out.strip().endswith(f"ada/{TOY}/{TOY}.html")) == (0, True)
    status, out, _ = run("export", TOY)
    assert (status, out.splitlines()[1].startswith("ada,")) == (0, True)
    status, out, _ = run("export", TOY, "--format", "json")
    assert json.loads(out)["students"][0]["automatic"] == 7
    status, out, _ = run("export", TOY, "--output", "grades.csv")
    assert out == "grades.csv\n"
    status, out, _ = run("release", "--all", "--bundle")
    assert status == 0
    assert [line.rsplit("/")[-1] for line in out.splitlines()] == [f"{TOY}.ipynb", f"{TOY}.zip"]


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (["gradee", TOY], "Did you mean 'grade'?"),
        (["grade", "03_toi"], "Did you mean '03_toy'?"),
        (["grade", TOY], "nobody handed in"),
        (["grade", TOY, "--lanes", "0"], "--lanes must be at least 1"),
        (["grade", TOY, "--course-root", "/nowhere"], "is not a course root"),
        (["export", TOY, "--format", "moodel"], "Did you mean 'moodle'?"),
        (["feedback", TOY], "autograder grade 03_toy"),
        (["release"], "name one assignment, or say --all"),
        (["release", TOY, "--all"], "name one assignment, or say --all"),
        (["grade"], "required"),
        ([], "required"),
    ],
)
def test_wrong_use_is_one_readable_line_and_status_2(run, arguments, says):
    status, out, err = run(*arguments)
    assert (status, out) == (2, "")
    assert says in err
    assert err.startswith("autograder: ") and err.count("\n") == 1


def test_an_interrupt_says_that_nothing_is_lost(run, hand_in, monkeypatch):
    hand_in("ada")

    def stop(*arguments, **options):
        raise KeyboardInterrupt

    monkeypatch.setattr("autograder.grade.grade_jobs", stop)
    status, _, err = run("grade", TOY)
    assert (status, "run again to go on" in err) == (1, True)


@pytest.mark.parametrize(
    "command", ["", "release", "grade", "feedback", "export", "doctor", "demo", "chapter"]
)
def test_help_has_examples(run, command):
    status, out, _ = run(*([command] if command else []), "--help")
    assert status == 0
    assert f"examples:\n  autograder {command}" in out


def test_help_is_fast_because_it_imports_little():
    code = (
        "import sys, autograder.cli; print([m for m in ('torch', 'nbgrader') if m in sys.modules])"
    )
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert run.stdout.strip() == "[]"


def test_the_course_is_found_from_a_folder_inside(run, hand_in, released_course, monkeypatch):
    hand_in("ada")
    monkeypatch.chdir(released_course.submitted)
    assert run("grade", TOY)[0] == 0
