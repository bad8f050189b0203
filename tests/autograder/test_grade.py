# SPDX-License-Identifier: MIT
import copy
import json
import shutil
import sqlite3

import pytest

from autograder.converters import convert
from autograder.course import CourseError
from autograder.grade import grade_assignment
from autograder.gradebook import read_grades

TOY = "03_toy"
PASSED = {"toy_1_scale_answer": "# passed"}

pytestmark = pytest.mark.usefixtures("pretend_checks")


def grade(course, **options):
    return {row.student: row for row in grade_assignment(course, TOY, **options)}


def set_manual(course, student, name, score):
    from nbgrader.api import Gradebook

    with Gradebook(course.db_url) as gradebook:
        grade = gradebook.find_grade(name, TOY, TOY, student)
        grade.manual_score, grade.needs_manual_grade = score, False
        gradebook.db.commit()


def pending(course, student):
    return {row.student: row.pending for row in read_grades(course, TOY)}[student]


def database(course):
    with sqlite3.connect(course.gradebook) as connection:
        rows = list(connection.execute("select * from grade order by id"))
    connection.close()
    return rows


def test_points_stand_in_the_gradebook(released_course, hand_in, answering):
    hand_in("ada", answering(**PASSED, toy_3_why="Since."))
    hand_in("ben")
    rows = grade(released_course)
    assert rows["ada"].grade.automatic == 7
    assert rows["ada"].grade.pending == ("toy_3_why",)
    assert rows["ben"].grade.automatic == 0
    assert rows["ben"].grade.pending == ()  # an untouched question earns 0, without a person
    assert {row.status for row in rows.values()} == {"graded"}


def test_a_second_run_changes_nothing(released_course, hand_in, answering):
    hand_in("ada", answering(**PASSED))
    first = grade(released_course)
    before = database(released_course)
    notebook = released_course.autograded / "ada" / TOY / f"{TOY}.ipynb"
    written = notebook.stat().st_mtime_ns
    second = grade(released_course)
    assert (first["ada"].is_new, second["ada"].is_new) == (True, False)
    assert database(released_course) == before
    assert notebook.stat().st_mtime_ns == written


def test_a_manual_mark_survives_a_regrade(released_course, hand_in, answering):
    hand_in("ada", answering(**PASSED, toy_3_why="Since."))
    grade(released_course)
    set_manual(released_course, "ada", "toy_3_why", 1.5)
    set_manual(released_course, "ada", "toy_2_is_even", 2.0)
    grade(released_course)
    assert pending(released_course, "ada") == ()
    hand_in("ada", answering(**PASSED, setup="x", toy_3_why="Since, and so on."))
    row = grade(released_course)["ada"]
    assert row.is_new
    assert {cell.name: cell.score for cell in row.grade.cells} == {
        "toy_1_scale": 4,
        "toy_2_is_even": 2,
        "toy_3_why": 1.5,
    }
    assert row.grade.pending == ("toy_3_why",)  # its text is new; the code's score is not


def test_a_grader_fault_needs_a_person_and_is_neither_zero_nor_full(
    released_course, hand_in, answering
):
    hand_in("ada", answering(toy_1_scale_answer="# grader_fault"))
    row = grade(released_course)["ada"]
    assert row.status == "review"
    automatic = {cell.name: cell.auto for cell in row.grade.cells if not cell.is_manual}
    assert automatic == {"toy_1_scale": None, "toy_2_is_even": None}
    assert row.grade.pending == ("toy_1_scale", "toy_2_is_even")


@pytest.mark.parametrize("content", ["<<<<<<< HEAD\n", "[" * 5000, "", "null"])
def test_a_broken_file_is_a_flagged_zero_and_the_others_go_on(
    released_course, hand_in, answering, content
):
    hand_in("ada", answering(**PASSED))
    folder = hand_in("abe")
    (folder / f"{TOY}.ipynb").write_text(content)
    rows = grade(released_course)
    assert rows["abe"].status == "unreadable"
    assert "the file" in rows["abe"].notes[0]
    assert (rows["abe"].grade.automatic, rows["abe"].grade.pending) == (0, ())
    assert rows["ada"].grade.automatic == 7


