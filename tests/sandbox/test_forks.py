# SPDX-License-Identifier: MIT
"""A fork of the loaded state for each check: what one does, the next does not see."""

import time

import pytest

from policylab.sandbox import ForkDied, Limits, PeerGone, Timeout
from tests.sandbox.conftest import Box, StudentRaised


@pytest.fixture
def loaded(box: Box, zygote) -> Box:
    if not zygote.info["can_fork"]:
        pytest.skip("this backend gives each check a fresh worker instead")
    source = """
import os, random, signal, sys, threading
count = 0
def bump():
    global count
    count += 1
    return count
def run(source):
    exec(source, globals())
def attempt(source):
    try:
        exec(source, globals())
    except OSError as error:
        return type(error).__name__
"""
    assert box.load(source) == [None]
    return box


def test_state_of_one_check_is_not_seen_by_the_next(loaded: Box):
    for _ in range(3):
        loaded.value("fork")
        assert [loaded.call("bump"), loaded.call("bump")] == [1, 2]
        report = loaded.value("end")
        assert report["code"] == 0 and report["cpu_s"] >= 0


def test_global_random_state_is_the_same_in_each(loaded: Box):
    loaded.load("draw = random.random")
    loaded.value("seed", s=3)
    drawn = []
    for _ in range(2):
        loaded.value("fork")
        drawn.append(loaded.call("draw"))
        loaded.value("end")
    assert drawn[0] == drawn[1]


@pytest.mark.parametrize(
    "source, kind",
    [
        ("os._exit(0)", "exit"),
        ("os._exit(5)", "exit"),
        ("os._exit(71)", "exit"),
        ("import ctypes; ctypes.string_at(0)", "signal"),
        ("os.kill(os.getpid(), signal.SIGKILL)", "memory"),  # as the kernel's memory killer does
    ],
)
def test_a_fork_that_dies_leaves_the_loaded_state(loaded: Box, source, kind):
    loaded.value("fork")
    with pytest.raises(ForkDied) as died:
        loaded.call("run", source)
    assert died.value.death.kind == kind
    loaded.value("fork")
    assert loaded.call("bump") == 1
    loaded.value("end")


@pytest.mark.parametrize("report", ["{'fail': 'x'}", "{'asked': True}", "7", "{}", "{'code': 'x'}"])
def test_a_forged_report_cannot_blame_the_grader(loaded: Box, report):
    loaded.value("fork")
    source = f"""
import msgspec, struct
meta = msgspec.msgpack.encode({{"died": {report}}})
os.write(3, struct.pack("<II", len(meta), 0) + meta)
"""
    with pytest.raises(ForkDied) as died:
        loaded.call("run", source)
    assert died.value.death.kind == "exit"


def test_requests_meant_for_a_dead_fork_are_not_run_in_the_loaded_state(loaded: Box):
    loaded.value("fork")
    loaded.call("run", "threading.Timer(0.2, lambda: os._exit(1)).start()")
    time.sleep(0.6)
    with pytest.raises(ForkDied):
        loaded.call("bump")
    loaded.value("fork")
    assert loaded.call("bump") == 1


def test_the_cpu_limit_of_a_check_is_its_own(loaded: Box):
    loaded.value("fork", cpu_s=1)
    with pytest.raises(ForkDied) as died:
        loaded.call("run", "while True: pass")
    assert died.value.death.kind == "cpu"
    loaded.value("fork", cpu_s=1)
    assert loaded.call("bump") == 1


def test_a_check_cannot_reach_the_loaded_process(loaded: Box):
    loaded.value("fork")
    for source in (
        "os.kill(1, signal.SIGINT)",
        "os.kill(os.getppid(), signal.SIGKILL)",
        "os.kill(-1, signal.SIGKILL)",
        "open('/proc/1/mem', 'rb+')",
        "os.fork()",
        "import resource; resource.prlimit(1, resource.RLIMIT_NOFILE, (0, 0))",
    ):
        assert loaded.call("attempt", source) in ("PermissionError", "FileNotFoundError"), source
    loaded.value("end")
    loaded.value("fork")
    assert loaded.call("bump") == 1


def test_a_check_cannot_leave_files_for_the_next(loaded: Box):
    loaded.load("open('kept', 'w').write('from the load')")
    loaded.value("fork")
    for source in (
        "open('kept', 'a').write('x')",
        "open('new', 'w').write('x')",
        "os.remove('kept')",
    ):
        assert loaded.call("attempt", source) in ("PermissionError", "OSError"), source
    loaded.load("text = open('kept').read()")
    assert loaded.value("value", t="text") == "from the load"


def test_threads_still_work_in_a_check(loaded: Box):
    loaded.value("fork")
    loaded.call("run", "t = threading.Thread(target=bump); t.start(); t.join()")
    assert loaded.call("bump") == 2


def test_a_thread_of_the_load_does_not_hang_a_check(loaded: Box):
    loaded.load(
        "t = threading.Thread(target=lambda: [0 for _ in iter(int, 1)], daemon=True); t.start()"
    )
    loaded.value("fork")
    assert loaded.call("bump") == 1
    loaded.value("end")


def test_a_fork_cannot_be_forked_and_only_a_fork_ends(loaded: Box):
    with pytest.raises(StudentRaised, match="no fork"):
        loaded.value("end")
    loaded.value("fork")
    with pytest.raises(StudentRaised, match="cannot be forked"):
        loaded.value("fork")
    assert loaded.call("bump") == 1


def test_a_fork_that_hangs_is_ended_with_its_worker(loaded: Box):
    loaded.value("fork")
    with pytest.raises(Timeout):
        loaded.call("run", "while True: pass", timeout_s=0.3)
    assert loaded.worker.kill("its time was up").kind == "killed"


def test_processes_left_by_the_load_can_use_up_the_forks(zygote):
    if not zygote.info["can_fork"]:
        pytest.skip("this backend gives each check a fresh worker instead")
    with zygote.spawn(Limits(processes=4)) as worker:
        box = Box(worker)
        source = "import os, time\nfor _ in range(3):\n    if os.fork() == 0: time.sleep(60)"
        assert box.load(source) == [None]
        with pytest.raises(StudentRaised, match="BlockingIOError"):
            box.value("fork")


def test_a_backend_without_forks_says_so(box: Box, zygote):
    if zygote.info["can_fork"]:
        pytest.skip("this backend forks")
    assert not box.worker.can_fork
    with pytest.raises(StudentRaised, match="cannot be forked"):
        box.value("fork")


def test_a_worker_that_dies_while_a_check_runs_is_gone(loaded: Box):
    loaded.load("threading.Timer(0.3, lambda: os._exit(4)).start()")
    loaded.value("fork")
    with pytest.raises(PeerGone):
        loaded.call("run", "import time; time.sleep(10)")
    assert loaded.worker.death().kind == "exit"
