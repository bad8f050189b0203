# SPDX-License-Identifier: MIT
"""pytest plug-in that runs hidden checks against a submission in the sandbox.

For maintainers:

    pytest -p autograder.plugin autograder/checks/02_llm_as_policy --submission PATH.ipynb

Checks are ordinary test functions marked with `@check`.  Each gets `student` (names of the
notebook), `process` (to control it) and `draw` (hidden inputs), runs after those that it needs, and
is skipped if one of them does not pass.  A lane runs the same hooks (see `autograder.server`).
"""

import signal
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict
from pathlib import Path
from typing import Any

import pytest

from autograder.assignment import SETTINGS, load_assignment
from autograder.checking import Draw, check_id
from autograder.grading import Grading
from autograder.inventory import CheckInfo
from autograder.outcomes import CheckOverran, NeedsNotMet
from autograder.proxy import Student, StudentProcess

GRADING = pytest.StashKey[Grading]()


def pytest_addoption(parser: pytest.Parser) -> None:
    group = parser.getgroup("autograder")
    group.addoption("--submission", type=Path, help="a notebook, or a .py file, to check")
    group.addoption("--backend", help="sandbox to use; by default the best that works here")


def pytest_sessionstart(session: pytest.Session) -> None:
    """Start the sandbox for the submission named on the command line."""
    config = session.config
    submission = config.getoption("submission")
    if GRADING in config.stash or config.option.collectonly:
        return
    if submission is None:
        raise pytest.UsageError("name a submission to check: --submission PATH.ipynb")
    from autograder.single import open_submission

    assignment = load_assignment(*_locate(Path(config.args[0].split("::")[0])))
    config.stash[GRADING] = open_submission(assignment, submission, config.getoption("backend"))


def pytest_sessionfinish(session: pytest.Session) -> None:
    grading = session.config.stash.get(GRADING, None)
    if grading is not None:
        grading.close()


def _locate(path: Path) -> tuple[str, Path]:
    """Return the assignment's name and the course root of a path to its checks."""
    for directory in [path.resolve(), *path.resolve().parents]:
        if (directory / SETTINGS).is_file():
            return directory.name, directory.parents[2]
    raise pytest.UsageError(f"no {SETTINGS} in {path} or above it")


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Put each check after those that it needs; refuse what the inventory does not say."""
    grading = config.stash.get(GRADING, None)
    if grading is None:
        return
    order = {info.id: number for number, info in enumerate(grading.assignment.checks)}
    for item in items:
        _compare(item, grading.assignment.checks)
    items.sort(key=lambda item: order[id_of(item)])
    grading.collected = {id_of(item) for item in items}


def _compare(item: pytest.Item, checks: tuple[CheckInfo, ...]) -> None:
    spec = getattr(getattr(item, "obj", None), "check_spec", None)
    info = next((info for info in checks if info.id == id_of(item)), None)
    if spec is None or info is None:
        raise pytest.UsageError(f"{item.nodeid} is no @check function at the top of its file")
    read = {key: value for key, value in asdict(info).items() if key not in ("id", "file")}
    if read != asdict(spec):
        raise pytest.UsageError(f"{item.nodeid}: @check says something else than its source")


def id_of(item: pytest.Item) -> str:
    """Return the id of the check that an item runs."""
    assert isinstance(item, pytest.Function)
    return check_id(item.obj)


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_setup(item: pytest.Item) -> None:
    """Skip a check if one that it needs did not pass."""
    unmet = item.config.stash[GRADING].unmet_needs(id_of(item))
    if unmet:
        raise NeedsNotMet(unmet)


@pytest.hookimpl(hookwrapper=True)
def pytest_pyfunc_call(pyfuncitem: pytest.Function) -> Iterator[None]:
    """Limit the wall time of a check, whatever it computes on what the student's code returned."""
    with _alarm(pyfuncitem.config.stash[GRADING].wall_s(id_of(pyfuncitem))):
        yield


@contextmanager
def _alarm(seconds: float) -> Iterator[None]:
    def overrun(*_: Any) -> None:
        raise CheckOverran(f"the check did not end within {seconds:g} s")

    previous = signal.signal(signal.SIGALRM, overrun)
    signal.setitimer(signal.ITIMER_REAL, seconds)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, previous)


@pytest.hookimpl(hookwrapper=True)
def pytest_runtest_makereport(item: pytest.Item, call: pytest.CallInfo[None]) -> Iterator[None]:
    """Keep the outcome of each phase; the first that fails decides."""
    yield
    error = call.excinfo.value if call.excinfo is not None else None
    item.config.stash[GRADING].record(id_of(item), call.when, error, call.duration)


@pytest.fixture
def process(request: pytest.FixtureRequest) -> Iterator[StudentProcess]:
    """The student's process: calls with limits, seeds, in-place changes."""
    grading = request.config.stash[GRADING]
    with grading.check(id_of(request.node)):
        yield grading.process


@pytest.fixture
def student(process: StudentProcess) -> Student:
    """Names of the notebook: `student.f(x)` runs f in the student's process."""
    return process.student


@pytest.fixture
def draw(request: pytest.FixtureRequest) -> Draw:
    """Hidden inputs, the same for all students of a course."""
    return Draw(request.config.stash[GRADING].seeds[id_of(request.node)])