def test_copied_deleted_and_edited_test_cells_change_no_score(released_course, hand_in, answering):
    def copied(notebook):
        answering(**PASSED)(notebook)
        notebook["cells"] += copy.deepcopy(notebook["cells"])

    def deleted(notebook):
        answering(**PASSED)(notebook)
        del notebook["cells"][2:4]

    def edited(notebook):
        notebook["cells"][3]["source"] = "100.0"
        notebook["cells"][3]["metadata"]["nbgrader"] |= {"points": 100, "solution": True}
        notebook["cells"][3]["outputs"] = [
            {"output_type": "execute_result", "data": {"text/plain": "4.0"}, "metadata": {}}
        ]

    for student, edit in {"copied": copied, "deleted": deleted, "edited": edited}.items():
        hand_in(student, edit)
    rows = grade(released_course)
    scores = {student: row.grade.automatic for student, row in rows.items()}
    assert scores == {"copied": 7, "deleted": 7, "edited": 0}
    assert rows["edited"].grade.max_score == 9


def test_a_link_is_not_followed_and_lands_nowhere(released_course, hand_in, answering, tmp_path):
    folder = hand_in("ada", answering(**PASSED))
    secret = tmp_path / "secret.txt"
    secret.write_text("canary")
    (folder / "data.txt").symlink_to(secret)
    (released_course.submitted / "eve").symlink_to(released_course.submitted / "ada")
    rows = grade(released_course)
    assert rows["eve"].status == "failed"
    assert not list(released_course.autograded.rglob("data.txt"))
    convert("Autograde", released_course, TOY, student="ada")  # nbgrader's own way
    assert not list(released_course.autograded.rglob("data.txt"))


def test_a_name_that_nbgrader_strips_changes_nobody_elses_score(
    released_course, hand_in, answering
):
    hand_in("ada", answering(**PASSED))
    hand_in("ada ")
    rows = grade(released_course)
    assert rows["ada"].grade.automatic == 7
    assert (rows["ada "].status, rows["ada "].grade) == ("failed", None)


def test_a_folder_that_cannot_be_read_is_a_row(released_course, hand_in, answering):
    hand_in("ada", answering(**PASSED))
    (released_course.submitted / "eve").symlink_to("eve")  # for root, too
    rows = grade(released_course)
    assert (rows["ada"].status, rows["eve"].status) == ("graded", "failed")


def test_nbgrader_itself_gives_the_same_score(released_course, hand_in, answering):
    hand_in("ada", answering(**PASSED))
    grade(released_course)
    before = read_grades(released_course, TOY)
    shutil.rmtree(released_course.autograded)
    convert("Autograde", released_course, TOY, student="*")
    assert read_grades(released_course, TOY) == before


@pytest.mark.filterwarnings("ignore::sqlalchemy.exc.SAWarning")  # nbgrader's own
def test_formgraders_button_gives_the_same_score(released_course, hand_in, answering):
    from nbgrader.apps import NbGraderAPI
    from nbgrader.coursedir import CourseDirectory

    hand_in("ada", answering(**PASSED))
    config = released_course.config()
    api = NbGraderAPI(CourseDirectory(config=config), config=config)
    outcome = api.autograde(TOY, "ada")
    assert outcome["success"], outcome
    assert read_grades(released_course, TOY)[0].automatic == 7
    row = grade(released_course)["ada"]
    assert (row.is_new, row.grade.automatic) == (True, 7)


def test_no_execute_does_not_let_saved_outputs_count(released_course, hand_in):
    def forged(notebook):
        notebook["cells"][3]["outputs"] = [
            {
                "output_type": "execute_result",
                "execution_count": 1,
                "data": {"text/plain": "4.0"},
                "metadata": {},
            }
        ]

    hand_in("eve", forged)
    convert("Autograde", released_course, TOY, student="eve", Execute={"enabled": False})
    assert read_grades(released_course, TOY)[0].automatic == 0


