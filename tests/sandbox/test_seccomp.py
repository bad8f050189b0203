# SPDX-License-Identifier: MIT
"""The filters, interpreted instruction by instruction, and the tables of system calls."""

import errno
import os
import struct

import pytest

from policylab.sandbox import seccomp, syscalls

EPERM, ENOSYS, DONE = (seccomp.refuse(code) for code in (errno.EPERM, errno.ENOSYS, 0))
ALLOW, KILL = seccomp.ALLOW, seccomp.KILL_PROCESS
TABLES = (syscalls.REFUSED, syscalls.METADATA, syscalls.SPECIAL, syscalls.SETUP)


def verdict(instructions, architecture, number, *args, audit=None):
    """Run classic BPF on one call, as the kernel does."""
    audit = syscalls.AUDIT_ARCH[architecture] if audit is None else audit
    padded = [arg & (1 << 64) - 1 for arg in (*args, *[0] * 6)[:6]]
    data = struct.pack("<IIQ6Q", number, audit, 0, *padded)
    accumulator = position = 0
    while True:
        code, if_true, if_false, value = struct.unpack("HBBI", instructions[position])
        position += 1
        if code == 0x06:
            return value
        if code == 0x20:
            (accumulator,) = struct.unpack_from("<I", data, value)
        elif code == 0x54:
            accumulator &= value
        else:
            tests = {
                0x15: accumulator == value,
                0x35: accumulator >= value,
                0x45: accumulator & value,
            }
            position += if_true if tests[code] else if_false


@pytest.fixture(params=syscalls.ARCHITECTURES)
def architecture(request):
    return request.param


def worker(architecture, **changed):
    options = {"allow_fork": False, "shares_host": False, "deny_truncate": False} | changed
    return seccomp.worker_program(**options, architecture=architecture)


def special(architecture):
    return syscalls.numbers(syscalls.SPECIAL, architecture)


def test_every_name_has_a_number_or_is_listed_as_absent():
    for table in TABLES:
        rows = [line.split() for line in table.strip().split("\n")]
        assert all(len(row) == 3 for row in rows)
        assert len({row[0] for row in rows}) == len(rows)
        for column in (1, 2):
            numbers = [int(row[column]) for row in rows if row[column] != "-"]
            assert len(set(numbers)) == len(numbers) and all(
                0 <= n <= syscalls.NEWEST for n in numbers
            )


def test_tables_do_not_name_a_call_twice(architecture):
    known = {}
    for table in TABLES[:3]:
        for name, number in syscalls.numbers(table, architecture).items():
            assert known.setdefault(number, name) == name


def test_calls_newer_than_the_common_table_have_one_number():
    for table in TABLES:
        here, there = (syscalls.numbers(table, name) for name in syscalls.ARCHITECTURES)
        for name, number in here.items():
            assert number < 424 or there[name] == number


def test_only_legacy_calls_are_absent_on_aarch64():
    here, there = (
        {name for table in TABLES for name in syscalls.numbers(table, machine)}
        for machine in syscalls.ARCHITECTURES
    )
    legacy = """inotify_init iopl ioperm modify_ldt uselib ustat sysfs _sysctl mknod fork vfork
        chmod chown lchown utime utimes futimesat"""
    assert here - there == set(legacy.split()) and there <= here


def test_an_unknown_architecture_is_refused():
    with pytest.raises(OSError, match="riscv64.*x86_64 and aarch64"):
        syscalls.numbers(syscalls.REFUSED, "riscv64")


def test_refused_calls_fail_and_others_pass(architecture):
    program = worker(architecture)
    for number in syscalls.numbers(syscalls.REFUSED, architecture).values():
        assert verdict(program, architecture, number) == EPERM
    named = {n for table in TABLES for n in syscalls.numbers(table, architecture).values()}
    for number in set(range(syscalls.NEWEST + 1)) - named:
        assert verdict(program, architecture, number) == ALLOW
    for number in (syscalls.NEWEST + 1, 1000, 0x3FFFFFFF):
        assert verdict(program, architecture, number) == ENOSYS


def test_foreign_abis_kill(architecture):
    program = worker(architecture)
    assert verdict(program, architecture, 1, audit=0x40000003) == KILL  # 32-bit x86
    if architecture == "x86_64":
        assert verdict(program, architecture, 0x40000000 + 1) == KILL
        assert verdict(program, architecture, 0xFFFFFFFF) == KILL


