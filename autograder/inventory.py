# SPDX-License-Identifier: MIT
"""The list of an assignment's hidden checks, read with `ast`: no check is imported.

The gradebook's process needs titles and points, but neither torch nor hidden tests in its memory.
So the arguments of `@check(...)` are literals; the checker compares what it imports with them.
"""

import ast
import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from autograder.suggest import did_you_mean

__all__ = ["AssignmentError", "CheckInfo", "read_inventory"]

PREFIX = "test_"
FIELDS = ("cell", "title", "share", "hint", "needs", "fresh", "timeout_s")


class AssignmentError(ValueError):
    """An assignment's files contradict each other; the message says what to do."""


@dataclass(frozen=True)
class CheckInfo:
    """One hidden check: its id, the file that holds it, and what its decorator says."""

    id: str
    file: str
    cell: str
    title: str
    share: float = 1.0
    hint: str = ""
    needs: tuple[str, ...] = ()
    fresh: bool = False
    timeout_s: float | None = None


def read_inventory(directory: Path) -> tuple[CheckInfo, ...]:
    """Return the checks of all test_*.py in `directory`, each after those that it needs.

    Raises: AssignmentError for a test without `@check`, arguments that are not literals, two checks
        of one id, and `needs` that are unknown or run in a circle.
    """
    checks: dict[str, CheckInfo] = {}
    for path in sorted(directory.glob("test_*.py")):
        for info in _checks_of(path):
            if info.id in checks:
                first = checks[info.id].file
                raise AssignmentError(f"check {info.id} stands in {first} and in {info.file}.")
            checks[info.id] = info
    if not checks:
        raise AssignmentError(f"no checks: {directory} holds no test_*.py with @check functions.")
    return _ordered(checks)


def _checks_of(path: Path) -> Iterator[CheckInfo]:
    try:
        tree = ast.parse(path.read_text("utf-8"), path.name)
    except SyntaxError as error:
        raise AssignmentError(f"{path.name}, line {error.lineno}: {error.msg}") from None
    for node in tree.body:
        if not isinstance(node, ast.FunctionDef) or not node.name.startswith(PREFIX):
            continue
        where = f"{path.name}, line {node.lineno}, {node.name}"
        calls = [item for item in node.decorator_list if _is_check(item)]
        if len(calls) != 1 or len(node.decorator_list) != 1:
            raise AssignmentError(f"{where}: give it one decorator, @check(cell=..., title=...).")
        info = _literal_arguments(calls[0], where)
        yield replace(info, id=node.name.removeprefix(PREFIX), file=path.name)


def _is_check(node: ast.expr) -> bool:
    target = node.func if isinstance(node, ast.Call) else node
    name = target.attr if isinstance(target, ast.Attribute) else getattr(target, "id", "")
    return name == "check"


def _literal_arguments(node: ast.expr, where: str) -> CheckInfo:
    if not isinstance(node, ast.Call) or node.args:
        raise AssignmentError(f"{where}: call check with keywords, @check(cell=..., title=...).")
    values = {}
    for keyword in node.keywords:
        name = keyword.arg or "**"
        if name not in FIELDS:
            raise AssignmentError(f"{where}: unknown argument {name!r}{did_you_mean(name, FIELDS)}")
        try:
            values[name] = ast.literal_eval(keyword.value)
        except ValueError:
            raise AssignmentError(f"{where}: {name} must be a literal, not computed.") from None
    return _validated(values, where)


def _validated(values: dict, where: str) -> CheckInfo:
    needs = values.pop("needs", ())
    if not isinstance(needs, (tuple, list)) or any(type(need) is not str for need in needs):
        raise AssignmentError(f"{where}: needs must be a tuple of check ids; got {needs!r}.")
    for name, kinds, default in (
        ("cell", (str,), None),
        ("title", (str,), None),
        ("hint", (str,), ""),
        ("share", (int, float), 1.0),
        ("fresh", (bool,), False),
        ("timeout_s", (int, float, type(None)), None),
    ):
        value = values.setdefault(name, default)
        if type(value) not in kinds or (name in ("cell", "title") and not value):
            wanted = " or ".join(kind.__name__ for kind in kinds)
            raise AssignmentError(f"{where}: {name} must be {wanted}; got {value!r}.")
    if not 0 <= values["share"] < math.inf:
        raise AssignmentError(f"{where}: share must be at least 0; got {values['share']}.")
    if values["timeout_s"] is not None and not 0 < values["timeout_s"] < math.inf:
        raise AssignmentError(f"{where}: timeout_s must be positive; got {values['timeout_s']}.")
    values["share"] = float(values["share"])
    return CheckInfo(id="", file="", needs=tuple(needs), **values)


def _ordered(checks: dict[str, CheckInfo]) -> tuple[CheckInfo, ...]:
    """Return the checks in the order of the files, but each after those that it needs."""
    for check in checks.values():
        for need in check.needs:
            if need not in checks:
                hint = did_you_mean(need, checks)
                raise AssignmentError(f"check {check.id} needs an unknown check {need!r}{hint}")
    done: dict[str, CheckInfo] = {}

    def visit(check: CheckInfo, path: Sequence[str]) -> None:
        if check.id in path:
            circle = " → ".join([*path[path.index(check.id) :], check.id])
            raise AssignmentError(f"checks need each other in a circle: {circle}.")
        if check.id not in done:
            for need in check.needs:
                visit(checks[need], [*path, check.id])
            done[check.id] = check

    for check in checks.values():
        visit(check, [])
    return tuple(done.values())
