# SPDX-License-Identifier: MIT
"""`autograder doctor`: what protects the grader here, found out by attacking it."""

import importlib.metadata
import json
import os
import platform
import shlex
import shutil
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

from autograder.course import CONFIG, CourseError, find_course, scripts_on_path
from policylab.sandbox.backends import BACKENDS, NoSafeBackend, choose_backend, probe
from policylab.sandbox.process import SandboxError
from policylab.sandbox.trials import AttackResult, run_probe_attacks

__all__ = ["Finding", "Report", "examine", "to_json", "to_text"]

PACKAGES = ("policylab", "torch", "nbgrader", "pytest", "msgspec")
REDUCED = "reduced: names and sizes of files outside stay visible to student code"


@dataclass(frozen=True)
class Finding:
    """One thing that was looked at.

    Args:
        name: of the thing.
        state: "ok", "missing" (worth a look, but no danger to the grades), or "bad" (grading is not
            safe).
        detail: what was found, and what to do.
    """

    name: str
    state: str
    detail: str


@dataclass(frozen=True)
class Report:
    """All findings; `backend` is "" where none is safe."""

    backend: str
    findings: tuple[Finding, ...]
    attacks: tuple[AttackResult, ...]

    @property
    def is_safe(self) -> bool:
        """Whether students' code may be run here."""
        is_bad = any(finding.state == "bad" for finding in self.findings)
        return bool(self.backend) and not is_bad and all(row.blocked for row in self.attacks)


def examine(course_root: str | None = None) -> Report:
    """Look at sandbox, environment and course."""
    backend, findings = _backend()
    attacks: list[AttackResult] = []
    if backend:
        try:
            attacks = run_probe_attacks(backend)
        except SandboxError as error:
            findings.append(Finding("attacks", "bad", f"could not be run: {error}"))
    findings += [_versions(), _alembic(), _user(), *_course(course_root)]
    return Report(backend, tuple(findings), tuple(attacks))


def to_text(report: Report) -> str:
    """Return the report for people."""
    marks = {"ok": "ok     ", "missing": "look at", "bad": "BAD    "}
    lines = [
        f"{marks[finding.state]}  {finding.name}: {finding.detail}" for finding in report.findings
    ]
    if report.attacks:
        lines += ["", f"attacks from inside the {report.backend} sandbox:"]
    for row in report.attacks:
        lines.append(
            f"{'blocked' if row.blocked else 'GOT OUT'}  {row.title} {_aside(row)}".rstrip()
        )
    verdict = "Students' code can be graded here." if report.is_safe else "Do NOT grade here."
    return "\n".join([*lines, "", verdict])


def to_json(report: Report) -> str:
    """Return the report as JSON, schema 1."""
    return json.dumps({"schema": 1, "is_safe": report.is_safe, **asdict(report)}, indent=1)


def _aside(row: AttackResult) -> str:
    return f"({row.detail})" if row.detail else ""


def _backend() -> tuple[str, list[Finding]]:
    """Return the backend that grading would use, and what was found about each."""
    findings = []
    try:
        chosen = choose_backend()
    except NoSafeBackend as error:
        chosen = ""
        findings.append(Finding("sandbox", "bad", str(error)))
    for name in BACKENDS:
        result = probe(name)
        if result.ok:
            use = "in use" if name == chosen else "works, not in use"
            detail = f"{use}; {REDUCED}" if name == "landlock" else use
            findings.append(Finding(f"backend {name}", "ok", detail))
        else:
            detail = f"{result.reason}. What helps: {result.fix}"
            findings.append(Finding(f"backend {name}", "missing", detail))
    return chosen, findings


def _versions() -> Finding:
    found = [f"Python {platform.python_version()}", f"Linux {platform.release()}"]
    missing = []
    for package in PACKAGES:
        try:
            found.append(f"{package} {importlib.metadata.version(package)}")
        except importlib.metadata.PackageNotFoundError:
            missing.append(package)
    if missing:
        return Finding("packages", "missing", f"run pip install -e '.[grading]' for {missing}")
    return Finding("packages", "ok", ", ".join(found))


def _alembic() -> Finding:
    scripts_on_path()
    found = shutil.which("alembic")
    if found is None:
        return Finding("alembic", "missing", "nbgrader needs it on PATH to make a gradebook")
    return Finding("alembic", "ok", "on PATH")


def _user() -> Finding:
    if os.getuid() == 0:
        return Finding("user", "ok", "root; student code runs as a throw-away user")
    return Finding("user", "ok", f"an ordinary user ({os.getuid()})")


def _course(course_root: str | None) -> Sequence[Finding]:
    try:
        course = find_course(course_root)
    except CourseError as error:
        return [Finding("course", "missing", str(error))]
    findings = [Finding("course", "ok", f"{course.root}, with {CONFIG}")]
    for name, path, is_right, mend in _paths(course.root):
        if os.path.lexists(path) and not is_right(path):
            findings.append(Finding(name, "bad", f"{path}: {mend}"))
    findings += _readers(course.root)
    names = course.assignments()
    state = "ok" if names else "missing"
    findings.append(Finding("assignments", state, ", ".join(names) or "none in solutions/"))
    return findings


def _paths(root: Path) -> Sequence[tuple[str, Path, Callable[[Path], bool], str]]:
    """Return (name, path, what must hold, how to mend it) of the course's own state."""
    return [
        ("secret", root / ".autograder" / "secret", _is_private, "chmod 600"),
        ("gradebook", root / "gradebook.db", _is_not_open, "others may write to it; chmod o-w"),
    ]


def _readers(root: Path) -> list[Finding]:
    """Return a warning if other users of the machine can get at students' work and grades.

    One folder on the way that others may not enter closes all that lies below it.
    """
    root = root.resolve()
    if not all(_lets_others_in(folder) for folder in (root, *root.parents)):
        return []
    what = "other users of this machine can read grades and submissions"
    return [Finding("readers", "missing", f"{what}; chmod 700 {shlex.quote(str(root))}")]


def _is_private(path: Path) -> bool:
    return path.stat().st_mode & 0o077 == 0


def _is_not_open(path: Path) -> bool:
    return path.stat().st_mode & 0o002 == 0


def _lets_others_in(folder: Path) -> bool:
    return folder.stat().st_mode & 0o001 != 0
