# SPDX-License-Identifier: MIT
"""A small course in a temporary folder: one assignment, two graded cells, a handful of checks."""

import json
from pathlib import Path

import pytest
import torch

from autograder.assignment import GradingLimits, load_assignment
from autograder.checker import Lane
from autograder.fingerprint import prepare
from autograder.proxy import PREIMPORT, StudentProcess
from autograder.view import build_view
from policylab.sandbox import SandboxError, Zygote, ZygoteDied, choose_backend

TOY = "03_toy"
BACKENDS = ("namespaces", "landlock")
LIMITS = GradingLimits(load_s=5, check_s=5, submission_s=60, memory_mb=512)

SETTINGS = """\
title = "A toy"
given = []

[limits]
load_s = 3
check_s = 2
submission_s = 60
grace_s = 2
memory_mb = 512
"""

CHECKS = """\
# SPDX-License-Identifier: MIT
import os
import signal
import time

import torch

from autograder.checking import assert_bool, assert_gradient, assert_tensor, check, raises


@check(cell="toy_1_scale", share=3, title="the gradient is the factor", needs=("scale_value",))
def test_scale_gradient(student, draw):
    x = draw.normal(4).requires_grad_()
    assert_gradient(student.scale(x, 3.0).sum(), x, torch.full((4,), 3.0))


@check(cell="toy_1_scale", share=1, title="multiplies each number", hint="use *")
def test_scale_value(student, draw):
    x = draw.normal(4)
    assert_tensor(student.scale(x, 3.0), 3 * x)


@check(cell="toy_2_is_even", title="tells even from odd", hint="look at the last bit")
def test_is_even_both_answers(student, draw):
    for number in draw.shuffled(range(6)):
        assert_bool(student.is_even(number), number % 2 == 0)


@check(cell="toy_2_is_even", title="refuses text", needs=("is_even_both_answers",))
def test_is_even_refuses(student):
    with raises("TypeError"):
        student.is_even("two")


@check(cell="toy_2_is_even", title="starts from a fresh load", fresh=True)
def test_is_even_fresh(student, process):
    assert process.has("is_even")
    assert student.is_even(2) is True


@check(cell="toy_4_trap", title="the answer is ok", timeout_s=0.5)
def test_trap(student):
    mode = student.trap()  # what a check could be made to do
    if mode == "spin":
        while True:
            pass
    if mode == "deaf":
        signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGALRM})
        time.sleep(60)
    if mode == "die":
        os.kill(os.getpid(), signal.SIGKILL)
    if mode == "fault":
        raise ValueError("expected 17")
    if mode == "memory":
        torch.zeros(1 << 35)
    assert mode == "ok", "expected 18"


@check(cell="toy_4_trap", title="the next check is not touched", share=0)
def test_zz_after_trap(student):
    assert student.is_even(4) is True
"""

ANSWER = {
    "toy_1_scale": "def scale(x, factor):\n    return x * factor\n",
    "toy_2_is_even": (
        "def is_even(number):\n"
        "    if type(number) is not int:\n"
        "        raise TypeError('an int, please')\n"
        "    return number % 2 == 0\n"
    ),
    "toy_4_trap": "def trap():\n    return 'ok'\n",
}


def graded_cell(name, points, cell_type="code"):
    label = {"grade_id": name, "grade": True, "solution": cell_type != "code", "points": points}
    cell = {"cell_type": cell_type, "id": name, "metadata": {"nbgrader": label}, "source": ""}
    return cell if cell_type != "code" else {**cell, "outputs": [], "execution_count": None}


def write_course(root: Path) -> Path:
    checks, solution = root / "autograder" / "checks" / TOY, root / "solutions" / TOY
    checks.mkdir(parents=True)
    solution.mkdir(parents=True)
    (checks / "assignment.toml").write_text(SETTINGS)
    (checks / "test_toy.py").write_text(CHECKS)
    cells = [
        graded_cell("toy_1_scale", 4),
        graded_cell("toy_2_is_even", 3),
        graded_cell("toy_3_why", 2, "markdown"),
        graded_cell("toy_4_trap", 1),
    ]
    notebook = {"cells": cells, "metadata": {}, "nbformat": 4, "nbformat_minor": 5}
    (solution / f"{TOY}.ipynb").write_text(json.dumps(notebook))
    return root


