# SPDX-License-Identifier: MIT
"""The zygote: a jailed process without secrets that imports once and forks a worker per request.

It is a fresh exec, never a fork of the checker: a fork would carry the tests in memory.
Process tree of a worker with `namespaces`: zygote -> A, which waits, kills and reports -> B, pid 1
of its own pid namespace -> C, one at a time, a fork of the loaded state for each check. With
`landlock` the zygote's child is the worker itself.

Control messages are JSON on a SEQPACKET socket, `{"n": id, "op": "spawn" | "kill" | "kill_all" |
"ping", ...}`; each reply repeats n.
"""

import array
import gc
import importlib
import json
import os
import resource
import signal
import socket
import sys
import time
import traceback
from collections.abc import Callable
from typing import Any, NoReturn

from policylab.sandbox import inner, jail, landlock
from policylab.sandbox.huge_pages import collapse_heap

KILL_SECONDS = 5.0
_SPAWN_FDS = 3


def main() -> NoReturn:
    """Import, report that all is ready, and serve until the other end closes."""
    config = json.loads(os.environ.pop("POLICYLAB_ZYGOTE"))
    control_fd, task_fd, statm_fd = config["fds"]
    control = socket.socket(fileno=control_fd)
    try:
        warm_up(config["preimport"])
        config["can_fork"] = config["backend"] == "namespaces" and _limits_processes_by_namespace()
        zygote = Zygote(control, config, task_fd, statm_fd)
        ready = zygote.ready()
    except BaseException as error:
        text = "".join(traceback.format_exception_only(error)).strip()
        control.send(json.dumps({"failed": text[:4000]}).encode())
        os._exit(1)
    control.send(json.dumps(ready).encode())
    zygote.serve()
    os._exit(0)


def warm_up(modules: list[str]) -> None:
    """Do with one thread what every worker would otherwise pay for.

    libgomp hangs in a fork after a parallel region with two threads, hence one thread here and the
    count of tasks before every fork.
    """
    for name in modules:
        importlib.import_module(name)
    if "torch" in sys.modules:
        sys.modules["torch"].set_num_threads(1)
    importlib.import_module("policylab.sandbox.worker")
    gc.collect()
    gc.freeze()  # keeps the collector from touching, and so copying, the shared pages
    collapse_heap()


def memory_of_a_fork() -> int:
    """Return the kilobytes that a worker starts with: it shares most of them with the zygote."""
    pid = os.fork()
    if pid == 0:
        os._exit(0)
    return os.wait4(pid, 0)[2].ru_maxrss


def _limits_processes_by_namespace() -> bool:
    """From Linux 5.14 on RLIMIT_NPROC counts per user namespace, before that per user."""
    major, minor = os.uname().release.split(".")[:2]
    return (int(major), int("".join(c for c in minor if c.isdigit()) or 0)) >= (5, 14)


