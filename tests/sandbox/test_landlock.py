# SPDX-License-Identifier: MIT
"""Landlock on the kernels of the last years: each later ABI only adds to what is confined."""

import os

import pytest

from policylab.sandbox import Zygote, landlock
from tests.sandbox.conftest import Box, require_backend

FACTS = """
import os, signal, socket
def attempt(action, *args):
    try:
        return str(action(*args))
    except OSError as error:
        return type(error).__name__
def facts(file, directory, pid):
    return {
        "read": attempt(lambda: open(file).read()),
        "write": attempt(open, directory + "/x", "w"),
        "truncate": attempt(os.truncate, file, 0),
        "rename": attempt(os.rename, file, directory + "/y"),
        "link": attempt(os.link, file, directory + "/z"),
        "remove": attempt(os.remove, file),
        "mkdir": attempt(os.mkdir, directory + "/d"),
        "chmod": attempt(os.chmod, file, 0),
        "utime": attempt(os.utime, file, (0, 0)),
        "tcp": attempt(socket.socket, socket.AF_INET),
        "signal": attempt(os.kill, pid, 0),
        "own": attempt(lambda: open(os.__file__).read(3)),
        "null": attempt(lambda: open("/dev/null", "w").write("x")),
        "tty": attempt(open, "/dev/tty"),
        "mem": attempt(open, "/dev/mem"),
    }
"""
NOT_REFUSED = {"chmod": "None", "utime": "None", "own": 'r""', "null": "1"}


@pytest.mark.parametrize("abi", [1, 2, 3, 4, 5, 6, 99])
def test_files_and_processes_are_safe_at_every_abi(view, tmp_path, abi):
    require_backend("landlock")
    tmp_path.chmod(0o777)
    target = tmp_path / "gradebook"
    target.write_text("canary")
    target.chmod(0o666)
    before = target.stat()
    with Zygote(view, backend="landlock", preimport=(), highest_landlock_abi=abi) as zygote:
        with zygote.spawn() as worker:
            box = Box(worker)
            assert box.load(FACTS) == [None]
            facts = box.call("facts", str(target), str(tmp_path), os.getpid())
    assert {name: facts.pop(name) for name in NOT_REFUSED} == NOT_REFUSED
    assert facts.pop("tty") in ("PermissionError", "OSError")
    assert facts.pop("mem") in ("PermissionError", "FileNotFoundError")
    assert set(facts.values()) <= {"PermissionError", "OSError"}, facts
    after = target.stat()
    assert (after.st_mode, after.st_mtime_ns, target.read_text()) == (
        before.st_mode, before.st_mtime_ns, "canary"
    )  # fmt: skip
    assert list(tmp_path.iterdir()) == [target]


def test_without_landlock_the_refusal_says_what_is_needed(monkeypatch):
    monkeypatch.setattr(landlock, "abi", lambda: 0)
    with pytest.raises(OSError, match="Linux 5.13"):
        landlock.restrict([])


def test_workers_of_one_zygote_cannot_signal_each_other(zygote):
    with zygote.spawn() as first, zygote.spawn() as second:
        pid = Box(first).run("import os\nresult = os.getpid()")
        source = f"""
import os
try:
    os.kill({pid}, 9)
    result = "killed" if os.getpid() != {pid} else "itself"
except OSError as error:
    result = type(error).__name__
"""
        if zygote.backend == "landlock":
            assert Box(second).run(source) == "PermissionError"
        assert Box(first).run("result = 1") == 1


def test_a_file_that_can_be_read_signals_no_other_worker(view):
    require_backend("landlock")
    with (
        Zygote(view, backend="landlock", preimport=(), highest_landlock_abi=5) as zygote,
        zygote.spawn() as first,
        zygote.spawn() as second,
    ):
        pid = Box(first).run("import os\nresult = os.getpid()")
        source = f"""
import fcntl, os, signal, socket, struct
near, far = socket.socketpair()
def own():
    fcntl.fcntl(near, fcntl.F_SETOWN, {pid})
def own_by_ioctl():
    fcntl.ioctl(near, 0x8901, struct.pack("i", {pid}))
refused = 0
for attempt in (own, own_by_ioctl):
    try:
        fcntl.fcntl(near, fcntl.F_SETSIG, signal.SIGKILL)
    except OSError:
        pass
    try:
        attempt()
        fcntl.fcntl(near, fcntl.F_SETFL, os.O_ASYNC)
        far.send(b"x")
    except OSError:
        refused += 1
result = refused
"""
        assert Box(second).run(source) == 2
        assert Box(first).run("result = 1") == 1