@pytest.fixture
def toy_course(tmp_path):
    """Root of a new course with the assignment 03_toy; a test may edit its files."""
    return write_course(tmp_path / "course")


@pytest.fixture
def toy_answer():
    """Sources of the right answers by graded cell."""
    return dict(ANSWER)


# For the gradebook's side: a smaller assignment of the same name with a whole notebook, released.

CLASS_CHECKS = """\
from autograder.checking import assert_bool, assert_gradient, assert_tensor, check, raises

import torch


@check(cell="toy_1_scale", share=3, title="the gradient is the factor", needs=("scale_value",))
def test_scale_gradient(student, draw):
    x = draw.normal(4).requires_grad_()
    assert_gradient(student.scale(x, 3.0).sum(), x, torch.full((4,), 3.0))


@check(cell="toy_1_scale", share=1, title="multiplies each number", hint="use *")
def test_scale_value(student, draw):
    x = draw.normal(4)
    assert_tensor(student.scale(x, 3.0), 3 * x)


@check(cell="toy_2_is_even", share=2, title="tells even from odd", hint="look at the last bit")
def test_is_even_both_answers(student, draw):
    for number in draw.shuffled(range(6)):
        assert_bool(student.is_even(number), number % 2 == 0)


@check(cell="toy_2_is_even", title="refuses text", needs=("is_even_both_answers",))
def test_is_even_refuses(student):
    with raises("TypeError"):
        student.is_even("two")
"""

CLASS_ANSWERS = {
    "toy_1_scale": "def scale(x, factor):\n    return x * factor\n",
    "toy_2_is_even": (
        "def is_even(number):\n"
        "    if type(number) is not int:\n"
        "        raise TypeError('an int, please')\n"
        "    return number % 2 == 0\n"
    ),
}


def labelled(name, source, cell_type="code", **label):
    flags = {"grade": False, "solution": False, "locked": False, "task": False}
    metadata = {"nbgrader": {"schema_version": 3, **flags, **label, "grade_id": name}}
    cell = {"cell_type": cell_type, "id": name, "metadata": metadata, "source": source}
    return cell if cell_type != "code" else {**cell, "outputs": [], "execution_count": None}


def answer_cell(name, source):
    head, _, body = source.partition("\n")
    text = f"{head}\n    ### BEGIN SOLUTION\n{body}    ### END SOLUTION"
    return labelled(f"{name}_answer", text, solution=True)


def whole_notebook():
    comment = "# The hidden checks of this exercise run elsewhere."
    cells = [
        labelled("setup", "import math", locked=True),
        answer_cell("toy_1_scale", CLASS_ANSWERS["toy_1_scale"]),
        labelled("toy_1_scale_visible", "assert scale(2, 3) == 6", locked=True),
        labelled("toy_1_scale", comment, grade=True, locked=True, points=4),
        answer_cell("toy_2_is_even", CLASS_ANSWERS["toy_2_is_even"]),
        labelled("toy_2_is_even", comment, grade=True, locked=True, points=3),
        labelled("toy_3_why", "Because.", "markdown", grade=True, solution=True, points=2),
        labelled("toy_explore", "while True:\n    pass", locked=True),
    ]
    kernel = {"name": "python3", "display_name": "Python 3", "language": "python"}
    metadata = {"kernelspec": kernel, "language_info": {"name": "python", "version": "3.99.0"}}
    return {"cells": cells, "metadata": metadata, "nbformat": 4, "nbformat_minor": 5}


@pytest.fixture(scope="session")
def released_template(tmp_path_factory):
    import shutil

    from autograder.course import find_course
    from autograder.release import release

    root = write_course(tmp_path_factory.mktemp("released") / "course")
    (root / "autograder" / "checks" / TOY / "test_toy.py").write_text(CLASS_CHECKS)
    (root / "solutions" / TOY / f"{TOY}.ipynb").write_text(json.dumps(whole_notebook()))
    shutil.copy(Path(__file__).parents[2] / "nbgrader_config.py", root)
    release(find_course(root), TOY)
    return root


@pytest.fixture
def class_answers():
    """Right answers of the released assignment, by graded cell."""
    return dict(CLASS_ANSWERS)


@pytest.fixture
def released_course(released_template, tmp_path):
    """A course whose gradebook knows the assignment 03_toy; a test may change all of it."""
    import shutil

    from autograder.course import find_course

    return find_course(shutil.copytree(released_template, tmp_path / "course"))


