# SPDX-License-Identifier: MIT
"""Zygotes and workers from outside: they end when told, in time, and leave nothing behind."""

import contextlib
import os
import signal
import tempfile
import time
from pathlib import Path

import psutil
import pytest

from policylab.sandbox import Limits, PeerGone, SandboxError, Zygote, ZygoteDied, process
from tests.sandbox.conftest import Box, descendants, wait_until_gone


@pytest.fixture
def own_zygote(view, backend):
    with Zygote(view, backend=backend, preimport=()) as zygote:
        yield zygote


@pytest.fixture
def own_tmp(monkeypatch):
    """A temporary directory that nobody else uses, and that others can read."""
    with tempfile.TemporaryDirectory() as directory:
        os.chmod(directory, 0o755)
        monkeypatch.setattr(tempfile, "tempdir", directory)
        yield Path(directory)


def test_closing_leaves_no_process_and_no_file(view, backend, own_tmp):
    idle = descendants()
    with Zygote(view, backend=backend, preimport=()) as zygote:
        boxes = [Box(zygote.spawn()) for _ in range(3)]
        for box in boxes:
            box.load(
                "import threading, time\nthreading.Thread(target=time.sleep, args=(60,)).start()"
            )
        started = descendants() - idle
        assert len(started) >= 4
    assert wait_until_gone(started) == set()
    assert list(own_tmp.iterdir()) == []


def test_killing_a_worker_leaves_no_process(own_zygote):
    idle = descendants()
    with own_zygote.spawn() as worker:
        box = Box(worker)
        if worker.can_fork:
            box.load("import os, time\nfor _ in range(3):\n    if os.fork() == 0: time.sleep(60)")
            box.value("fork")
        started = descendants() - idle
        assert started
        worker.kill("done")
    assert wait_until_gone(started) == set()


def test_kill_and_death_can_be_asked_again(own_zygote):
    worker = own_zygote.spawn()
    first = worker.kill("done")
    assert worker.kill("again") == worker.death() == first and worker.dead == "done"


def test_many_workers_in_a_row_leak_no_descriptor(own_zygote):
    count = len(os.listdir("/proc/self/fd"))
    for _ in range(10):
        with own_zygote.spawn() as worker:
            Box(worker).load("x = 1")
    assert len(os.listdir("/proc/self/fd")) == count


def test_a_killed_zygote_is_reported_and_takes_its_workers_along(own_zygote):
    worker = own_zygote.spawn()
    Box(worker).load("x = 1")
    outermost = psutil.Process(own_zygote._process.pid)
    started = {child.pid for child in outermost.children(recursive=True)}
    outermost.send_signal(signal.SIGKILL)
    with pytest.raises(PeerGone):
        Box(worker).load("import time; time.sleep(10)")
    with pytest.raises(ZygoteDied):
        worker.death()
    assert own_zygote.dead
    with pytest.raises(ZygoteDied):
        own_zygote.spawn()
    own_zygote._process.wait()
    assert len(started) >= 2 and wait_until_gone(started) == set()


def test_a_zygote_that_does_not_answer_is_killed_in_time(own_zygote, backend):
    (inner,) = psutil.Process(own_zygote._process.pid).children()
    target = inner.pid
    os.kill(target, signal.SIGSTOP)
    started = time.monotonic()
    with pytest.raises(ZygoteDied, match="did not answer"):
        own_zygote.request("ping", timeout_s=0.3)
    assert time.monotonic() - started < 3.0
    own_zygote._process.wait()
    assert wait_until_gone({target}) == set()


def test_a_stopped_worker_is_killed_in_time(own_zygote):
    idle = descendants()
    worker = own_zygote.spawn()
    Box(worker).load("x = 1")
    for pid in descendants() - idle:
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, signal.SIGSTOP)
    started = time.monotonic()
    assert worker.kill("stopped").kind == "killed"
    assert time.monotonic() - started < 15.0
    own_zygote.ping()


def test_a_zygote_that_is_not_ready_in_time_is_killed(view, backend):
    idle = descendants()
    with pytest.raises(ZygoteDied, match="not ready within"):
        Zygote(view, backend=backend, preimport=(), startup_s=0.01)
    assert wait_until_gone(descendants() - idle) == set()


