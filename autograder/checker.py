# SPDX-License-Identifier: MIT
"""A lane: a checker process of its own that grades one submission after another.

The checker imports the hidden checks and drives the sandbox.  It gets neither the gradebook's path
nor the course secret, only the seeds drawn from it.  Where it crashes or hangs in the middle of a
submission it is started anew and tries once more; then a person has to grade that submission.
"""

import os
import signal
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from autograder.assignment import Assignment
from autograder.messages import MessageError, receive, send
from autograder.report import FAULT, submission_result
from autograder.results import ResultError, SubmissionResult
from autograder.secret import check_seed, secret_name
from autograder.view import View

__all__ = ["Lane", "LaneError"]

STARTUP_SECONDS = 180.0
GRACE_SECONDS = 60.0  # beyond what the checker announces that it needs
ATTEMPTS = 2
LOG_BYTES = 4_000
THREADS = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS")
KEPT_ENVIRONMENT = ("PATH", "LANG", "LC_ALL", "TMPDIR", "LD_LIBRARY_PATH", "VIRTUAL_ENV")


class LaneError(RuntimeError):
    """The checker does not start: the checks do not import, or there is no sandbox."""


class Lane:
    """Grades submissions of one assignment, one at a time.

    Args:
        assignment: whose checks are run.
        view: what student code can see.
        secret: of the course.
        backend: name of the sandbox.
    """

    def __init__(self, assignment: Assignment, view: View, secret: bytes, backend: str) -> None:
        self.assignment, self.view, self.backend = assignment, view, backend
        self._seeds = {
            info.id: check_seed(secret, assignment.name, info.id) for info in assignment.checks
        }
        self._seed_name = secret_name(secret)
        self._process: subprocess.Popen[bytes] | None = None
        self._socket: socket.socket | None = None
        self._log: Any = None
        self._is_closed = False

    def start(self) -> None:
        """Start the checker and wait until it is ready.

        Raises: LaneError with the end of the checker's log.
        """
        self._stop()
        ours, theirs = socket.socketpair()
        self._log = tempfile.TemporaryFile("ab+")  # appended to: both sides share its offset
        self._process = subprocess.Popen(
            [sys.executable, "-m", "autograder.server", str(theirs.fileno())],
            env=_environment(),
            cwd="/",
            pass_fds=[theirs.fileno()],
            stdin=subprocess.DEVNULL,
            stdout=self._log,
            stderr=self._log,
            start_new_session=True,  # Ctrl-C reaches the command only; it ends the lanes
        )
        theirs.close()
        self._socket = ours
        try:
            send(ours, self._setup())
            reply = receive(ours, time.monotonic() + STARTUP_SECONDS)
        except MessageError as error:
            reply = {"failed": str(error)}
        if "ready" not in reply:
            reason, log = reply.get("failed"), self._log_tail()
            self._stop()
            raise LaneError(f"the checker does not start: {reason}\n{log}")

    def grade(self, cells: Sequence[tuple[str, str]], key: str) -> SubmissionResult:
        """Run all checks on a submission.

        Args:
            cells: (name, source) of the code cells to run, in notebook order.
            key: of the result.
        Raises: LaneError if the checker does not even start the first time.
        """
        reason = ""
        started = time.monotonic()
        if self._process is None:
            self.start()
        for attempt in range(ATTEMPTS):
            try:
                if attempt:
                    self.start()
                return self._ask(cells, key)
            except (MessageError, ResultError, LaneError) as error:
                reason = f"{error}\n{self._log_tail()}"
                self._stop()
            if self._is_closed:
                raise LaneError("the lane was interrupted")
        return submission_result(
            self.assignment,
            {},
            backend=self.backend,
            key=key,
            seed=self._seed_name,
            seconds=time.monotonic() - started,
            note=FAULT,
            fault=reason,
        )

    def interrupt(self) -> None:
        """Kill the checker from another thread; `grade` then raises LaneError."""
        self._is_closed = True
        self._kill()

    def close(self) -> None:
        """Kill the checker and all that it started."""
        self._is_closed = True
        self._stop()

    def _ask(self, cells: Sequence[tuple[str, str]], key: str) -> SubmissionResult:
        assert self._socket is not None
        send(self._socket, {"key": key, "cells": [list(cell) for cell in cells]})
        patience = self.assignment.limits.load_s
        while True:
            reply = receive(self._socket, time.monotonic() + patience + GRACE_SECONDS)
            if "alive_s" in reply:
                patience = reply["alive_s"]
                continue
            result = SubmissionResult.from_json(reply.get("result", ""))
            if result.key != key or result.assignment != self.assignment.name:
                raise ResultError("a result of another submission")
            return result

    def _setup(self) -> dict[str, Any]:
        return {
            "assignment": self.assignment.name,
            "root": str(self.assignment.root),
            "checks_root": str(self.assignment.directory.parent),
            "view": str(self.view.path),
            "backend": self.backend,
            "seeds": self._seeds,
            "seed_name": self._seed_name,
        }

    def _stop(self) -> None:
        self._kill()
        if self._process is not None:
            self._process.wait()
            self._process = None
        if self._socket is not None:
            self._socket.close()
            self._socket = None
        if self._log is not None:
            self._log.close()
            self._log = None

    def _kill(self) -> None:
        process = self._process
        if process is not None:
            try:
                os.killpg(process.pid, signal.SIGKILL)
            except ProcessLookupError:
                pass

    def _log_tail(self) -> str:
        if self._log is None:
            return ""
        size = self._log.seek(0, os.SEEK_END)
        self._log.seek(max(0, size - LOG_BYTES))
        return self._log.read().decode("utf-8", "replace")


def _environment() -> dict[str, str]:
    """Return what the checker needs of the environment: no path of the course, no plug-ins."""
    kept = {name: os.environ[name] for name in KEPT_ENVIRONMENT if name in os.environ}
    return {
        **kept,
        **dict.fromkeys(THREADS, "1"),
        "PYTHONDONTWRITEBYTECODE": "1",
        "PYTHONPATH": str(Path(__file__).resolve().parents[1]),
        "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1",
    }
