# SPDX-License-Identifier: MIT
"""The hidden checks are proved by answers: every wrong one is caught, no right one ever is.

Answers lie in tests/answers/NN_slug/<function>/{wrong,right}_<slug>.py: what is wrong with it, the
id of the check that must catch it, then the function.  `shaped.py` beside them knows the shape of a
result.  They are ours, so they run in this process.  test_chapters.py says how many there must be.
`pytest -s` prints the matrix: which check caught which wrong answer.
"""

import hashlib
import importlib.util
import inspect
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import nbformat
import pytest
import torch

from autograder.checking import Draw, check_id
from autograder.errors import StudentFailure
from autograder.local import LocalProcess

ROOT = Path(__file__).parents[2]
ASSIGNMENTS = sorted(path.parent.name for path in ROOT.glob("autograder/checks/*/assignment.toml"))
WRONG_SEEDS, RIGHT_SEEDS = range(20), range(200)

Check = Callable[..., None]


@dataclass(frozen=True)
class Answer:
    """One answer of ours to one graded function."""

    slug: str
    source: str
    caught_by: str = ""


@cache
def checks_of(assignment: str) -> dict[str, Check]:
    """Return the assignment's checks by id."""
    found: dict[str, Check] = {}
    for path in sorted((ROOT / "autograder/checks" / assignment).glob("test_*.py")):
        spec = importlib.util.spec_from_file_location(f"hidden_{assignment}_{path.stem}", path)
        assert spec is not None and spec.loader is not None
        module = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(module)
        for function in vars(module).values():
            if inspect.isfunction(function) and hasattr(function, "check_spec"):
                assert check_id(function) not in found, (
                    f"two checks are called {check_id(function)}"
                )
                found[check_id(function)] = function
    return found


def checks_for(assignment: str, function: str) -> dict[str, Check]:
    """Return the checks that share the points of this function's cell."""
    every = checks_of(assignment)
    # ex02_1_completion_logprobs: the exercise's number, then the function.
    return {i: c for i, c in every.items() if c.check_spec.cell.split("_", 2)[2] == function}


@cache
def functions_of(assignment: str) -> tuple[str, ...]:
    """Return the graded functions, in the order of the exercises."""
    cells = {check.check_spec.cell for check in checks_of(assignment).values()}
    return tuple(cell.split("_", 2)[2] for cell in sorted(cells))


def answers(assignment: str, function: str, kind: str) -> list[Answer]:
    """Read the answers of a kind, "wrong" or "right"."""
    found = []
    for path in sorted((ROOT / "tests/answers" / assignment / function).glob(f"{kind}_*.py")):
        source = path.read_text("utf-8")
        lines = source.splitlines()
        caught_by = lines[1].partition("# caught by: ")[2] if kind == "wrong" else ""
        found.append(Answer(path.stem.removeprefix(f"{kind}_"), source, caught_by))
    return found


def reference(assignment: str) -> str:
    """Return the code that the solution notebook defines its functions with."""
    path = ROOT / "solutions" / assignment / f"{assignment}.ipynb"
    if not path.exists():
        return ""
    cells = nbformat.read(path, as_version=4).cells
    named = [(cell.metadata.get("nbgrader", {}).get("grade_id", ""), cell.source) for cell in cells]
    return "\n".join(
        source for name, source in named if name == "setup" or name.endswith("_answer")
    )


EQUAL = """
import torch

class Equal:
    def __eq__(self, other):
        return True
    def __bool__(self):
        return True
"""


def generic_answers(assignment: str, function: str) -> dict[str, str]:
    """Return answers that nobody thought about: they must earn nothing."""
    body = {
        "stub": "raise NotImplementedError",
        "none": "return None",
        "number": "return 0.0",
        "echo": "return ([*args, *options.values()])[0]",
        "zeros": "return shaped(args, options, 0.0)",
        "ones": "return shaped(args, options, 1.0)",
        "nan": "return shaped(args, options, float('nan'))",
        "always_equal": "return Equal()",
    }
    shaped = (ROOT / "tests/answers" / assignment / function / "shaped.py").read_text("utf-8")
    return {
        slug: f"{EQUAL}\n{shaped}\n\ndef {function}(*args, **options):\n    {code}\n"
        for slug, code in body.items()
    }


