# SPDX-License-Identifier: MIT
"""Namespaces, mounts, uids, capabilities and rlimits: what a jail is made of. Linux only.

Covered, by `outer` around a zygote and `inner` around each worker: files outside the interpreter
and its packages, the network, other processes, privileges, memory, CPU time, disk, processes.
Not covered: bugs of the kernel (use a virtual machine for hostile classes), side channels, and,
where only Landlock is to be had, the existence and size of files (stat).
"""

import ctypes
import os
import pwd
import random
import resource
import signal
import struct
from collections.abc import Iterable

from policylab.sandbox import syscalls

_CLONE_FLAGS = {
    "NEWNS": 0x2_0000,
    "NEWCGROUP": 0x200_0000,
    "NEWUTS": 0x400_0000,
    "NEWIPC": 0x800_0000,
    "NEWUSER": 0x1000_0000,
    "NEWPID": 0x2000_0000,
    "NEWNET": 0x4000_0000,
}
MS_RDONLY, MS_NOSUID, MS_NODEV, MS_NOEXEC = 1, 2, 4, 8
MS_REMOUNT, MS_BIND, MS_REC, MS_PRIVATE = 32, 4096, 16384, 1 << 18
_MNT_DETACH = 2
_AT_FDCWD, _AT_RECURSIVE = -100, 0x8000
_ATTR_RDONLY_NOSUID_NODEV = 7
_PR_SET_PDEATHSIG, _PR_SET_DUMPABLE, _PR_CAPBSET_DROP = 1, 4, 24
_PR_SET_NO_NEW_PRIVS, _PR_CAP_AMBIENT, _PR_CAP_AMBIENT_CLEAR_ALL = 38, 47, 4
_CAPABILITY_VERSION_3 = 0x2008_0522

INSIDE_ID = 1000  # uid and gid as seen from within a user namespace
# Above what distributions, container tools and systemd hand out, below the signed 32-bit edge.
_THROWAWAY_IDS = (0x7100_0000, 0x7FF0_0000)

libc = ctypes.CDLL(None, use_errno=True)


def _checked(result: int, what: str) -> int:
    if result < 0:
        code = ctypes.get_errno()
        raise OSError(code, f"{what}: {os.strerror(code)}")
    return result


def unshare(*names: str) -> None:
    flags = sum(_CLONE_FLAGS[name] for name in names)
    _checked(libc.unshare(flags), "unshare " + "|".join(names))


def mount(source: str, target: str, fstype: str = "", flags: int = 0, data: str = "") -> None:
    result = libc.mount(
        source.encode(),
        target.encode(),
        fstype.encode() or None,
        ctypes.c_ulong(flags),
        data.encode() or None,
    )
    _checked(result, f"mount {source} on {target}")


def make_readonly(path: str) -> None:
    """Make a mount read-only with all mounts below it, which a plain remount would leave."""
    attributes = struct.pack("QQQQ", _ATTR_RDONLY_NOSUID_NODEV, 0, 0, 0)
    number = syscalls.numbers(syscalls.SETUP)["mount_setattr"]
    size = ctypes.c_size_t(len(attributes))
    result = libc.syscall(number, _AT_FDCWD, path.encode(), _AT_RECURSIVE, attributes, size)
    _checked(result, f"mount_setattr {path}")


def pivot_root(new_root: str, old_root: str) -> None:
    number = syscalls.numbers(syscalls.SETUP)["pivot_root"]
    _checked(libc.syscall(number, new_root.encode(), old_root.encode()), "pivot_root")


def detach(path: str) -> None:
    _checked(libc.umount2(path.encode(), _MNT_DETACH), f"umount {path}")


def _prctl(*args: int) -> int:
    padded = (*args, 0, 0, 0, 0)[:5]
    return libc.prctl(*[ctypes.c_ulong(arg) for arg in padded])


def die_with_parent() -> None:
    """Ask for SIGKILL when the parent ends; seccomp keeps student code from taking it back."""
    _checked(_prctl(_PR_SET_PDEATHSIG, signal.SIGKILL), "parent-death signal")


def forbid_new_privileges() -> None:
    _checked(_prctl(_PR_SET_NO_NEW_PRIVS, 1), "no_new_privs")


def hide_from_siblings() -> None:
    """Keep processes of the same uid from opening this one's /proc/PID/mem."""
    _checked(_prctl(_PR_SET_DUMPABLE, 0), "dumpable")


def drop_capabilities() -> None:
    for capability in range(64):
        if _prctl(_PR_CAPBSET_DROP, capability) < 0:
            break
    _prctl(_PR_CAP_AMBIENT, _PR_CAP_AMBIENT_CLEAR_ALL)
    header = struct.pack("Ii", _CAPABILITY_VERSION_3, 0)
    _checked(libc.capset(header, bytes(24)), "capset")


def write_id_maps(uid: int, gid: int) -> None:
    """In a new user namespace: show this uid and gid as INSIDE_ID."""
    for name, text in (
        ("setgroups", "deny"),
        ("uid_map", f"{INSIDE_ID} {uid} 1"),
        ("gid_map", f"{INSIDE_ID} {gid} 1"),
    ):
        with open(f"/proc/self/{name}", "w") as file:
            file.write(text)


def throwaway_id() -> int | None:
    """Return a uid that belongs to no account; None if this user namespace maps no other uid."""
    users, groups = _id_map("uid_map"), _id_map("gid_map")
    low, high = _THROWAWAY_IDS
    top = min(max(ids.stop for ids in ranges) for ranges in (users, groups))
    if top < high:  # a container's map: take the upper half of what there is
        low, high = max(1, top // 2), top - 2
    for _ in range(100 if high > low else 0):
        candidate = random.SystemRandom().randrange(low, high)
        mapped = all(any(candidate in ids for ids in ranges) for ranges in (users, groups))
        if mapped and not _has_account(candidate):
            return candidate
    return None


def parse_id_map(lines: Iterable[str]) -> list[range]:
    """Return the ids that a user namespace knows, from the lines of its uid_map or gid_map."""
    rows = [[int(word) for word in line.split()] for line in lines]
    return [range(first, first + count) for first, _, count in rows]


def _id_map(name: str) -> list[range]:
    with open(f"/proc/self/{name}") as file:
        return parse_id_map(file)


def _has_account(uid: int) -> bool:
    try:
        pwd.getpwuid(uid)
    except KeyError:
        return False
    return True


def become(number: int) -> None:
    """Give up root for this uid and gid, for good."""
    os.setgroups([])
    os.setresgid(number, number, number)
    os.setresuid(number, number, number)
    if os.getresuid() != (number,) * 3 or os.getgroups():
        raise PermissionError(f"this process could not drop to uid {number}")


def set_rlimit(name: str, soft: int, hard: int | None = None) -> None:
    """Set a limit, or the nearest that the hard limit in force allows."""
    kind = getattr(resource, name)
    ceiling = resource.getrlimit(kind)[1]
    wanted = soft if hard is None else hard
    if ceiling != resource.RLIM_INFINITY:
        wanted, soft = min(wanted, ceiling), min(soft, ceiling)
    resource.setrlimit(kind, (soft, wanted))
