# SPDX-License-Identifier: MIT
"""A course root: where its folders lie, and how nbgrader is configured for it.

nbgrader is imported only where it is needed, because that takes seconds.
"""

import contextlib
import fcntl
import os
import re
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from autograder.suggest import did_you_mean

__all__ = ["CONFIG", "Course", "CourseError", "find_course"]

CONFIG = "nbgrader_config.py"
STAGED = ".autograder/staged"
#: Name of a student's folder: no path separators, glob or regex characters, no leading dot, and no
#: space at the end, which nbgrader strips: "ann " would be graded as "ann".
STUDENT_NAME = re.compile(r"\w([\w.@+ -]{0,62}[\w.@+-])?")


class CourseError(ValueError):
    """The course root, or a name in it, is not what the command needs; the text says what to do."""


@dataclass(frozen=True)
class Course:
    """Folders of a course, as nbgrader_config.py names them."""

    root: Path

    @property
    def solutions(self) -> Path:
        return self.root / "solutions"

    @property
    def exercises(self) -> Path:
        return self.root / "exercises"

    @property
    def submitted(self) -> Path:
        return self.root / "submitted"

    @property
    def staged(self) -> Path:
        """Clean copies of the submissions: what nbgrader reads when `autograder grade` runs it."""
        return self.root / STAGED

    @property
    def autograded(self) -> Path:
        return self.root / "autograded"

    @property
    def feedback(self) -> Path:
        return self.root / "feedback"

    @property
    def state(self) -> Path:
        return self.root / ".autograder"

    @property
    def gradebook(self) -> Path:
        return self.root / "gradebook.db"

    @property
    def db_url(self) -> str:
        return f"sqlite:///{self.gradebook}"

    def assignments(self) -> list[str]:
        """Return the names of all assignments that have a solution notebook."""
        return sorted(path.parent.name for path in self.solutions.glob("*/*.ipynb"))

    def require_assignment(self, name: str) -> str:
        """Return `name` if it is an assignment of the course.

        Raises: CourseError that guesses what was meant.
        """
        names = self.assignments()
        if name in names:
            return name
        if not names:
            raise CourseError(
                f"{self.solutions} holds no assignment. Is {self.root} a course root?"
            )
        raise CourseError(f"no assignment {name!r} in {self.solutions}{did_you_mean(name, names)}")

    def config(self, **overrides: dict[str, Any]) -> Any:
        """Return nbgrader's configuration: the course's own file, then `overrides` by class."""
        from traitlets.config import Config
        from traitlets.config.loader import PyFileConfigLoader

        config = PyFileConfigLoader(CONFIG, path=str(self.root)).load_config()
        config.CourseDirectory.root = str(self.root)
        config.merge(Config(overrides))
        return config

    @contextlib.contextmanager
    def locked(self) -> Iterator[None]:
        """Hold the course's lock: one process at a time writes the gradebook.

        Raises: CourseError if another process holds it.
        """
        self.state.mkdir(mode=0o711, parents=True, exist_ok=True)
        with open(self.state / "lock", "w") as file:
            try:
                fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except OSError:
                raise CourseError(
                    f"another autograder command is at work in {self.root}. Wait for it to end."
                ) from None
            yield


def find_course(root: str | os.PathLike[str] | None = None) -> Course:
    """Return the course at `root`, or the one around the working directory.

    Raises: CourseError if there is none.
    """
    start = Path(root or os.getcwd()).resolve()
    candidates = [start] if root else [start, *start.parents]
    for path in candidates:
        if (path / CONFIG).is_file():
            return Course(path)
    raise CourseError(
        f"{start} is not a course root: it holds no {CONFIG}. "
        "Go to the course's folder, or name it with --course-root."
    )


def scripts_on_path() -> None:
    """Let nbgrader find `alembic`, which it starts by name, without an activated environment."""
    scripts = os.path.dirname(sys.executable)
    path = os.environ.get("PATH", os.defpath)
    if scripts not in path.split(os.pathsep):
        os.environ["PATH"] = os.pathsep.join([scripts, path])
