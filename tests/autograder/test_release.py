# SPDX-License-Identifier: MIT
import json
import shutil
import sqlite3
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

from autograder.assignment import load_assignment
from autograder.bundle import make_bundle, refuse_answers
from autograder.converters import convert
from autograder.course import CourseError, find_course
from autograder.release import normal_form, release

ROOT = Path(__file__).parents[2]
TOY = "03_toy"
ASSIGNMENTS = sorted(path.parent.name for path in ROOT.glob("solutions/*/*.ipynb"))


@pytest.fixture
def checkout(tmp_path):
    """A course with the repository's own solutions and nothing else."""
    root = tmp_path / "checkout"
    root.mkdir()
    shutil.copy(ROOT / "nbgrader_config.py", root)
    shutil.copytree(ROOT / "solutions", root / "solutions")
    return find_course(root)


@pytest.mark.parametrize("name", ASSIGNMENTS)
def test_exercises_are_what_the_solutions_give(checkout, name):
    release(checkout, name)
    made, committed = checkout.exercises / name, ROOT / "exercises" / name
    files = {path.relative_to(made) for path in made.rglob("*") if path.is_file()}
    assert files == {path.relative_to(committed) for path in committed.rglob("*") if path.is_file()}
    for path in files:
        assert (made / path).read_bytes() == (committed / path).read_bytes(), "run: make exercises"


@pytest.mark.parametrize("name", ASSIGNMENTS)
def test_a_release_is_nbgraders_own_but_for_its_form(checkout, name):
    path = release(checkout, name)
    ours = path.read_text(encoding="utf-8")
    convert("GenerateAssignment", checkout, name)
    assert normal_form(json.loads(path.read_text(encoding="utf-8"))) == ours


@pytest.mark.parametrize("name", ASSIGNMENTS)
def test_no_solution_is_released(name):
    text = (ROOT / "exercises" / name / f"{name}.ipynb").read_text(encoding="utf-8")
    assert "SOLUTION" not in text
    notebook = json.loads(text)
    answers = [
        cell
        for cell in notebook["cells"]
        if cell["metadata"].get("nbgrader", {}).get("grade_id", "").endswith("_answer")
    ]
    assert answers
    for cell in answers:
        assert any("raise NotImplementedError" in line for line in cell["source"])


def test_releasing_twice_gives_the_same_bytes(released_course):
    path = released_course.exercises / TOY / f"{TOY}.ipynb"
    before = path.read_bytes()
    release(released_course, TOY)
    assert path.read_bytes() == before


def test_the_form_does_not_depend_on_who_saved_the_solution(released_course):
    path = released_course.exercises / TOY / f"{TOY}.ipynb"
    before = path.read_bytes()
    solution = released_course.solutions / TOY / f"{TOY}.ipynb"
    notebook = json.loads(solution.read_text())
    notebook["metadata"]["language_info"]["version"] = "3.98.1"
    notebook["nbformat_minor"] = 5
    notebook["cells"][0]["outputs"] = [{"output_type": "stream", "name": "stdout", "text": "noise"}]
    notebook["cells"][0]["execution_count"] = 12
    solution.write_text(json.dumps(notebook, indent=4))
    release(released_course, TOY)
    assert path.read_bytes() == before


def test_the_gradebook_knows_the_points(released_course):
    with sqlite3.connect(released_course.gradebook) as connection:
        rows = connection.execute(
            "select base_cell.name, max_score from grade_cells join base_cell using (id)"
        )
        points = dict(rows)
    connection.close()
    assert points == {"toy_1_scale": 4, "toy_2_is_even": 3, "toy_3_why": 2}


def test_a_solution_that_cannot_be_released_says_why(released_course):
    solution = released_course.solutions / TOY / f"{TOY}.ipynb"
    solution.write_text(solution.read_text().replace("### END SOLUTION", ""))
    with pytest.raises(CourseError, match="no end solution statement"):
        release(released_course, TOY)
    with pytest.raises(CourseError, match="Did you mean '03_toy'"):
        release(released_course, "3_toy")


def test_a_bundle_holds_what_students_need_and_no_more(released_course, tmp_path):
    path = make_bundle(released_course, TOY, tmp_path / "out")
    with zipfile.ZipFile(path) as bundle:
        names = bundle.namelist()
        wheels = [name for name in names if name.endswith(".whl")]
        wheel = zipfile.ZipFile(bundle.open(wheels[0]))
        requirements = bundle.read(f"{TOY}/requirements.txt").decode()
        readme = bundle.read(f"{TOY}/README.md").decode()
    plain = {f"{TOY}/{name}" for name in ("README.md", "requirements.txt", f"{TOY}.ipynb")}
    assert set(names) == plain | set(wheels)
    assert requirements.startswith(f"./{wheels[0].removeprefix(f'{TOY}/')}\n")
    assert "1." in readme and "3." in readme and "4." not in readme
    content = "".join(wheel.read(name).decode("utf-8", "replace") for name in wheel.namelist())
    assert not any("autograder/" in name or "checks" in name for name in wheel.namelist())
    assert "policylab/losses.py" in wheel.namelist()
    entry_points = next(name for name in wheel.namelist() if name.endswith("entry_points.txt"))
    assert "policylab = policylab.cli:main" in wheel.read(entry_points).decode()
    assert "policylab/cli.py" in wheel.namelist()
    assert "BEGIN SOLUTION" not in content
    before = path.read_bytes()
    assert make_bundle(released_course, TOY, tmp_path / "out").read_bytes() == before


def test_the_bundles_wheel_installs_and_has_no_answers(released_course, tmp_path):
    path = make_bundle(released_course, TOY, tmp_path)
    with zipfile.ZipFile(path) as bundle:
        bundle.extractall(tmp_path)
    wheel = next((tmp_path / TOY).glob("*.whl"))
    target = tmp_path / "installed"
    install = [sys.executable, "-m", "pip", "install", "--quiet", "--no-deps", "--no-index"]
    install += ["--disable-pip-version-check", "--target", str(target), str(wheel)]
    subprocess.run(install, check=True)
    code = "import policylab.exercise; print(policylab.exercise.__file__)"
    run = [sys.executable, "-I", "-c", f"import sys; sys.path.insert(0, {str(target)!r}); {code}"]
    found = subprocess.run(run, check=True, capture_output=True, text=True).stdout
    assert str(target) in found


def test_a_body_left_in_the_library_stops_the_bundle(released_course):
    assignment = load_assignment(TOY, released_course.root)
    body = b'@exercise("03_toy")\ndef scale(x, factor):\n    return x * factor\n'
    empty = b'@exercise("03_toy")\ndef scale(x, factor):\n    """Doc."""\n    raise ValueError\n'
    earlier = body.replace(b"03_toy", b"02_llm_as_policy")
    refuse_answers(assignment, {"policylab/a.py": empty, "policylab/b.py": earlier}, {})
    with pytest.raises(AssertionError, match="scale still has its body"):
        refuse_answers(assignment, {"policylab/a.py": body}, {})
    with pytest.raises(AssertionError, match="not for students"):
        refuse_answers(assignment, {}, {"checks/test_a.py": b""})