class Zygote:
    """The jailed end of the control socket; `process.Zygote` is the trusted one."""

    def __init__(
        self, control: socket.socket, config: dict[str, Any], task_fd: int, statm_fd: int
    ) -> None:
        self.control, self.config = control, config
        self.task_fd, self.statm_fd = task_fd, statm_fd
        self.children: dict[int, int] = {}  # worker id -> pid
        self.base = self.address_space()
        # Blocked here and inherited by A, which collects them with sigwait. A handler plus a
        # blocking wait has a window that loses signals: it hung about once in a hundred kills.
        signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGTERM, signal.SIGCHLD})

    def address_space(self) -> int:
        return int(os.pread(self.statm_fd, 100, 0).split()[0]) * resource.getpagesize()

    def tasks(self) -> int:
        return len(os.listdir(self.task_fd))

    def ready(self) -> dict[str, Any]:
        return {
            "ready": True,
            "backend": self.config["backend"],
            "can_fork": self.config["can_fork"],
            "landlock_abi": landlock.abi(),
            "uid": os.getuid(),
            "tasks": self.tasks(),
            "address_space": self.base,
            "rss_kb": memory_of_a_fork(),
        }

    def serve(self) -> None:
        operations: dict[str, Callable[[dict[str, Any], list[int]], dict[str, Any]]] = {
            "spawn": self.spawn,
            "kill": self.kill,
            "kill_all": self.kill_all,
            "ping": lambda request, fds: {},
        }
        while True:
            data, ancillary, _, _ = self.control.recvmsg(1 << 16, socket.CMSG_SPACE(4 * _SPAWN_FDS))
            if not data:
                return
            request, fds = json.loads(data), _received_fds(ancillary)
            try:
                reply = operations[request["op"]](request, fds)
            except Exception as error:
                reply = {"error": f"{type(error).__name__}: {error}"}
            finally:
                for fd in fds:
                    os.close(fd)
            self.control.send(json.dumps({"n": request["n"], **reply}).encode())

    def spawn(self, request: dict[str, Any], fds: list[int]) -> dict[str, Any]:
        assert self.tasks() == 1, "the zygote has threads; forking it is not safe"
        pid = os.fork()
        if pid == 0:
            try:
                self.control.close()
                self.run_child(request["limits"], fds)
            except BaseException as error:
                os.write(fds[2], json.dumps({"fail": repr(error)[:500]}).encode())
            finally:
                os._exit(70)
        self.children[request["worker"]] = pid
        return {"pid": pid}

    def kill(self, request: dict[str, Any], fds: list[int]) -> dict[str, Any]:
        """End a worker. With `grace_s` it is waited for first: it may be ending by itself."""
        pid = self.children.pop(request["worker"], None)
        return {} if pid is None else self.end(pid, request.get("grace_s", 0.0))

    def kill_all(self, request: dict[str, Any], fds: list[int]) -> dict[str, Any]:
        killed = [self.end(pid, 0.0) for pid in self.children.values()]
        self.children.clear()
        return {"killed": len(killed)}

    def end(self, pid: int, grace_s: float) -> dict[str, Any]:
        if (report := wait_for(pid, grace_s)) is not None:
            return report
        gentle = signal.SIGTERM if self.config["backend"] == "namespaces" else signal.SIGKILL
        for number in (gentle, signal.SIGKILL):
            os.kill(pid, number)
            if (report := wait_for(pid, KILL_SECONDS)) is not None:
                return {**report, "asked": True}
        return {"stuck": True, "asked": True}

    def run_child(self, limits: dict[str, Any], fds: list[int]) -> None:
        rpc_fd, output_fd, status_fd = fds
        jail.die_with_parent()
        if self.config["backend"] == "namespaces":
            inner.enter_namespaces()
            pid = os.fork()
            if pid:
                os.close(rpc_fd)
                os.close(output_fd)
                supervise(pid, status_fd)
            jail.die_with_parent()
            inner.mount_private_tree(limits["disk"], self.config["tmp_is_bound"])
        inner.confine(limits, rpc_fd, output_fd, self.base, self.config)
        worker = sys.modules["policylab.sandbox.worker"]
        worker.main(
            socket.socket(fileno=inner.RPC_FD), self.config["can_fork"], limits["buffer_bytes"]
        )


def _received_fds(ancillary: list[tuple[int, int, bytes]]) -> list[int]:
    fds = array.array("i")
    for level, kind, data in ancillary:
        if level == socket.SOL_SOCKET and kind == socket.SCM_RIGHTS:
            fds.frombytes(data[: len(data) - len(data) % fds.itemsize])
    return list(fds)


def wait_for(pid: int, seconds: float) -> dict[str, Any] | None:
    """Reap a child within some time; return how it ended, or None. SIGCHLD must be blocked."""
    deadline = time.monotonic() + seconds
    while True:
        done, status, usage = os.wait4(pid, os.WNOHANG)
        if done:
            return report_of(status, usage)
        left = deadline - time.monotonic()
        if left <= 0:
            return None
        signal.sigtimedwait({signal.SIGCHLD}, min(left, 0.1))


def report_of(status: int, usage: resource.struct_rusage) -> dict[str, Any]:
    return {
        "code": os.waitstatus_to_exitcode(status),
        "cpu_s": round(usage.ru_utime + usage.ru_stime, 3),
        "maxrss_kb": usage.ru_maxrss,
    }


def supervise(pid: int, status_fd: int) -> NoReturn:
    """A: wait for B to end, or for SIGTERM, and write how it ended."""
    asked = False
    while True:
        if signal.sigwait({signal.SIGTERM, signal.SIGCHLD}) == signal.SIGTERM:
            asked = True
            os.kill(pid, signal.SIGKILL)
            _, status, usage = os.wait4(pid, 0)
            break
        done, status, usage = os.wait4(pid, os.WNOHANG)
        if done:
            break
    try:
        os.write(status_fd, json.dumps({**report_of(status, usage), "asked": asked}).encode())
    except OSError:
        pass
    os._exit(0)