@pytest.mark.parametrize("flags, fork, thread", [
    (17, True, False),  # SIGCHLD alone: a process
    (0x3D0F00, True, True),  # what pthread_create asks for
    (0x10000000 | 17, False, False),
    (0x20000000 | 17, False, False),
    (0x40000000 | 17, False, False),
    (0x20000 | 17, False, False),
    (0x2000000 | 17, False, False),
    (0x4000000 | 17, False, False),
    (0x8000000 | 17, False, False),
])  # fmt: skip
def test_threads_always_processes_if_allowed_namespaces_never(architecture, flags, fork, thread):
    clone = special(architecture)["clone"]
    for allow_fork, passes in ((True, fork), (False, thread)):
        outcome = verdict(worker(architecture, allow_fork=allow_fork), architecture, clone, flags)
        assert outcome == (ALLOW if passes else EPERM)
    outcome = verdict(seccomp.check_program(architecture), architecture, clone, flags)
    assert outcome == (ALLOW if thread else EPERM)


def test_clone3_is_unknown(architecture):
    assert verdict(worker(architecture), architecture, special(architecture)["clone3"]) == ENOSYS


def test_limits_of_others_cannot_be_set(architecture):
    program, number = worker(architecture), special(architecture)["prlimit64"]
    for pid, new, passes in ((0, 0, True), (0, 1 << 40, True), (7, 0, True), (7, 1 << 40, False)):
        assert verdict(program, architecture, number, pid, 9, new) == (ALLOW if passes else EPERM)
    assert verdict(program, architecture, number, 7, 9, 1) == EPERM


def test_only_pairs_of_streams_are_sockets(architecture):
    program, number = worker(architecture), special(architecture)["socketpair"]
    cases = ((1, 1, ALLOW), (1, 1 | 0o2004000, ALLOW), (1, 2, EPERM), (1, 5, EPERM), (2, 1, EPERM))
    for family, kind, expected in cases:
        assert verdict(program, architecture, number, family, kind) == expected


def test_terminals_cannot_be_typed_into(architecture):
    program, number = worker(architecture), special(architecture)["ioctl"]
    for request, expected in ((0x5412, EPERM), (0x541C, EPERM), (0x5401, ALLOW)):
        assert verdict(program, architecture, number, 0, request) == expected
        assert verdict(program, architecture, number, 0, request | 1 << 32) == expected


def test_files_neither_signal_other_processes_nor_make_them_wait(architecture):
    program, calls = worker(architecture), special(architecture)
    for command in (8, 10, 15, 1024, 1026):
        assert verdict(program, architecture, calls["fcntl"], 3, command) == EPERM
        assert verdict(program, architecture, calls["fcntl"], 3, command | 1 << 32) == EPERM
    for command in (0, 1, 2, 3, 4, 6, 9, 11, 1030):
        assert verdict(program, architecture, calls["fcntl"], 3, command) == ALLOW
    for request in (0x8901, 0x8902):
        assert verdict(program, architecture, calls["ioctl"], 3, request) == EPERM


def test_the_death_signal_stays(architecture):
    program, number = worker(architecture), special(architecture)["prctl"]
    for option, expected in ((1, EPERM), (4, EPERM), (15, ALLOW)):
        assert verdict(program, architecture, number, option) == expected


def test_where_the_host_is_shared_metadata_stays_and_signals_reach_oneself(architecture):
    calls = special(architecture)
    shared, private = worker(architecture, shares_host=True), worker(architecture)
    for number in syscalls.numbers(syscalls.METADATA, architecture).values():
        assert verdict(shared, architecture, number) == DONE
        assert verdict(private, architecture, number) == ALLOW
    for program in (shared, seccomp.check_program(architecture)):
        for name in ("kill", "tgkill"):
            assert verdict(program, architecture, calls[name], os.getpid()) == ALLOW
            for pid in (1, 0, -1, -os.getpid(), os.getppid()):
                assert verdict(program, architecture, calls[name], pid) == EPERM
        assert verdict(program, architecture, calls["tkill"], os.getpid()) == EPERM


def test_truncate_is_refused_where_landlock_does_not_govern_it(architecture):
    number = special(architecture)["truncate"]
    assert verdict(worker(architecture, deny_truncate=True), architecture, number) == EPERM
    assert verdict(worker(architecture), architecture, number) == ALLOW
