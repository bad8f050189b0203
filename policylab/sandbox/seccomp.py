# SPDX-License-Identifier: MIT
"""Seccomp: the system calls that student code may not make.

Covered: sockets, programs, other processes, namespaces and mounts, memory that no limit counts,
kernel surface with a history (io_uring, bpf, keyctl, userfaultfd), and foreign system call ABIs,
which kill. Not covered: which files are opened (Landlock, mounts), how much is used (rlimits).
"""

import ctypes
import errno
import os
import platform
import struct

from policylab.sandbox import syscalls

ALLOW, KILL_PROCESS = 0x7FFF_0000, 0x8000_0000
_ERRNO = 0x0005_0000
# offsets in struct seccomp_data; the high half of an argument lies 4 bytes further
_NUMBER, _ARCH, _ARG0, _ARG1, _ARG2 = 0, 4, 16, 24, 32
_LOAD, _EQUAL, _AT_LEAST, _ANY_BIT, _AND, _RETURN = 0x20, 0x15, 0x35, 0x45, 0x54, 0x06
_X32_BIT = 0x4000_0000
_CLONE_THREAD, _CLONE_NEW_ANYTHING = 0x0001_0000, 0x7E02_0000
_PR_SET_PDEATHSIG, _PR_SET_DUMPABLE = 1, 4
_TIOCSTI, _TIOCLINUX = 0x5412, 0x541C
# A file's owner gets a signal when something can be read: any process of the same uid, up to
# Landlock's ABI 5.  A lease makes whoever else opens the file wait.
_FIOSETOWN, _SIOCSPGRP = 0x8901, 0x8902
_F_SETOWN, _F_SETSIG, _F_SETOWN_EX, _F_SETLEASE, _F_NOTIFY = 8, 10, 15, 1024, 1026
_AF_UNIX, _SOCK_STREAM, _SOCK_TYPE_MASK = 1, 1, 0xF
_SET_MODE_FILTER = 1
_PR_SET_NO_NEW_PRIVS = 38

libc = ctypes.CDLL(None, use_errno=True)


def refuse(code: int) -> int:
    """Return the verdict that makes a call fail with this error number."""
    return _ERRNO | code


class Program:
    """Assemble classic BPF.

    Each rule stands alone: it decides its call, or leaves the call's number in the accumulator and
    falls through to the next rule.
    """

    def __init__(self, architecture: str) -> None:
        self.instructions: list[bytes] = []
        self._emit(_LOAD, _ARCH)
        self._emit(_EQUAL, syscalls.AUDIT_ARCH[architecture], 1, 0)
        self._emit(_RETURN, KILL_PROCESS)  # 32-bit entry points use other numbers
        self._emit(_LOAD, _NUMBER)
        if architecture == "x86_64":
            self._emit(_AT_LEAST, _X32_BIT, 0, 1)
            self._emit(_RETURN, KILL_PROCESS)
        self._emit(_AT_LEAST, syscalls.NEWEST + 1, 0, 1)
        self._emit(_RETURN, refuse(errno.ENOSYS))  # calls that nobody has looked at yet

    def _emit(self, code: int, value: int, if_true: int = 0, if_false: int = 0) -> None:
        self.instructions.append(struct.pack("HBBI", code, if_true, if_false, value & 0xFFFF_FFFF))

    def decide(self, number: int, verdict: int) -> None:
        self._emit(_EQUAL, number, 0, 1)
        self._emit(_RETURN, verdict)

    def allow_if_equal(self, number: int, offset: int, wanted: int) -> None:
        self._emit(_EQUAL, number, 0, 4)
        self._emit(_LOAD, offset)
        self._emit(_EQUAL, wanted, 0, 1)
        self._emit(_RETURN, ALLOW)
        self._emit(_RETURN, refuse(errno.EPERM))

    def refuse_if_in(self, number: int, offset: int, unwanted: tuple[int, ...]) -> None:
        self._emit(_EQUAL, number, 0, len(unwanted) + 3)
        self._emit(_LOAD, offset)
        for left, value in zip(range(len(unwanted), 0, -1), unwanted, strict=True):
            self._emit(_EQUAL, value, left, 0)
        self._emit(_RETURN, ALLOW)
        self._emit(_RETURN, refuse(errno.EPERM))

    def clone(self, number: int, allow_fork: bool) -> None:
        """Allow threads; allow processes too if asked to, but never a new namespace."""
        self._emit(_EQUAL, number, 0, 4)
        self._emit(_LOAD, _ARG0)
        if allow_fork:
            self._emit(_ANY_BIT, _CLONE_NEW_ANYTHING, 1, 0)
        else:
            self._emit(_ANY_BIT, _CLONE_THREAD, 0, 1)
        self._emit(_RETURN, ALLOW)
        self._emit(_RETURN, refuse(errno.EPERM))

    def prlimit(self, number: int) -> None:
        """Allow a process to lower its own limits, and reading; refuse changing another's."""
        self._emit(_EQUAL, number, 0, 8)
        self._emit(_LOAD, _ARG0)
        self._emit(_EQUAL, 0, 4, 0)
        self._emit(_LOAD, _ARG2)
        self._emit(_EQUAL, 0, 0, 3)
        self._emit(_LOAD, _ARG2 + 4)
        self._emit(_EQUAL, 0, 0, 1)
        self._emit(_RETURN, ALLOW)
        self._emit(_RETURN, refuse(errno.EPERM))

    def stream_pair(self, number: int) -> None:
        """Allow AF_UNIX pairs of streams: a datagram socket could send to any path."""
        self._emit(_EQUAL, number, 0, 7)
        self._emit(_LOAD, _ARG0)
        self._emit(_EQUAL, _AF_UNIX, 0, 4)
        self._emit(_LOAD, _ARG1)
        self._emit(_AND, _SOCK_TYPE_MASK)
        self._emit(_EQUAL, _SOCK_STREAM, 0, 1)
        self._emit(_RETURN, ALLOW)
        self._emit(_RETURN, refuse(errno.EPERM))

    def only_signal_self(self, special: dict[str, int]) -> None:
        self.allow_if_equal(special["kill"], _ARG0, os.getpid())
        self.allow_if_equal(special["tgkill"], _ARG0, os.getpid())
        self.decide(special["tkill"], refuse(errno.EPERM))

    def finished(self) -> list[bytes]:
        self._emit(_RETURN, ALLOW)
        return self.instructions


