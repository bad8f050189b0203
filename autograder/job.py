# SPDX-License-Identifier: MIT
"""One submission in a lane: the child that runs the checks, and what the parent knows of it."""

import os
import resource
import socket
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from typing import Any

import pytest
from _pytest.runner import runtestprotocol

from autograder import results
from autograder.assignment import Assignment
from autograder.grading import Grading
from autograder.messages import MessageError, send
from autograder.outcomes import cell_errors
from autograder.plugin import GRADING, id_of
from autograder.proxy import StudentProcess
from autograder.report import FAULT, Finished, Outcome
from autograder.results import CellError
from policylab.sandbox import Zygote

__all__ = ["Progress", "SandboxLost", "run_checks"]

MEMORY_BYTES = 4 << 30  # what the checks may allocate, whatever the student's code returns
START_SECONDS = 60.0  # for a child's first message


class Progress:
    """What the parent knows of a submission under way; it survives the death of a child.

    Args:
        assignment: of the submission.
        cells: (name, source) in notebook order.
    """

    def __init__(self, assignment: Assignment, cells: Sequence[tuple[str, str]]) -> None:
        self.assignment, self.cells = assignment, tuple(cells)
        self.finished: dict[str, Finished] = {}
        self.cell_errors: tuple[CellError, ...] = ()
        self.restart()
        self.used_s = 0.0  # of the submission's limit
        self.is_complete = False

    def restart(self) -> None:
        """Get ready for another child."""
        self.running = ""  # id of a check
        self.limit_s = START_SECONDS  # for the next message

    def pending(self) -> list[str]:
        """Return the ids of checks without an outcome, in order."""
        return [info.id for info in self.assignment.checks if info.id not in self.finished]

    def take(self, message: dict[str, Any]) -> None:
        """Take in a message of the child.

        Raises: MessageError if the child says that it cannot go on.
        """
        kind = message["kind"]
        if kind == "start":
            self.running, self.limit_s = message["check"], message["limit_s"]
        elif kind == "done":
            outcome = Outcome(**message["outcome"])
            self.finished[message["check"]] = Finished(outcome, message["seconds"])
            self.cell_errors = tuple(CellError(**row) for row in message["cell_errors"])
            self.used_s, self.running = message["used_s"], ""
        elif kind == "lost":
            raise MessageError(message["reason"])
        else:
            self.is_complete = True

    def give_up(self, check: str, reason: str) -> None:
        """Record that a check could not be judged."""
        outcome = Outcome(results.GRADER_FAULT, FAULT, reason)
        self.finished.setdefault(check, Finished(outcome, 0.0))


class SandboxLost(Exception):
    """The sandbox failed, not the student's code: the parent starts another and tries again."""


def run_checks(
    session: pytest.Session,
    progress: Progress,
    seeds: Mapping[str, int],
    zygote: Zygote,
    parent: socket.socket,
) -> None:
    """Run the checks that are left and report each one; the body of the child process.

    Raises: SandboxLost if the sandbox fails.
    """
    _limit_memory()
    assignment = progress.assignment
    process = StudentProcess(zygote, progress.cells, assignment.limits, used_s=progress.used_s)
    sources = tuple(source for _, source in progress.cells)
    grading = Grading(assignment, seeds, process, sources, dict(progress.finished))
    session.config.stash[GRADING] = grading
    items = [item for item in session.items if id_of(item) not in grading.finished]
    for item, following in zip(items, [*items[1:], None], strict=True):
        check = id_of(item)
        limit_s = assignment.limits.load_s + grading.wall_s(check) + assignment.limits.grace_s
        send(parent, {"kind": "start", "check": check, "limit_s": limit_s})
        runtestprotocol(item, log=False, nextitem=following)
        if grading.sandbox_failure:
            raise SandboxLost(grading.sandbox_failure)
        done = grading.finished[check]
        errors = cell_errors(process.load_errors, sources)
        send(
            parent,
            {
                "kind": "done",
                "check": check,
                "outcome": asdict(done.outcome),
                "seconds": done.seconds,
                "cell_errors": [asdict(error) for error in errors],
                "used_s": process.budget.used,
            },
        )
    process.close()
    send(parent, {"kind": "end"})


def _limit_memory() -> None:
    """Bound what a check can be made to allocate; a MemoryError then is a grader fault."""
    with open("/proc/self/statm") as file:
        now = int(file.read().split()[0]) * os.sysconf("SC_PAGE_SIZE")
    _, hard = resource.getrlimit(resource.RLIMIT_AS)
    resource.setrlimit(resource.RLIMIT_AS, (now + MEMORY_BYTES, hard))
