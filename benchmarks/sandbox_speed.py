# SPDX-License-Identifier: MIT
"""What the sandbox costs: starting, forking, calling, and moving tensors, in each backend.

    python benchmarks/sandbox_speed.py
    python benchmarks/sandbox_speed.py --rounds 100 --json

Backends take turns in every round, so that a slow moment of the machine hits all; printed are the
median and the smallest time in milliseconds. A backend that does not work here is left out.
"""

import argparse
import contextlib
import json
import statistics
import tempfile
import time
from collections import defaultdict
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import torch

from policylab.sandbox import Decoder, Encoder, Limits, Worker, Zygote, probe, write_sandbox_view
from policylab.sandbox.backends import BACKENDS

SECONDS = 60.0
CELL = "def same(x): return x\ndef apply(f, n):\n    for _ in range(n): f(1)"
CALLBACKS = 50


def request(worker: Worker, op: str, *args: Any, **fields: Any) -> Any:
    """Send one request and return its value; callbacks are answered with None."""
    deadline = time.monotonic() + SECONDS
    encoder = Encoder(on_callable=lambda value: {"$": "cb", "id": 1})
    if args:
        fields |= {"a": [encoder.encode(arg) for arg in args], "k": {}}
    worker.send({"op": op, "id": 1, **fields}, encoder.buffers, deadline)
    while True:
        reply, buffers = worker.recv(deadline)
        if reply.get("op") != "cb":
            assert "exc" not in reply, reply
            return Decoder(buffers).decode(reply["v"])
        worker.send({"v": None}, (), deadline)


@contextlib.contextmanager
def clock(times: dict[str, list[float]], name: str, count: int = 1) -> Iterator[None]:
    start = time.perf_counter()
    yield
    times[name].append(1000 * (time.perf_counter() - start) / count)


def round_of(zygote: Zygote, times: dict[str, list[float]]) -> None:
    """Measure everything once."""
    small, large = torch.ones(1 << 18), torch.ones(1 << 23)
    with clock(times, "spawn to first reply"):
        worker = zygote.spawn(Limits(buffer_bytes=64 << 20, memory=2 << 30))
        request(worker, "has", n="x")
    with clock(times, "load a small cell"):
        request(worker, "load", cells=[["c", CELL]])
    if worker.can_fork:
        with clock(times, "fork to first reply"):
            request(worker, "fork")
        with clock(times, "end of a fork"):
            request(worker, "end")
        request(worker, "fork")
    call: Callable[[Any], Any] = lambda value: request(worker, "call", value, t="same")  # noqa: E731
    call(1)
    with clock(times, "call", 50):
        for _ in range(50):
            call(1)
    with clock(times, "callback", CALLBACKS):
        request(worker, "call", print, CALLBACKS, t="apply")
    with clock(times, "1 MB there and back", 5):
        for _ in range(5):
            call(small)
    with clock(times, "32 MB there and back"):
        call(large)
    with clock(times, "kill"):
        worker.kill("measured")


def measure(rounds: int) -> dict[str, dict[str, dict[str, float]]]:
    """Return {backend: {what: {"median", "least"}}} in milliseconds."""
    names = [name for name in BACKENDS if probe(name).ok]
    times: dict[str, dict[str, list[float]]] = {name: defaultdict(list) for name in names}
    with contextlib.ExitStack() as stack:
        directory = stack.enter_context(tempfile.TemporaryDirectory())
        view = write_sandbox_view(Path(directory) / "view")
        for name in names:
            with (
                clock(times[name], "start of a zygote without torch"),
                Zygote(view, backend=name, preimport=()),
            ):
                pass
        zygotes = {}
        for name in names:
            with clock(times[name], "start of a zygote with torch"):
                zygotes[name] = stack.enter_context(Zygote(view, backend=name))
        for number in range(rounds):
            for name in names if number % 2 else reversed(names):
                round_of(zygotes[name], times[name])
    return {
        name: {
            what: {"median": round(statistics.median(found), 3), "least": round(min(found), 3)}
            for what, found in measured.items()
        }
        for name, measured in times.items()
    }


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--rounds", type=int, default=30, help="interleaved measurements")
    parser.add_argument("--json", action="store_true", help="print JSON instead of a table")
    options = parser.parse_args()
    torch.set_num_threads(1)
    results = measure(options.rounds)
    if options.json:
        print(json.dumps(results, indent=1))
        return
    for name, measured in results.items():
        print(f"{name:34} {'median':>10} {'least':>10}  ms")
        for what, found in measured.items():
            print(f"  {what:32} {found['median']:10.3f} {found['least']:10.3f}")


if __name__ == "__main__":
    main()