def test_a_half_graded_folder_is_done_again(released_course, hand_in, answering, monkeypatch):
    hand_in("ada", answering(**PASSED))
    hand_in("ben", answering(**PASSED))

    def killed(self, nb, resources):
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr("autograder.preprocessors.save_grades.SaveGrades.preprocess", killed)
        with pytest.raises(KeyboardInterrupt):
            grade(released_course)
    half = released_course.autograded / "ada" / TOY
    half.mkdir(parents=True, exist_ok=True)
    (half / f"{TOY}.ipynb").write_text("{}")
    rows = grade(released_course)
    assert [row.grade.automatic for row in rows.values()] == [7, 7]


def test_one_failure_in_nbgrader_stops_nobody(released_course, hand_in, answering, monkeypatch):
    from autograder.preprocessors.save_grades import SaveGrades

    original = SaveGrades.preprocess

    def fail_for_ada(self, nb, resources):
        if resources["nbgrader"]["student"] == "ada":
            raise RuntimeError("no room")
        return original(self, nb, resources)

    for student in ("ada", "ben"):
        hand_in(student, answering(**PASSED))
    with monkeypatch.context() as patch:
        patch.setattr(SaveGrades, "preprocess", fail_for_ada)
        rows = grade(released_course)
    assert (rows["ada"].status, rows["ben"].grade.automatic) == ("failed", 7)
    assert "no room" in rows["ada"].notes[0]
    assert grade(released_course)["ada"].grade.automatic == 7


def test_a_lost_gradebook_row_is_written_again(released_course, hand_in, answering):
    hand_in("ada", answering(**PASSED))
    grade(released_course)
    from nbgrader.api import Gradebook

    with Gradebook(released_course.db_url) as gradebook:
        gradebook.remove_student("ada")
    assert grade(released_course)["ada"].grade.automatic == 7


def test_only_named_students_are_graded(released_course, hand_in, answering, pretend_checks):
    for student in ("ada", "ben"):
        hand_in(student, answering(**PASSED))
    assert list(grade(released_course, students=["ben"])) == ["ben"]
    assert pretend_checks == ["ben"]
    with pytest.raises(CourseError, match="Did you mean 'ben'"):
        grade(released_course, students=["bem"])


def test_lateness_is_read_from_the_timestamp(released_course, hand_in, answering):
    folder = hand_in("ada", answering(**PASSED))
    (folder / "timestamp.txt").write_text("2025-02-03 04:05:06 +0200")
    grade(released_course)
    with sqlite3.connect(released_course.gradebook) as connection:
        (time,) = next(connection.execute("select timestamp from submitted_assignment"))
    connection.close()
    assert time.startswith("2025-02-03 02:05:06")


def test_results_without_a_sandbox_are_marked(released_course, hand_in, answering):
    hand_in("ada", answering(**PASSED))
    row = grade(released_course, unsafe_no_sandbox=True)["ada"]
    assert row.backend == "none"
    assert "graded without a sandbox" in row.notes
    notebook = json.loads(
        (released_course.autograded / "ada" / TOY / f"{TOY}.ipynb").read_text(encoding="utf-8")
    )
    assert notebook["metadata"]["policylab"]["backend"] == "none"


def test_two_runs_at_once_are_refused(released_course, hand_in):
    hand_in("ada")
    with released_course.locked(), pytest.raises(CourseError, match="another autograder command"):
        grade(released_course)


def test_what_is_missing_is_named(released_course):
    with pytest.raises(CourseError, match="nobody handed in"):
        grade(released_course)
    with pytest.raises(CourseError, match="Did you mean '03_toy'"):
        grade_assignment(released_course, "03_toi")
    released_course.gradebook.unlink()
    with pytest.raises(CourseError, match="autograder release 03_toy"):
        grade(released_course)


def test_a_new_seed_replaces_the_secret_and_nothing_else_does(released_course, hand_in):
    hand_in("ada")
    secret = released_course.state / "secret"
    grade(released_course)
    first = secret.read_text()
    grade(released_course)
    assert secret.read_text() == first
    assert secret.stat().st_mode & 0o077 == 0
    grade(released_course, fresh_seed=True)
    assert secret.read_text() != first


def test_progress_is_told_to_the_end(released_course, hand_in):
    for student in ("ada", "ben"):
        hand_in(student)
    calls = []
    grade(released_course, progress=lambda *call: calls.append(call))
    assert calls[-1] == ("gradebook", 2, 2)
    assert ("checks", 1, 1) in calls  # equal submissions are one job