@pytest.fixture
def hand_in(released_course):
    """Hand in the released notebook as `student`, after `edit` changed it or gave a text."""

    def submit(student, edit=lambda notebook: None):
        released = released_course.exercises / TOY / f"{TOY}.ipynb"
        notebook = json.loads(released.read_text(encoding="utf-8"))
        text = edit(notebook) or json.dumps(notebook)
        folder = released_course.submitted / student / TOY
        folder.mkdir(parents=True, exist_ok=True)
        (folder / f"{TOY}.ipynb").write_text(text, encoding="utf-8")
        return folder

    return submit


@pytest.fixture
def answering():
    """Return an edit that writes sources into cells by grade_id."""

    def write(**sources):
        def edit(notebook):
            for cell in notebook["cells"]:
                name = cell["metadata"]["nbgrader"]["grade_id"]
                cell["source"] = sources.get(name, cell["source"])

        return edit

    return write


@pytest.fixture
def pretend_checks(monkeypatch):
    """Let a word in the code decide each check, without a sandbox; return the jobs graded."""
    from autograder.pool import job_key, prepare
    from autograder.results import CheckResult, SubmissionResult

    graded = []

    def grade(jobs, assignment, *, lanes=None, backend=None, on_result=None):
        results = {}
        fingerprint = prepare(assignment).fingerprint
        for job in jobs:
            graded.append(job.label)
            code = "\n".join(source for _, source in job.cells)
            words = ("passed", "error", "grader_fault", "timeout")
            status = next((word for word in words if f"# {word}" in code), "failed")
            scores = assignment.max_scores()
            checks = tuple(
                CheckResult(
                    id=check.id,
                    cell=check.cell,
                    title=check.title,
                    hint=check.hint,
                    status=status,
                    score=scores[check.id] if status == "passed" else 0.0,
                    max_score=scores[check.id],
                    message="ValueError in <b>your</b> line" if status == "error" else "",
                    seconds=0.1,
                    detail="expected 42, a hidden value",
                )
                for check in assignment.checks
            )
            key = job_key(job, fingerprint)
            results[key] = SubmissionResult(
                1, assignment.name, backend or "namespaces", key, "seed", 0.5, checks
            )
            if on_result:
                on_result(job, results[key], False)
        return results

    monkeypatch.setattr("autograder.grade.grade_jobs", grade)
    monkeypatch.setattr("autograder.preprocessors.sandbox_grade.grade_jobs", grade)
    return graded


@pytest.fixture(scope="session", autouse=True)
def one_thread():
    """Two cores are shared by lanes, zygotes and tests."""
    torch.set_num_threads(1)


@pytest.fixture(scope="session", params=BACKENDS)
def backend(request):
    """Each sandbox in turn."""
    return request.param


@pytest.fixture(scope="session")
def strongest(lacking):
    """Name of the best sandbox here, for tests that do not depend on its kind."""
    try:
        return choose_backend()
    except SandboxError as error:
        lacking(f"no sandbox here: {error}")


@pytest.fixture(scope="session")
def session_course(tmp_path_factory):
    """The course that lanes and zygotes of the whole session use; no test edits it."""
    return write_course(tmp_path_factory.mktemp("session") / "course")


@pytest.fixture(scope="session")
def zygote(backend, session_course, lacking):
    """A warm zygote; skips where the machine has no such sandbox."""
    view = build_view(load_assignment(TOY, session_course))
    try:
        zygote = Zygote(view.path, backend=backend, preimport=PREIMPORT)
    except ZygoteDied as error:
        lacking(f"no {backend} sandbox here: {error}")
    with zygote:
        yield zygote


@pytest.fixture
def load(zygote):
    """Load a source, or cells, as a submission: `process = load("def f(): ...")`."""
    opened = []

    def open_process(*sources, limits=LIMITS):
        cells = [(f"cell{number}", source) for number, source in enumerate(sources)]
        opened.append(StudentProcess(zygote, cells, limits))
        return opened[-1]

    yield open_process
    for process in opened:
        process.close()
    zygote.kill_all()


@pytest.fixture(scope="session")
def lane(zygote, session_course):
    """A warm lane of the toy assignment."""
    assignment = load_assignment(TOY, session_course)
    prepared = prepare(assignment)
    lane = Lane(assignment, prepared.view, prepared.secret, zygote.backend)
    lane.start()
    yield lane
    lane.close()
