# SPDX-License-Identifier: MIT
"""A progress bar on stderr, on a terminal only."""

import contextlib
import sys
from collections.abc import Iterator

from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

from autograder.tables import console

__all__ = ["show_progress"]

WORDS = {"checks": "running checks", "gradebook": "writing gradebook"}


@contextlib.contextmanager
def show_progress() -> Iterator["_Reporter"]:
    """Yield what `grade_assignment` wants for `progress`."""
    columns = (
        TextColumn("{task.description}"),
        BarColumn(),
        MofNCompleteColumn(),
        TimeRemainingColumn(),
    )
    is_hidden = not sys.stderr.isatty()
    with Progress(*columns, console=console(stderr=True), transient=True, disable=is_hidden) as bar:
        yield _Reporter(bar)


class _Reporter:
    """One bar a stage."""

    def __init__(self, bar: Progress) -> None:
        self.bar = bar
        self.tasks = {
            name: bar.add_task(text, total=None, visible=False) for name, text in WORDS.items()
        }

    def __call__(self, stage: str, done: int, size: int) -> None:
        self.bar.update(self.tasks[stage], completed=done, total=size, visible=True)
