# SPDX-License-Identifier: MIT
"""Landlock: which files a process may open; from ABI 4 TCP, from 6 signals and abstract sockets.

Not covered: stat, chmod, chown, utime and xattr calls at any ABI, truncate before ABI 3, signals
and abstract sockets before ABI 6; `seccomp` covers these, except stat, which stays possible where
the host's tree is visible.
"""

import ctypes
import os
import stat
import struct
from collections.abc import Iterable

from policylab.sandbox import syscalls

_EXECUTE, _WRITE, _READ, _READ_DIR = 1, 2, 4, 8
_MAKE_CHAR, _MAKE_BLOCK = 1 << 6, 1 << 11
_REFER, _TRUNCATE, _IOCTL_DEV = 1 << 13, 1 << 14, 1 << 15
_ABI_1 = (1 << 13) - 1
_TCP_BIND_AND_CONNECT = 3
_ABSTRACT_SOCKETS_AND_SIGNALS = 3
_CREATE_RULESET_VERSION = 1
_RULE_PATH_BENEATH = 1
_PR_SET_NO_NEW_PRIVS = 38

READ = _READ | _READ_DIR | _EXECUTE
LIST = _READ_DIR
WRITE = ~(_EXECUTE | _MAKE_CHAR | _MAKE_BLOCK | _IOCTL_DEV)
DEVICE = _READ | _WRITE | _IOCTL_DEV

libc = ctypes.CDLL(None, use_errno=True)


def abi() -> int:
    """Return the kernel's Landlock ABI; 0 where there is none."""
    number = syscalls.numbers(syscalls.SETUP)["landlock_create_ruleset"]
    version = libc.syscall(number, None, ctypes.c_size_t(0), _CREATE_RULESET_VERSION)
    return max(0, version)


def restrict(rules: Iterable[tuple[str, int]], highest_abi: int = 99) -> int:
    """Restrict this process, for good, to the given paths and what lies below them.

    Args:
        rules: (path, READ | LIST | WRITE | DEVICE) pairs; a path that is not there is passed over.
        highest_abi: act like an older kernel; it can only lower.
    Returns: the ABI used.
    Raises: OSError if there is no Landlock, or the kernel does less than its ABI says.
    """
    version = min(abi(), highest_abi)
    if version < 1:
        raise OSError("Landlock is not available: it needs Linux 5.13 with landlock among its LSMs")
    calls = syscalls.numbers(syscalls.SETUP)
    handled = _ABI_1
    handled |= (_REFER if version >= 2 else 0) | (_TRUNCATE if version >= 3 else 0)
    handled |= _IOCTL_DEV if version >= 5 else 0
    network = _TCP_BIND_AND_CONNECT if version >= 4 else 0
    scope = _ABSTRACT_SOCKETS_AND_SIGNALS if version >= 6 else 0
    attributes = struct.pack("QQQ", handled, network, scope)
    size = 24 if version >= 6 else 16 if version >= 4 else 8
    ruleset = _checked(
        libc.syscall(calls["landlock_create_ruleset"], attributes, ctypes.c_size_t(size), 0),
        "create",
    )
    for path, access in rules:
        _add_rule(calls["landlock_add_rule"], ruleset, path, access & handled)
    libc.prctl(*[ctypes.c_ulong(arg) for arg in (_PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0)])
    _checked(libc.syscall(calls["landlock_restrict_self"], ruleset, 0), "restrict")
    os.close(ruleset)
    return version


def _add_rule(number: int, ruleset: int, path: str, access: int) -> None:
    try:
        fd = os.open(path, os.O_PATH | os.O_CLOEXEC)
    except OSError:
        return
    try:
        if not stat.S_ISDIR(os.fstat(fd).st_mode):
            access &= _EXECUTE | _WRITE | _READ | _TRUNCATE | _IOCTL_DEV
        if access:
            rule = struct.pack("=Qi", access, fd)
            _checked(libc.syscall(number, ruleset, _RULE_PATH_BENEATH, rule, 0), path)
    finally:
        os.close(fd)


def _checked(result: int, what: str) -> int:
    if result < 0:
        code = ctypes.get_errno()
        raise OSError(code, f"Landlock, {what}: {os.strerror(code)}")
    return result
