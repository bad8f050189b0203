# SPDX-License-Identifier: MIT
"""The trusted side: starts zygotes and workers, talks to them, and ends them.

    with Zygote(view, backend=choose_backend(), preimport=("torch",)) as zygote:
        worker = zygote.spawn(Limits())
        worker.send({"op": "has", "id": 1, "n": "f"}, (), deadline)
        reply, buffers = worker.recv(deadline)

Every wait has a deadline. A zygote that does not answer in time is killed, with all its workers,
and reported as `ZygoteDied`: a fault of the grader, never of the student.
"""

import array
import contextlib
import dataclasses
import json
import os
import secrets
import shutil
import signal
import socket
import subprocess
import tempfile
import time
import weakref
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from policylab.sandbox import jail, outer
from policylab.sandbox.death import Limits
from policylab.sandbox.layout import (
    Layout,
    current_layout,
    unreadable_by_others,
    zygote_environment,
)
from policylab.sandbox.remote import Worker

_REPLY_SECONDS = 20.0
_PACKAGE_ROOT = str(Path(__file__).resolve().parents[2])


class SandboxError(Exception):
    """The sandbox itself failed; no fault of the code that it runs."""


class ZygoteDied(SandboxError):
    """The zygote could not start, ended, or did not answer in time."""


class Zygote:
    """A jailed process that has imported what workers need and forks them.

    Safe to use in a fork of the process that made it, as long as only one of them uses it at a
    time: requests carry random ids, and replies that were meant for a killed fork are dropped.

    Args:
        view: directory that holds the `policylab` that student code may see.
        backend: "namespaces" or "landlock"; "none" is no jail at all.
        preimport: modules to import before the first fork.
        startup_s: time for the jail and the imports.
        highest_landlock_abi: act like an older kernel; it can only lower.
    Raises: ZygoteDied.
    """

    def __init__(
        self,
        view: str | os.PathLike[str],
        *,
        backend: str = "namespaces",
        preimport: Sequence[str] = ("torch", "torch._dynamo"),
        startup_s: float = 120.0,
        highest_landlock_abi: int = 99,
    ) -> None:
        if backend not in (known := ("namespaces", "landlock", outer.UNSAFE)):
            raise ValueError(f"backend must be one of {known}; got {backend!r}")
        self.backend = backend
        self.dead: str | None = None
        self._owner = os.getpid()
        self._workers: weakref.WeakSet[Worker] = weakref.WeakSet()
        self._stack = contextlib.ExitStack()
        self._log = os.memfd_create("zygote-log")
        self._stack.callback(os.close, self._log)
        try:
            config = self._configuration(os.fspath(view), preimport, highest_landlock_abi)
            self._start(config)
            self.info = self._await_ready(startup_s)
        except BaseException:
            self.close()
            raise

    def _configuration(self, view: str, preimport: Sequence[str], abi: int) -> dict[str, Any]:
        if not os.path.isdir(os.path.join(view, "policylab", "sandbox")):
            raise ValueError(f"the view must hold policylab/sandbox; there is none in {view!r}")
        layout = current_layout()
        if self.backend != "namespaces":  # a readable place of its own, which tells nothing of ours
            copy = tempfile.mkdtemp(prefix="policylab-view-")
            self._stack.callback(shutil.rmtree, copy, ignore_errors=True)
            outer.copy_view(view, copy)
            view = copy
        if self.backend == "landlock":
            _require_readable(layout, view)
        return {
            "backend": self.backend,
            "view": os.path.realpath(view),
            "layout": dataclasses.asdict(layout),
            "readable": list(layout.readable()),
            "preimport": list(preimport),
            "environment": zygote_environment(),
            "highest_abi": abi,
        }

    def _start(self, config: dict[str, Any]) -> None:
        ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        self._control = ours
        self._stack.callback(ours.close)
        stdin = os.memfd_create("zygote-configuration")
        try:
            os.write(stdin, json.dumps({**config, "fds": [theirs.fileno()]}).encode())
            os.lseek(stdin, 0, os.SEEK_SET)
            paths = [_PACKAGE_ROOT, *config["layout"]["sites"]]
            self._process = subprocess.Popen(
                outer.python_command(config["layout"]["executable"], "outer", paths),
                env=config["environment"],
                cwd="/",
                pass_fds=[theirs.fileno()],
                stdin=stdin,
                stdout=self._log,
                stderr=self._log,
                start_new_session=True,
            )
        finally:
            os.close(stdin)
            theirs.close()
        # a pidfd is never reused, and unlike Popen it can be used from a fork
        self._pidfd = os.pidfd_open(self._process.pid)
        self._stack.callback(os.close, self._pidfd)
        self._stack.callback(self._end_process)

    def _await_ready(self, startup_s: float) -> dict[str, Any]:
        reply = self._receive(time.monotonic() + startup_s, f"was not ready within {startup_s} s")
        if "failed" in reply:
            self._fail(f"could not start: {reply['failed']}")
        return reply

    def spawn(self, limits: Limits | None = None) -> Worker:
        """Fork a fresh worker. Raises: ZygoteDied."""
        worker = Worker(self, limits or Limits())
        self._workers.add(worker)
        return worker

    def kill_all(self) -> int:
        """End all workers, those of a killed fork of this process too; return their number."""
        return int(self.request("kill_all").get("killed", 0))

    def ping(self) -> None:
        """Raise ZygoteDied unless the zygote answers."""
        self.request("ping")

    def request(
        self, op: str, fds: Sequence[int] = (), *, timeout_s: float = _REPLY_SECONDS, **fields: Any
    ) -> dict[str, Any]:
        """Send a control message and return its reply. Raises: ZygoteDied."""
        if self.dead is not None:
            raise ZygoteDied(self.dead)
        number = secrets.randbits(53)
        message = json.dumps({"n": number, "op": op, **fields}).encode()
        ancillary = [(socket.SOL_SOCKET, socket.SCM_RIGHTS, array.array("i", fds))] if fds else []
        deadline = time.monotonic() + timeout_s
        try:
            self._control.settimeout(timeout_s)
            self._control.sendmsg([message], ancillary)
        except OSError as error:
            self._fail(f"took no request ({type(error).__name__})")
        while True:
            reply = self._receive(deadline, f"did not answer {op!r} within {timeout_s} s")
            if reply.get("n") != number:
                continue  # meant for a fork of this process that was killed while it waited
            if "error" in reply:
                self._fail(f"failed at {op!r}: {reply['error']}")
            return reply

    def _receive(self, deadline: float, late: str) -> dict[str, Any]:
        try:
            self._control.settimeout(max(0.001, deadline - time.monotonic()))
            data = self._control.recv(1 << 16)
        except TimeoutError:
            self._fail(late)
        except OSError as error:
            self._fail(f"is gone ({type(error).__name__})")
        if not data:
            self._fail("ended")
        return json.loads(data)

    def _fail(self, problem: str) -> Any:
        self._kill_process()
        text = self.log().strip()
        self.dead = f"the zygote {problem}" + (f"\n{text}" if text else "")
        raise ZygoteDied(self.dead)

    def log(self) -> str:
        """Return what the zygote wrote to its own standard streams."""
        return os.pread(self._log, 1 << 16, 0).decode("utf8", "replace")

    def _kill_process(self) -> None:
        if hasattr(self, "_pidfd"):
            with contextlib.suppress(ProcessLookupError):
                signal.pidfd_send_signal(self._pidfd, signal.SIGKILL)

    def _end_process(self) -> None:
        if os.getpid() != self._owner:
            return
        self._control.close()  # the zygote ends when its control socket does
        try:
            self._process.wait(5.0)
        except subprocess.TimeoutExpired:
            self._kill_process()
            self._process.wait(5.0)

    def close(self) -> None:
        """End the zygote and all its workers; in a fork of its owner only let go of it."""
        self.dead = self.dead or "the zygote was closed"
        for worker in self._workers:
            worker.let_go()
        if os.getpid() != self._owner:
            self._control.close()
            return
        self._stack.close()

    def __enter__(self) -> "Zygote":
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


def _require_readable(layout: Layout, view: str) -> None:
    """As root the zygote gives up its uid, and what only root can read is lost to it."""
    if os.getuid() != 0 or jail.throwaway_id() is None:
        return
    if (path := unreadable_by_others([*layout.roots, *layout.sites, view])) is not None:
        raise SandboxError(
            f"as root the landlock backend runs student code under a uid of its own, which cannot "
            f"read {path}. Use an interpreter and an environment that ordinary users can read "
            f"(for example below /opt), or run as an ordinary user."
        )