def draw_for(seed: int, check: str) -> Draw:
    """Make a check's inputs, as the grader does with its secret in the place of `seed`."""
    return Draw(int.from_bytes(hashlib.sha256(f"{seed}:{check}".encode()).digest()[:8]))


def grade(process: LocalProcess, checks: dict[str, Check], seed: int) -> tuple[set, set]:
    """Run checks after those they need.  Returns: ids that caught the answer; ids that passed.

    A check that was skipped is in neither.  An exception that is the student's fault, or a failed
    assertion, is a catch; anything else is a fault of the check and ends the test.
    """
    caught, passed, done = set(), set(), set()

    def run(name: str) -> None:
        if name in done:
            return
        done.add(name)
        for need in checks[name].check_spec.needs:
            run(need)
        if all(need in passed for need in checks[name].check_spec.needs):
            try:
                checks[name](student=process.student, draw=draw_for(seed, name), process=process)
                passed.add(name)
            except (AssertionError, StudentFailure):
                caught.add(name)

    for name in checks:
        run(name)
    return caught, passed


def loaded(source: str) -> LocalProcess:
    process = LocalProcess([("answer", source)])
    assert process.load_errors == []
    return process


@pytest.fixture(autouse=True)
def one_thread():
    """Small tensors: more threads only get in each other's way."""
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(before)


CASES = [(a, f) for a in ASSIGNMENTS for f in functions_of(a)]
RIGHT = [
    (assignment, function, answer)
    for assignment, function in CASES
    for answer in [
        *answers(assignment, function, "right"),
        Answer("reference", reference(assignment)),
    ]
]


@pytest.mark.parametrize(("assignment", "function"), CASES)
def test_every_wrong_answer_is_caught_by_the_check_it_names(assignment, function):
    checks = checks_for(assignment, function)
    matrix: dict[str, Counter[str]] = {}
    survived = []
    for answer in answers(assignment, function, "wrong"):
        process, catches = loaded(answer.source), Counter[str]()
        for seed in WRONG_SEEDS:
            caught, _ = grade(process, checks, seed)
            catches.update(caught)
            if not caught:
                survived.append((answer.slug, seed))
        matrix[answer.slug] = catches
        assert catches[answer.caught_by] == len(WRONG_SEEDS), (answer.slug, dict(catches))
    print(table(function, list(checks), matrix))
    assert survived == []
    only = {next(iter(catches)) for catches in matrix.values() if len(catches) == 1}
    assert set(checks) - only == set(), "a check that is never the only one to catch an answer"


@pytest.mark.parametrize(
    ("assignment", "function", "answer"), RIGHT, ids=[f"{n}-{f}-{a.slug}" for n, f, a in RIGHT]
)
def test_right_answers_get_every_point_for_every_seed(assignment, function, answer):
    checks, process = checks_for(assignment, function), loaded(answer.source)
    for seed in RIGHT_SEEDS:
        caught, passed = grade(process, checks, seed)
        assert (caught, passed) == (set(), set(checks)), f"seed {seed}"


@pytest.mark.parametrize(("assignment", "function"), CASES)
def test_generic_answers_earn_nothing(assignment, function):
    checks = checks_for(assignment, function)
    for slug, source in generic_answers(assignment, function).items():
        process = loaded(source)
        for seed in WRONG_SEEDS:
            assert grade(process, checks, seed)[1] == set(), (slug, seed)


@pytest.mark.parametrize("assignment", ASSIGNMENTS)
def test_every_folder_of_answers_is_a_graded_functions(assignment):
    folders = {path.name for path in (ROOT / "tests/answers" / assignment).iterdir()}
    assert folders == set(functions_of(assignment))


def table(function: str, checks: list[str], matrix: dict[str, Counter[str]]) -> str:
    """Format the matrix: a row an answer, a column a check, # where it is the only catch."""
    short = [check.removeprefix(f"{function}_") for check in checks]
    width = max(map(len, matrix))
    lines = [f"\n{function}: {len(matrix)} wrong answers, {len(checks)} checks"]
    lines += [f"  {chr(97 + column)} {name}" for column, name in enumerate(short)]
    lines.append(" " * (width + 3) + "".join(chr(97 + column) for column in range(len(short))))
    for slug, catches in matrix.items():
        mark = "#" if len(catches) == 1 else "x"
        row = "".join(mark if catches[check] else "." for check in checks)
        lines.append(f"  {slug:<{width}} {row}")
    return "\n".join(lines)
