# SPDX-License-Identifier: MIT
"""What a result depends on besides the student's cells, as one hash.

In it: the hidden checks and settings, points, the view, the course secret, limits, versions, and
the grading package itself.  Not in it: the kind of sandbox, the machine, the number of lanes.
"""

import hashlib
import json
import platform
from dataclasses import asdict, dataclass
from importlib.metadata import version
from pathlib import Path

from autograder.assignment import Assignment
from autograder.secret import check_seed, read_secret
from autograder.view import View, build_view

__all__ = ["Prepared", "fingerprint", "prepare"]

PACKAGES = ("torch", "numpy", "pytest", "msgspec", "policylab")


@dataclass(frozen=True)
class Prepared:
    """An assignment that is ready to grade."""

    view: View
    secret: bytes
    fingerprint: str


def prepare(assignment: Assignment) -> Prepared:
    """Write the assignment's view and read the course secret; both are made where missing."""
    view = build_view(assignment)
    secret = read_secret(assignment.state_dir)
    return Prepared(view, secret, fingerprint(assignment, view, secret))


def fingerprint(assignment: Assignment, view: View, secret: bytes) -> str:
    """Return the hash; it does not give the secret away."""
    content = {
        "name": assignment.name,
        "cells": [asdict(cell) for cell in assignment.cells],
        "limits": asdict(assignment.limits),
        "checks": _files(assignment.directory),
        "grader": _files(Path(__file__).resolve().parent, pattern="*.py"),
        "view": view.hash,
        "seed": check_seed(secret, assignment.name, ""),
        "python": platform.python_version(),
        "versions": {name: version(name) for name in PACKAGES},
    }
    return hashlib.sha256(json.dumps(content, sort_keys=True).encode()).hexdigest()


def _files(directory: Path, pattern: str = "**/*") -> dict[str, str]:
    """Return the hashes of a directory's files by name."""
    return {
        str(path.relative_to(directory)): hashlib.sha256(path.read_bytes()).hexdigest()
        for path in sorted(directory.glob(pattern))
        if path.is_file() and path.suffix != ".pyc"
    }
