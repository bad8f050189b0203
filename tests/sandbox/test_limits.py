# SPDX-License-Identifier: MIT
"""What happens when code uses too much, ends, or breaks the protocol: each by its name."""

import sys
import time

import pytest

from policylab.sandbox import Limits, OutputFlood, PeerGone, Timeout, WireError
from tests.sandbox.conftest import Box, StudentRaised


def death_of(zygote, source, limits=None, timeout_s=20.0):
    """Load a cell that ends the process; return how it ended."""
    with zygote.spawn(limits or Limits(cpu_s=20)) as worker:
        with pytest.raises(PeerGone):
            Box(worker).load(source, timeout_s=timeout_s)
        return worker.death()


@pytest.mark.parametrize(
    "source, kind, detail",
    [
        ("import os; os._exit(0)", "exit", "code 0"),
        ("import os; os._exit(3)", "exit", "code 3"),
        ("import ctypes; ctypes.string_at(0)", "signal", "SIGSEGV"),
        ("import os; os.abort()", "signal", "SIG"),  # pid 1 of a namespace dies of another one
        ("import os; os.close(3)", "exit", "code 0"),
        ("import os, time; os.close(3); time.sleep(60)", "killed", "closed its connection"),
    ],
)
def test_an_end_is_told_apart(zygote, source, kind, detail):
    death = death_of(zygote, source)
    assert death.kind == kind and detail in death.detail


def test_a_stack_overflow_in_c_is_a_crash_or_an_error(zygote):
    source = """
import sys
sys.setrecursionlimit(10**9)
kinds = int
for _ in range(10**6):
    kinds = (kinds,)
isinstance("", kinds)
"""
    if sys.version_info >= (3, 12):  # later versions count C frames apart and refuse in time
        with zygote.spawn() as worker:
            assert Box(worker).load(source)[0]["type"] == "RecursionError"
    else:
        assert death_of(zygote, source).kind in ("signal", "memory")


@pytest.mark.parametrize(
    "source", ["raise SystemExit(0)", "raise KeyboardInterrupt", "quit = 1; exit()"]
)
def test_leaving_politely_is_an_error_of_the_cell(box, source):
    fault, after = box.load(source, "x = 1")
    assert fault["type"] in ("SystemExit", "KeyboardInterrupt", "NameError") and after is None


def test_a_memory_bomb_is_a_memory_error(zygote):
    with zygote.spawn(Limits(memory=200 << 20)) as worker:
        (fault,) = Box(worker).load("x = []\nwhile True: x.append(bytearray(1 << 20))")
        assert fault["type"] == "MemoryError" and fault["memory"] is True
        assert Box(worker).load("x = None\ny = bytearray(10 << 20)") == [None]


def test_memory_taken_behind_the_allocator_counts(zygote):
    with zygote.spawn(Limits(memory=200 << 20)) as worker:
        source = "import mmap\nx = [mmap.mmap(-1, 50 << 20) for _ in range(10)]"
        (fault,) = Box(worker).load(source)
        assert fault["memory"] is True


def test_a_torch_allocation_over_the_limit_is_memory(torch_zygote):
    with torch_zygote.spawn(Limits(memory=200 << 20)) as worker:
        (fault,) = Box(worker).load("import torch\nx = torch.zeros(1 << 30)")
        assert fault["type"] == "RuntimeError" and fault["memory"] is True


def test_the_memory_limit_does_not_count_what_the_zygote_had_mapped(torch_zygote):
    with torch_zygote.spawn(Limits(memory=64 << 20)) as worker:
        source = "import torch\nx = torch.zeros(1 << 20); result = float((x @ x + 1))"
        assert Box(worker).run(source) == 1.0


@pytest.mark.parametrize("source", ["while True: pass", "sum(range(10**15))"], ids=["python", "c"])
def test_an_endless_loop_meets_the_deadline(box, source):
    started = time.monotonic()
    with pytest.raises(Timeout):
        box.load(source, timeout_s=0.3)
    death = box.worker.kill("its time was up")
    assert time.monotonic() - started < 5.0
    assert death.kind == "killed" and death.detail == "its time was up"


def test_a_loop_that_ignores_signals_is_ended_by_its_cpu_limit(zygote):
    source = "import signal\nsignal.signal(signal.SIGXCPU, signal.SIG_IGN)\nwhile True: pass"
    death = death_of(zygote, source, Limits(cpu_s=1), timeout_s=30.0)
    assert death.kind == "cpu" and death.cpu_s >= 1


