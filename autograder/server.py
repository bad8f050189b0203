# SPDX-License-Identifier: MIT
"""The checker process of a lane: `python -m autograder.server FD`, started by `autograder.checker`.

pytest collects the checks once.  In place of its loop over tests, this process reads submissions
from the lane's socket and forks a child for each: the child runs the checks and reports each one;
the parent keeps the deadlines, kills, restarts the sandbox, and writes the result.  Whatever
happens to a child, the sandbox or a check, each submission gets a valid result.
"""

import gc
import os
import signal
import socket
import sys
import time
import traceback
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
import torch

from autograder.assignment import load_assignment
from autograder.grading import Grading
from autograder.job import Progress, SandboxLost, run_checks
from autograder.messages import MessageError, MessageTimeout, receive, send
from autograder.plugin import GRADING, id_of
from autograder.proxy import start_zygote
from autograder.report import submission_result
from autograder.results import SubmissionResult
from policylab.sandbox import SandboxError, Zygote

MAX_CHILDREN = 6  # a submission that kills its checker again and again is not tried for ever
MAX_DEATHS = 2  # of children that run the same check
UNUSED_PLUGINS = (  # they cost milliseconds a check
    "cacheprovider doctest faulthandler junitxml logging threadexception unraisableexception "
    "warnings"
).split()


class Server:
    """Answers the lane until it hangs up.

    Args:
        lane: the socket.
        setup: the lane's first message.
    """

    def __init__(self, lane: socket.socket, setup: dict[str, Any]) -> None:
        self.lane = lane
        self.assignment = load_assignment(
            setup["assignment"], Path(setup["root"]), checks_root=Path(setup["checks_root"])
        )
        self.view, self.backend = Path(setup["view"]), setup["backend"]
        self.seeds: dict[str, int] = setup["seeds"]
        self.seed_name: str = setup["seed_name"]
        self.zygote: Zygote | None = None

    @pytest.hookimpl(tryfirst=True)
    def pytest_configure(self, config: pytest.Config) -> None:
        """Tell the plug-in the assignment; each child puts its own submission in its place."""
        config.stash[GRADING] = Grading(self.assignment, self.seeds)

    @pytest.hookimpl(tryfirst=True)
    def pytest_runtestloop(self, session: pytest.Session) -> bool:
        """Serve submissions instead of running the checks once."""
        missing = {info.id for info in self.assignment.checks} - set(map(id_of, session.items))
        if session.testsfailed:
            raise session.Interrupted("a file of checks does not import")
        if missing:
            raise pytest.UsageError(f"checks that pytest did not find: {sorted(missing)}")
        self._ready_zygote()
        _warm_up()
        gc.collect()
        gc.freeze()  # keeps the collector from touching, and so copying, the shared pages
        send(self.lane, {"ready": self.backend})
        while True:
            try:
                job = receive(self.lane)
            except MessageError:
                return True  # the lane hung up
            send(self.lane, {"result": self._grade(session, job).to_json()})

    def close(self) -> None:
        """End the sandbox."""
        if self.zygote is not None:
            self.zygote.close()
            self.zygote = None

    def _grade(self, session: pytest.Session, job: dict[str, Any]) -> SubmissionResult:
        started = time.monotonic()
        progress = Progress(self.assignment, [(name, source) for name, source in job["cells"]])
        deaths: Counter[str] = Counter()
        reason = ""
        for _ in range(MAX_CHILDREN):
            reason = self._run_child(session, progress)
            if progress.is_complete:
                break
            deaths[progress.running] += 1
            if deaths[progress.running] >= MAX_DEATHS:
                if not progress.running:
                    break  # it does not even get to a check
                progress.give_up(progress.running, reason)
        for check in progress.pending():
            progress.give_up(check, reason)
        return submission_result(
            self.assignment,
            progress.finished,
            backend=self.backend,
            key=job["key"],
            seed=self.seed_name,
            seconds=time.monotonic() - started,
            cell_errors=progress.cell_errors,
        )

    def _run_child(self, session: pytest.Session, progress: Progress) -> str:
        """Fork a child for the checks that are left; return why it did not complete them."""
        progress.restart()
        try:
            zygote = self._ready_zygote()
        except SandboxError as error:
            return f"the sandbox does not start: {error}"
        assert len(os.listdir("/proc/self/task")) == 1, "forking with threads is not safe"
        ours, theirs = socket.socketpair()
        child = os.fork()
        if child == 0:
            ours.close()
            self.lane.close()
            _child_main(session, progress, self.seeds, zygote, theirs)
        theirs.close()
        try:
            return self._watch(ours, progress)
        finally:
            ours.close()
            os.kill(child, signal.SIGKILL)
            os.waitpid(child, 0)
            self._clear(zygote)

    def _watch(self, child: socket.socket, progress: Progress) -> str:
        """Follow a child until it ends or overruns; return why it did not complete."""
        while not progress.is_complete:
            try:
                deadline = time.monotonic() + progress.limit_s
                progress.take(receive(child, deadline, hangup=self.lane))
                send(self.lane, {"alive_s": progress.limit_s})
            except MessageTimeout:
                reason = "the check did not end in time"
                if progress.running:
                    progress.give_up(progress.running, reason)
                return reason
            except MessageError as error:
                return f"the checker ended while it ran {progress.running or 'no check'}: {error}"
        return ""

    def _clear(self, zygote: Zygote) -> None:
        """End workers that a killed child has left; a zygote that cannot is given up."""
        try:
            zygote.kill_all()
        except SandboxError:
            self.close()

    def _ready_zygote(self) -> Zygote:
        if self.zygote is None:
            self.zygote = start_zygote(self.assignment, self.view, self.backend)
        return self.zygote


def _warm_up() -> None:
    """Import what assertions import when they are first used (seconds), once for all children."""
    torch.testing.assert_close(torch.ones(1), torch.ones(1))


def _child_main(session: pytest.Session, progress: Progress, *args: Any) -> None:
    """Run the child's checks; leave without any of the parent's clean-up."""
    code = 1
    try:
        run_checks(session, progress, *args)
        code = 0
    except SandboxLost as error:
        send(args[-1], {"kind": "lost", "reason": str(error)})
    except BaseException:
        traceback.print_exc()  # to the lane's log
    finally:
        sys.stderr.flush()
        os._exit(code)


def main(fd: int) -> int:
    """Serve the lane on this descriptor."""
    torch.set_num_threads(1)
    lane = socket.socket(fileno=fd)
    lane.set_inheritable(False)
    setup = receive(lane)
    try:
        server = Server(lane, setup)
        options = [f"-pno:{name}" for name in UNUSED_PLUGINS] + ["-pautograder.plugin", "-q"]
        files = ["--rootdir", setup["checks_root"], "-c", os.devnull, "--import-mode=importlib"]
        arguments = [*options, *files, "--capture=no", str(server.assignment.directory)]
        try:
            code = pytest.main(arguments, plugins=[server])
        finally:
            server.close()
        if code != pytest.ExitCode.OK:
            sys.stdout.flush()  # the lane reads the log when it hears of this
            send(lane, {"failed": f"pytest ended with {code!r}; see the lane's log"})
        return int(code)
    except MessageError:
        return 0  # the lane is gone
    except Exception as error:
        send(lane, {"failed": f"{type(error).__name__}: {error}"})
        return 2


if __name__ == "__main__":
    sys.exit(main(int(sys.argv[1])))
