# SPDX-License-Identifier: MIT
"""Run nbgrader's converters in this process, since starting each as a command takes seconds."""

import contextlib
import logging
import os
import shutil
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from autograder.course import Course, scripts_on_path

__all__ = ["ConversionError", "convert"]


class ConversionError(RuntimeError):
    """nbgrader gave up on one assignment or submission; the text is its last error."""


def convert(
    converter_name: str,
    course: Course,
    assignment: str,
    *,
    student: str = "*",
    prepare: Callable[[Any], None] | None = None,
    **overrides: dict[str, Any],
) -> None:
    """Run one of nbgrader's converters, always replacing what it wrote before.

    Args:
        converter_name: of the class, such as "Autograde".
        course: gives the configuration.
        assignment, student: what to convert.
        prepare: called with the converter before it starts.
        overrides: configuration by class name, over the course's own.
    Raises: ConversionError if it failed.
    """
    scripts_on_path()
    from nbgrader import converters
    from nbgrader.coursedir import CourseDirectory

    directory = {"assignment_id": assignment, "student_id": student}
    overrides["CourseDirectory"] = overrides.get("CourseDirectory", {}) | directory
    overrides[converter_name] = overrides.get(converter_name, {}) | {"force": True}
    config = course.config(**overrides)
    with _logged(course.state / "nbgrader.log") as errors, warnings.catch_warnings():
        # nbgrader's own use of SQLAlchemy and of old APIs is nothing that a user could mend.
        warnings.simplefilter("ignore")
        try:
            converter = getattr(converters, converter_name)(
                coursedir=CourseDirectory(config=config), config=config
            )
            if prepare is not None:
                prepare(converter)
            converter.start()
        except (Exception, SystemExit) as error:
            raise ConversionError(_reason(errors, error)) from error


def _reason(errors: list[str], error: BaseException) -> str:
    """Return the line that says most: the exception at the end of the first logged traceback."""
    tracebacks = [text for text in errors if text.startswith("Traceback")]
    text = tracebacks[0] if tracebacks else str(error)
    lines = [line for line in text.splitlines() if line and not line.startswith(" ")]
    return lines[-1] if lines else type(error).__name__


@contextlib.contextmanager
def _logged(path: Path) -> Iterator[list[str]]:
    """Keep nbgrader's log off the terminal: in a file, and its errors in the yielded list."""
    path.parent.mkdir(mode=0o711, parents=True, exist_ok=True)
    errors: list[str] = []

    class Errors(logging.Handler):
        def emit(self, record: logging.LogRecord) -> None:
            errors.append(record.getMessage())

    logger = logging.getLogger("traitlets")
    to_file = logging.FileHandler(path, encoding="utf-8", errors="replace")
    to_file.setFormatter(logging.Formatter("%(asctime)s %(levelname)s %(message)s"))
    handlers = [to_file, Errors(logging.ERROR)]
    level, propagate = logger.level, logger.propagate
    logger.setLevel(logging.INFO)
    logger.propagate = False
    for handler in handlers:
        logger.addHandler(handler)
    os.chmod(path, 0o600)
    try:
        yield errors
    finally:
        for handler in handlers:
            logger.removeHandler(handler)
            handler.close()
        logger.setLevel(level)
        logger.propagate = propagate


def remove_tree(path: Path) -> None:
    """Remove a folder of nbgrader's, whose files it made read-only."""
    if path.is_dir() and not path.is_symlink():
        for folder, _, _ in os.walk(path):
            os.chmod(folder, 0o700)
        shutil.rmtree(path)
