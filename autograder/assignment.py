# SPDX-License-Identifier: MIT
"""An assignment as the grader sees it: settings, hidden checks, graded cells and their points.

Everything is read from files and nothing is imported: this runs in the gradebook's process.
"""

import math
import tomllib
from collections import Counter
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any

from autograder.inventory import AssignmentError, CheckInfo, read_inventory
from autograder.source import GradedCell, read_source
from autograder.suggest import did_you_mean

__all__ = ["Assignment", "AssignmentError", "GradedCell", "GradingLimits", "load_assignment"]

SETTINGS = "assignment.toml"
STATE = ".autograder"


@dataclass(frozen=True)
class GradingLimits:
    """How much a submission may use; seconds count while the student's code runs.

    Args:
        load_s: for running the notebook's cells once.
        check_s: for the student's code in one check, where the check names no limit of its own.
        submission_s: for all that the student's code does, loads included.
        grace_s: wall time that a check may take besides; then the check is at fault.
        memory_mb: what the student's process may allocate.
    """

    load_s: float = 20.0
    check_s: float = 10.0
    submission_s: float = 300.0
    grace_s: float = 20.0
    memory_mb: int = 1024

    def __post_init__(self) -> None:
        for field in fields(self):
            value = getattr(self, field.name)
            if type(value) not in (int, float) or not 0 < value < math.inf:
                raise AssignmentError(f"limits: {field.name} must be positive; got {value!r}.")
        if type(self.memory_mb) is not int:
            raise AssignmentError(f"limits: memory_mb must be whole; got {self.memory_mb!r}.")


@dataclass(frozen=True)
class Assignment:
    """All that grading needs to know.

    Args:
        name: such as "02_llm_as_policy".
        title: for people.
        root: the course root.
        directory: of the hidden checks.
        notebook: the solution notebook.
        given: functions of later assignments that students may use.
        limits: of a submission.
        checks: each after those that it needs.
        cells: graded by checks, in notebook order.
        manual_cells: graded by a person, in notebook order.
        imports: modules that the solution imports; the sandbox imports them once for all.
    """

    name: str
    title: str
    root: Path
    directory: Path
    notebook: Path
    given: tuple[str, ...]
    limits: GradingLimits
    checks: tuple[CheckInfo, ...]
    cells: tuple[GradedCell, ...]
    manual_cells: tuple[GradedCell, ...]
    imports: tuple[str, ...]

    @property
    def state_dir(self) -> Path:
        """Where the course keeps its secret, views and cached results."""
        return self.root / STATE

    def max_scores(self) -> dict[str, float]:
        """Return each check's points: a cell's points are split by the shares of its checks."""
        points = {cell.name: cell.points for cell in self.cells}
        shares: Counter[str] = Counter()
        for check in self.checks:
            shares[check.cell] += check.share  # type: ignore[assignment]
        return {
            check.id: points[check.cell] * check.share / shares[check.cell] for check in self.checks
        }

    def timeout_s(self, check: CheckInfo) -> float:
        """Return the seconds that the student's code may use in a check."""
        return check.timeout_s or self.limits.check_s


def load_assignment(name: str, course_root: Path, *, checks_root: Path | None = None) -> Assignment:
    """Read an assignment of the course.

    Args:
        name: of the assignment.
        course_root: holds solutions/ and the grader's state.
        checks_root: holds a folder of checks per assignment; by default autograder/checks in the
            course root, or next to this file where the course root has none.
    Raises: AssignmentError that says which file to mend and how.
    """
    root = Path(course_root).resolve()
    directory = _directory(name, root, checks_root)
    settings = _settings(directory / SETTINGS)
    notebook = root / "solutions" / name / f"{name}.ipynb"
    source = read_source(notebook)
    checks = read_inventory(directory)
    _match(checks, source.cells)
    return Assignment(
        name=name,
        title=settings["title"],
        root=root,
        directory=directory,
        notebook=notebook,
        given=settings["given"],
        limits=settings["limits"],
        checks=checks,
        cells=source.cells,
        manual_cells=source.manual_cells,
        imports=source.imports,
    )


def _directory(name: str, root: Path, checks_root: Path | None) -> Path:
    if checks_root is None:
        own = root / "autograder" / "checks"
        checks_root = own if own.is_dir() else Path(__file__).resolve().parent / "checks"
    known = sorted(path.parent.name for path in checks_root.glob(f"*/{SETTINGS}"))
    if name not in known:
        raise AssignmentError(f"unknown assignment {name!r}{did_you_mean(name, known)}")
    return checks_root / name


def _settings(path: Path) -> dict[str, Any]:
    try:
        table = tomllib.loads(path.read_text("utf-8"))
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise AssignmentError(f"{path}: {error}") from None
    _known_keys(table, ("title", "given", "limits"), path)
    title, given, limits = table.get("title"), table.get("given", []), table.get("limits", {})
    if type(title) is not str or not title:
        raise AssignmentError(f'{path}: write title = "...".')
    if type(given) is not list or any(type(item) is not str for item in given):
        raise AssignmentError(f"{path}: given must be a list of function names; got {given!r}.")
    if type(limits) is not dict:
        raise AssignmentError(f"{path}: limits must be a table, [limits].")
    _known_keys(limits, [field.name for field in fields(GradingLimits)], path)
    try:
        return {"title": title, "given": tuple(given), "limits": GradingLimits(**limits)}
    except AssignmentError as error:
        raise AssignmentError(f"{path}: {error}") from None


def _known_keys(table: dict[str, Any], known: Any, path: Path) -> None:
    for key in table:
        if key not in known:
            raise AssignmentError(f"{path}: unknown key {key!r}{did_you_mean(key, known)}")


def _match(checks: tuple[CheckInfo, ...], cells: tuple[GradedCell, ...]) -> None:
    """Refuse a check without a cell, and a cell with points that no check can give."""
    names = [cell.name for cell in cells]
    for check in checks:
        if check.cell not in names:
            where = f"{check.file}: check {check.id} names an unknown cell {check.cell!r}"
            raise AssignmentError(where + did_you_mean(check.cell, names))
    for cell in cells:
        shares = [check.share for check in checks if check.cell == cell.name]
        if not shares:
            raise AssignmentError(
                f"cell {cell.name!r} has no check. Add @check(cell={cell.name!r}, ...)."
            )
        if not any(shares):
            raise AssignmentError(f"all checks of cell {cell.name!r} have share 0.")
