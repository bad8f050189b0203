# SPDX-License-Identifier: MIT
"""The inner jail: around one worker, inside the zygote's jail.

Namespaces of its own and a small private tmpfs where the backend has them; and always its own
session, no capabilities, rlimits, Landlock, seccomp, a cleared environment and no descriptors but
0-3.
"""

import fcntl
import io
import os
import signal
import sys
from typing import Any

from policylab.sandbox import jail, landlock, seccomp
from policylab.sandbox.outer import DEVICES, HOME, UNSAFE

RPC_FD = 3
_HIGHEST_FD = 1 << 16
_KEPT_VARIABLES = ("OPENBLAS_", "OMP_", "MKL_", "NUMEXPR_", "LANG", "PATH")


def enter_namespaces() -> None:
    """Leave for namespaces of this worker's own; its children are in the pid namespace, it is not.

    The user namespace also makes RLIMIT_NPROC count this worker alone.
    """
    uid, gid = os.getuid(), os.getgid()
    jail.unshare("NEWUSER", "NEWNS", "NEWPID", "NEWIPC")
    jail.write_id_maps(uid, gid)


def mount_private_tree(disk: int, tmp_is_bound: bool) -> None:
    """Mount /proc, and a writable home of `disk` bytes that also serves as /tmp."""
    owner = f"uid={jail.INSIDE_ID},gid={jail.INSIDE_ID}"
    options = f"size={max(disk, 4096)},nr_inodes=2k,mode=700,{owner}"
    jail.mount("tmpfs", HOME, "tmpfs", jail.MS_NOSUID | jail.MS_NODEV, options)
    if not tmp_is_bound:
        jail.mount(HOME, "/tmp", flags=jail.MS_BIND)
    if os.path.exists("/proc/self"):
        flags = jail.MS_NOSUID | jail.MS_NODEV | jail.MS_NOEXEC
        jail.mount("proc", "/proc", "proc", flags, "hidepid=2")


def confine(
    limits: dict[str, Any], rpc_fd: int, output_fd: int, base: int, config: dict[str, Any]
) -> None:
    """Shut this process in; no step forbids what a later one needs.

    Args:
        limits: fields of `process.Limits`.
        base: the zygote's address space in bytes; the memory limit comes on top of it.
        config: "backend", "can_fork", "tmp_is_bound", "highest_abi".
    """
    namespaces = config["backend"] == "namespaces"
    # kill(0) by pid 1 of a pid namespace reaches the process group outside it: leave that group
    os.setsid()
    signal.pthread_sigmask(signal.SIG_SETMASK, [])
    os.chdir(HOME if namespaces else "/")
    _arrange_fds(rpc_fd, output_fd)
    _clear_environment(HOME if namespaces else "/")
    jail.drop_capabilities()
    _set_limits(limits, base, count_processes=config["can_fork"])
    if config["backend"] != UNSAFE:
        _restrict(limits, config)
    _open_streams()


def _restrict(limits: dict[str, Any], config: dict[str, Any]) -> None:
    namespaces = config["backend"] == "namespaces"
    rules = [("/", landlock.READ)]
    rules += [("/dev/" + name, landlock.DEVICE) for name in DEVICES]
    if namespaces and limits["disk"]:
        rules += [(HOME, landlock.WRITE)] + (
            [] if config["tmp_is_bound"] else [("/tmp", landlock.WRITE)]
        )
    abi = 0
    if not namespaces or landlock.abi():  # with namespaces it is a second line
        abi = landlock.restrict(rules, config["highest_abi"])
    jail.hide_from_siblings()
    program = seccomp.worker_program(
        allow_fork=config["can_fork"], shares_host=not namespaces, deny_truncate=abi < 3
    )
    seccomp.install(program)


def confine_check(cpu_s: int | None) -> None:
    """In a fork of a loaded worker: no more processes, no signals to others, nothing to write.

    It keeps the checks of honest code apart. It is no line of defence: the code that was loaded
    could have replaced it, and is confined by the worker's own jail.
    """
    jail.set_rlimit("RLIMIT_FSIZE", 0)
    if cpu_s:
        jail.set_rlimit("RLIMIT_CPU", cpu_s, cpu_s + 1)
    if landlock.abi():
        devices = [("/dev/" + name, landlock.DEVICE) for name in DEVICES]
        landlock.restrict([("/", landlock.READ), *devices])
    seccomp.install(seccomp.check_program())


def _arrange_fds(rpc_fd: int, output_fd: int) -> None:
    """0 = /dev/null, 1 and 2 = the output pipe, 3 = the requests' socket, nothing else."""
    # out of the way first: either may have a number that is about to be overwritten
    null, rpc, output = (
        fcntl.fcntl(fd, fcntl.F_DUPFD, 10)
        for fd in (os.open("/dev/null", os.O_RDONLY), rpc_fd, output_fd)
    )
    for source, target in ((null, 0), (output, 1), (output, 2), (rpc, RPC_FD)):
        os.dup2(source, target)
    os.closerange(RPC_FD + 1, _HIGHEST_FD)


def _clear_environment(home: str) -> None:
    kept = {k: v for k, v in os.environ.items() if k.startswith(_KEPT_VARIABLES)}
    os.environ.clear()
    os.environ.update(kept, HOME=home, TMPDIR=home)


def _set_limits(limits: dict[str, Any], base: int, count_processes: bool) -> None:
    jail.set_rlimit("RLIMIT_CORE", 0)
    jail.set_rlimit("RLIMIT_FSIZE", limits["disk"])
    jail.set_rlimit("RLIMIT_NOFILE", limits["open_files"])
    # pid 1 of a namespace ignores SIGXCPU, so that there the hard limit is the one that kills
    jail.set_rlimit("RLIMIT_CPU", limits["cpu_s"], limits["cpu_s"] + 1)
    jail.set_rlimit("RLIMIT_MEMLOCK", 0)
    jail.set_rlimit("RLIMIT_MSGQUEUE", 0)
    jail.set_rlimit("RLIMIT_STACK", 16 << 20)
    jail.set_rlimit("RLIMIT_AS", base + limits["memory"])
    if count_processes:
        jail.set_rlimit("RLIMIT_NPROC", limits["processes"] + 1)  # one is the supervisor


def _open_streams() -> None:
    def text(fd: int) -> io.TextIOWrapper:
        return io.TextIOWrapper(
            io.FileIO(fd, "w", closefd=False), encoding="utf8", errors="replace", write_through=True
        )

    sys.stdout, sys.stderr = text(1), text(2)
    sys.stdin = open(0, closefd=False)
