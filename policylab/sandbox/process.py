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
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from policylab.sandbox import outer
from policylab.sandbox.codec import WireError
from policylab.sandbox.death import Death, Limits, classify
from policylab.sandbox.layout import current_layout
from policylab.sandbox.output import OutputPump
from policylab.sandbox.wire import Channel

_REPLY_SECONDS = 20.0
_GRACE_SECONDS = 1.0
_PACKAGE_ROOT = str(Path(__file__).resolve().parents[2])
_BOOTSTRAP = (
    "import sys; sys.path.extend({paths!r}); from policylab.sandbox.outer import main; main()"
)


class SandboxError(Exception):
    """The sandbox itself failed; no fault of the code that it runs."""


class ZygoteDied(SandboxError):
    """The zygote could not start, ended, or did not answer in time."""


class ForkDied(Exception):
    """The fork that served this check ended; the loaded worker lives on and can be forked again."""

    def __init__(self, death: Death) -> None:
        super().__init__(death.detail)
        self.death = death


class Zygote:
    """A jailed process that has imported what workers need and forks them.

    Safe to use in a fork of the process that made it, as long as only one of them uses it at a
    time: requests carry random ids, and replies that were meant for a killed fork are dropped.

    Args:
        view: directory that holds the `policylab` that student code may see.
        backend: "namespaces" or "landlock".
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
        if backend not in ("namespaces", "landlock"):
            raise ValueError(f"backend must be 'namespaces' or 'landlock'; got {backend!r}")
        self.backend = backend
        self.dead: str | None = None
        self._owner = os.getpid()
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
        if self.backend == "landlock":  # its own readable place, which tells nothing of the course
            copy = tempfile.mkdtemp(prefix="policylab-view-")
            self._stack.callback(shutil.rmtree, copy, ignore_errors=True)
            outer.copy_view(view, copy)
            view = copy
        layout = current_layout()
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
            executable = config["layout"]["executable"]
            command = [executable, *outer.interpreter_flags(), "-c", _BOOTSTRAP.format(paths=paths)]
            self._process = subprocess.Popen(
                command,
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

    def spawn(self, limits: Limits | None = None) -> "Worker":
        """Fork a fresh worker. Raises: ZygoteDied."""
        return Worker(self, limits or Limits())

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
        if os.getpid() != self._owner:
            self._control.close()
            return
        self._stack.close()

    def __enter__(self) -> "Zygote":
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


def zygote_environment() -> dict[str, str]:
    """Return the scrubbed environment: what numerics need, and nothing of the caller's secrets."""
    kept = {name: value for name, value in os.environ.items() if name.startswith("OPENBLAS_")}
    threads = dict.fromkeys(
        ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "NUMEXPR_NUM_THREADS"), "1"
    )
    fixed = {
        "PATH": "/usr/bin:/bin",
        "LANG": "C.UTF-8",
        "PYTHONHASHSEED": "0",  # the same order of sets in every run
        "TORCHINDUCTOR_CACHE_DIR": "/",  # torch._dynamo wants to make one; this one is there
    }
    return {**kept, **threads, **fixed}


class Worker:
    """One process of student code, loaded once; with `can_fork` each check runs in a fork of it.

    Attributes:
        channel: frames to and from the worker.
        pump: the student's output.
        dead: the reason, once `kill` or `death` was called.
    """

    def __init__(self, zygote: Zygote, limits: Limits) -> None:
        self.zygote, self.limits = zygote, limits
        self.can_fork = bool(zygote.info["can_fork"])
        self.dead: str | None = None
        self._death: Death | None = None
        self._id = secrets.randbits(53)
        ours, theirs = socket.socketpair()
        output_read, output_write = os.pipe()
        self._status_fd, status_write = os.pipe()
        os.set_blocking(self._status_fd, False)
        self.channel = Channel(ours, limits.buffer_bytes)
        self.pump = OutputPump(output_read, flood=limits.output)
        try:
            fds = [theirs.fileno(), output_write, status_write]
            zygote.request("spawn", fds, worker=self._id, limits=dataclasses.asdict(limits))
        except ZygoteDied:
            self._close()
            raise
        finally:
            theirs.close()
            os.close(output_write)
            os.close(status_write)

    def send(self, message: Any, buffers: Sequence[Any] = (), deadline: float = 0.0) -> None:
        """Send a frame. Raises: WireError, Timeout, PeerGone."""
        self.channel.send(message, buffers, deadline, self.pump)

    def recv(self, deadline: float) -> tuple[dict[str, Any], list[bytearray]]:
        """Receive a frame whose meta is a dict. Raises: ForkDied, WireError, Timeout, PeerGone."""
        message, buffers = self.channel.recv(deadline, self.pump)
        if type(message) is not dict:
            raise WireError("a frame that is no message")
        if "died" in message:
            raise ForkDied(classify(message["died"], self.limits, self.zygote.info["rss_kb"]))
        return message, buffers

    def kill(self, why: str) -> Death:
        """End the worker and all its processes, for this reason."""
        return self._end(why, 0.0)

    def death(self) -> Death:
        """Say how the worker ended, after `PeerGone`; ends it if it has not."""
        return self._end("it closed its connection", _GRACE_SECONDS)

    def _end(self, why: str, grace_s: float) -> Death:
        if self._death is not None:
            return self._death
        self.dead = why
        report: dict[str, Any] = {}
        try:
            report = self.zygote.request("kill", worker=self._id, grace_s=grace_s)
            if report.get("stuck"):
                self.zygote.dead = "a worker could not be killed"
            if self.zygote.backend == "namespaces":  # A tells more than its own end does
                report = self._status() or report
            else:
                report |= self._status()
            self.pump.drain_quietly()
        finally:
            self._close()
        self._death = classify(report, self.limits, self.zygote.info["rss_kb"], why)
        self.dead = self._death.detail
        return self._death

    def _status(self) -> dict[str, Any]:
        try:
            data = os.read(self._status_fd, 4096)
        except BlockingIOError:
            return {}
        return json.loads(data) if data else {}

    def _close(self) -> None:
        self.channel.sock.close()
        self.pump.close()
        if self._status_fd >= 0:
            os.close(self._status_fd)
            self._status_fd = -1

    def __enter__(self) -> "Worker":
        return self

    def __exit__(self, *_: object) -> None:
        if self.zygote.dead is None:
            self.kill("it was no longer needed")
        else:
            self._close()