def test_a_failing_import_is_reported_with_its_reason(view, backend):
    with pytest.raises(ZygoteDied, match="No module named 'no_such_module'"):
        Zygote(view, backend=backend, preimport=("no_such_module",))


def test_a_view_without_the_sandbox_is_refused(tmp_path):
    with pytest.raises(ValueError, match="policylab/sandbox"):
        Zygote(tmp_path)


def test_a_fork_of_the_checker_can_use_the_zygote(own_zygote):
    pid = os.fork()
    if pid == 0:
        status = 1
        with contextlib.suppress(BaseException):
            with own_zygote.spawn() as worker:
                status = 0 if Box(worker).run("result = 41 + 1") == 42 else 2
            own_zygote.close()
        os._exit(status)
    assert os.waitpid(pid, 0)[1] == 0
    with own_zygote.spawn() as worker:  # closing in the fork did not end it
        assert Box(worker).run("result = 1") == 1


def test_after_a_killed_fork_stale_replies_are_dropped_and_its_workers_ended(own_zygote):
    idle = descendants()
    for _ in range(3):
        pid = os.fork()
        if pid == 0:
            with contextlib.suppress(BaseException):
                worker = own_zygote.spawn()
                message = b'{"n": 1, "op": "ping"}'  # asked, and killed before it reads the answer
                own_zygote._control.send(message)
                Box(worker).load("while True: pass", timeout_s=60)
            os._exit(0)
        time.sleep(0.3)
        os.kill(pid, signal.SIGKILL)
        os.waitpid(pid, 0)
    assert own_zygote.kill_all() == 3
    assert wait_until_gone(descendants() - idle) == set()
    with own_zygote.spawn() as worker:
        assert Box(worker).run("result = 1") == 1


def test_the_death_of_the_checker_ends_everything(view, backend, own_tmp):
    read_end, write_end = os.pipe()
    pid = os.fork()
    if pid == 0:
        with contextlib.suppress(BaseException):
            zygote = Zygote(view, backend=backend, preimport=())
            worker = zygote.spawn()
            Box(worker).load("x = 1")
            os.write(write_end, b",".join(b"%d" % child for child in descendants()))
            signal.pause()
        os._exit(0)
    children = {int(number) for number in os.read(read_end, 4096).split(b",")}
    os.kill(pid, signal.SIGKILL)
    os.waitpid(pid, 0)
    os.close(read_end)
    os.close(write_end)
    assert len(children) >= 2 and wait_until_gone(children) == set()
    assert list(own_tmp.iterdir()) == []


def test_the_zygote_has_one_task(own_zygote):
    assert own_zygote.info["tasks"] == 1


def test_a_zygote_with_threads_refuses_to_fork(view, backend, tmp_path):
    package = tmp_path / "view" / "policylab"
    process.outer.copy_view(str(view), str(package.parent))
    source = (
        "import threading\nthreading.Thread(target=threading.Event().wait, daemon=True).start()"
    )
    (package / "threaded.py").write_text(source)
    with Zygote(package.parent, backend=backend, preimport=("policylab.threaded",)) as zygote:
        with pytest.raises(ZygoteDied, match="has threads"):
            zygote.spawn()


def test_as_root_landlock_refuses_an_environment_that_only_root_can_read(monkeypatch):
    if os.getuid() != 0:
        pytest.skip("an ordinary user reads its own files")
    monkeypatch.setattr(process, "unreadable_by_others", lambda paths: "/root")
    from policylab.sandbox import write_sandbox_view

    with tempfile.TemporaryDirectory() as directory:
        view = write_sandbox_view(os.path.join(directory, "view"))
        with pytest.raises(SandboxError, match="cannot read /root.*ordinary users can read"):
            Zygote(view, backend="landlock", preimport=())


def test_limits_of_one_worker_do_not_bind_the_next(own_zygote):
    with own_zygote.spawn(Limits(memory=50 << 20)) as worker:
        assert Box(worker).load("x = bytearray(100 << 20)")[0]["memory"]
    with own_zygote.spawn(Limits(memory=200 << 20)) as worker:
        assert Box(worker).load("x = bytearray(100 << 20)") == [None]
