# SPDX-License-Identifier: MIT
"""What the hidden checks give to code of ours, found out in this process.

For trusted code only: it runs with all our rights.  The demo compares the grader with it.
"""

import importlib.util
from collections.abc import Mapping, Sequence
from pathlib import Path
from types import ModuleType

from autograder.assignment import Assignment
from autograder.checking import Draw
from autograder.errors import StudentFailure
from autograder.inventory import CheckInfo
from autograder.local import LocalProcess
from autograder.secret import check_seed

__all__ = ["trusted_points"]


def trusted_points(
    assignment: Assignment, cells: Sequence[tuple[str, str]], secret: bytes
) -> dict[str, float]:
    """Return the points of each automatic cell.

    Args:
        assignment: whose checks are run, with the seeds that the grader draws from `secret`.
        cells: (name, source) of trusted code.
        secret: of the course.
    """
    process = LocalProcess(cells)
    functions = _functions(assignment)
    scores = assignment.max_scores()
    points = {cell.name: 0.0 for cell in assignment.cells}
    passed: set[str] = set()
    for info in assignment.checks:  # each after those that it needs
        if set(info.needs) <= passed and _holds(info, functions, process, assignment, secret):
            passed.add(info.id)
            points[info.cell] += scores[info.id]
    return {name: round(value, 6) for name, value in points.items()}


def _holds(
    info: CheckInfo,
    functions: Mapping[str, ModuleType],
    process: LocalProcess,
    assignment: Assignment,
    secret: bytes,
) -> bool:
    draw = Draw(check_seed(secret, assignment.name, info.id))
    fixtures = {"student": process.student, "process": process, "draw": draw}
    function = getattr(functions[Path(info.file).stem], f"test_{info.id}")
    names = function.__code__.co_varnames[: function.__code__.co_argcount]
    try:
        function(**{name: fixtures[name] for name in names})
    except (AssertionError, StudentFailure):
        return False
    return True


def _functions(assignment: Assignment) -> dict[str, ModuleType]:
    """Import the modules of checks by name of their files."""
    modules = {}
    for path in sorted(assignment.directory.glob("test_*.py")):
        spec = importlib.util.spec_from_file_location(f"checks_{path.stem}", path)
        assert spec is not None and spec.loader is not None
        module = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(module)
        modules[path.stem] = module
    return modules