def test_sleeping_costs_no_cpu_but_meets_the_deadline(box):
    with pytest.raises(Timeout):
        box.load("import time; time.sleep(60)", timeout_s=0.2)


def test_a_flood_of_output_is_ended(zygote):
    with zygote.spawn(Limits(output=1 << 20)) as worker:
        with pytest.raises(OutputFlood):
            Box(worker).load("while True: print('x' * 1000)")
        assert len(worker.pump.text()) < 100_000


def test_output_of_a_raw_descriptor_is_kept_and_cleaned(box):
    box.load("import os\nprint('é\\x1b[2J')\nos.write(2, b'raw')")
    assert box.worker.kill("done").kind == "killed"
    assert box.worker.pump.text() == "é\ufffd\nraw"


def test_a_reply_that_is_too_large_is_an_error_of_the_code(zygote):
    with zygote.spawn(Limits(buffer_bytes=1 << 20)) as worker:
        box = Box(worker)
        box.load(
            "import numpy as np\nbig = lambda: np.zeros(1 << 20)\nlong = lambda: ['x' * 99] * 10**5"
        )
        for name in ("big", "long"):
            with pytest.raises(StudentRaised) as raised:
                box.call(name)
            assert raised.value.fault["type"] == "WireError"


def test_a_reply_that_is_too_deep_is_an_error_of_the_code(box):
    box.load("def deep():\n    x = []\n    for _ in range(10**5): x = [x]\n    return x")
    with pytest.raises(StudentRaised) as raised:
        box.call("deep")
    assert raised.value.fault["type"] == "WireError"


@pytest.mark.parametrize(
    "frame",
    [
        "b'\\xff' * 64",
        "struct.pack('<II', 1, 0) + b'\\xc0'",
        "struct.pack('<II', 1, 1) + struct.pack('<Q', 1 << 50) + b'\\xc0'",
    ],
    ids=["noise", "no message", "huge buffer"],
)
def test_garbage_on_the_socket_breaks_the_protocol(box, frame):
    box.load("import os, struct\ndef f():\n    os.write(3, " + frame + ")\n    while True: pass")
    with pytest.raises(WireError):
        box.call("f", timeout_s=10)
    box.worker.kill("it broke the protocol")


def test_a_flood_on_the_socket_meets_a_limit(box):
    box.load("import os\ndef f():\n    while True: os.write(3, b'\\x08' * 4096)")
    with pytest.raises((WireError, Timeout)):
        box.call("f", timeout_s=2)


def test_a_reply_written_ahead_does_not_match_its_request(box):
    source = """
import os, struct, msgspec
def f():
    meta = msgspec.msgpack.encode({"id": 10**6, "v": True})
    os.write(3, struct.pack("<II", len(meta), 0) + meta)
    return False
"""
    box.load(source)
    with pytest.raises(AssertionError, match="1000000"):  # as Box, the proxy compares ids
        box.call("f")


def test_a_thread_left_running_is_ended_with_its_worker(box):
    spin = "spin = lambda: [0 for _ in iter(int, 1)]"
    assert box.load("import threading", spin, "threading.Thread(target=spin).start()") == [None] * 3
    assert box.run("result = 1") == 1
    assert box.worker.kill("done").kind == "killed"


def test_a_thread_bomb_stays_in_its_worker(box, zygote):
    source = """
import threading, time
threads = []
try:
    while len(threads) < 5000:
        threads.append(threading.Thread(target=time.sleep, args=(60,), daemon=True))
        threads[-1].start()
except RuntimeError as error:
    result = str(error), len(threads)
"""
    message, count = box.run(source)
    assert "start new thread" in message and count < 1000
    zygote.ping()


def test_a_fork_bomb_stays_in_its_worker(zygote):
    if not zygote.info["can_fork"]:
        pytest.skip("no process can be started")
    source = "import os\nwhile True:\n    try: os.fork()\n    except OSError: pass"
    with zygote.spawn(Limits(processes=12)) as worker:
        with pytest.raises(Timeout):
            Box(worker).load(source, timeout_s=0.5)
        assert worker.kill("its time was up").kind == "killed"
    with zygote.spawn() as worker:
        assert Box(worker).run("result = 2") == 2


def test_patching_the_codec_or_the_channel_cannot_forge_more_than_a_claim(box):
    source = """
import policylab.sandbox.encoder as encoder
def f():
    encoder.Encoder.encode = lambda *_: {"$": "T", "d": "float32", "s": [1], "b": 9}
"""
    box.load(source)
    with pytest.raises(WireError):
        box.call("f")