def worker_program(
    *, allow_fork: bool, shares_host: bool, deny_truncate: bool, architecture: str | None = None
) -> list[bytes]:
    """Return the filter of a worker.

    Args:
        allow_fork: the worker may start processes (it forks one for each check).
        shares_host: no namespaces of its own: metadata calls do nothing, signals reach itself only.
        deny_truncate: this kernel's Landlock does not govern truncate(2).
    """
    architecture = architecture or platform.machine()
    special = syscalls.numbers(syscalls.SPECIAL, architecture)
    program = Program(architecture)
    for number in syscalls.numbers(syscalls.REFUSED, architecture).values():
        program.decide(number, refuse(errno.EPERM))
    if shares_host:
        for number in syscalls.numbers(syscalls.METADATA, architecture).values():
            program.decide(number, refuse(0))
        program.only_signal_self(special)
    if deny_truncate:
        program.decide(special["truncate"], refuse(errno.EPERM))
    # clone3 keeps its flags behind a pointer; with ENOSYS glibc falls back to clone
    program.decide(special["clone3"], refuse(errno.ENOSYS))
    program.clone(special["clone"], allow_fork)
    program.prlimit(special["prlimit64"])
    program.refuse_if_in(special["prctl"], _ARG0, (_PR_SET_PDEATHSIG, _PR_SET_DUMPABLE))
    owners = (_F_SETOWN, _F_SETSIG, _F_SETOWN_EX, _F_SETLEASE, _F_NOTIFY)
    program.refuse_if_in(special["fcntl"], _ARG1, owners)
    unwanted = (_TIOCSTI, _TIOCLINUX, _FIOSETOWN, _SIOCSPGRP)
    program.refuse_if_in(special["ioctl"], _ARG1, unwanted)
    program.stream_pair(special["socketpair"])
    return program.finished()


def check_program(architecture: str | None = None) -> list[bytes]:
    """Return what a fork of a loaded worker adds: no more processes, no signals to others."""
    architecture = architecture or platform.machine()
    special = syscalls.numbers(syscalls.SPECIAL, architecture)
    program = Program(architecture)
    program.clone(special["clone"], allow_fork=False)
    program.only_signal_self(special)
    return program.finished()


def install(instructions: list[bytes]) -> None:
    """Put this process under the filter, for good. Raises: OSError."""
    code = b"".join(instructions)
    buffer = ctypes.create_string_buffer(code, len(code))
    header = struct.pack("HxxxxxxQ", len(instructions), ctypes.addressof(buffer))
    libc.prctl(*[ctypes.c_ulong(arg) for arg in (_PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0)])
    number = syscalls.numbers(syscalls.SPECIAL)["seccomp"]
    if libc.syscall(number, _SET_MODE_FILTER, 0, header) != 0:
        code_number = ctypes.get_errno()
        raise OSError(code_number, f"seccomp: {os.strerror(code_number)}")
