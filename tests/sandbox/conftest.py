# SPDX-License-Identifier: MIT
"""Zygotes on a view of the sandbox alone, and a small client, in every backend that works here."""

import contextlib
import itertools
import os
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import psutil
import pytest

from policylab.sandbox import (
    Decoder,
    Encoder,
    Limits,
    Worker,
    Zygote,
    probe,
    write_sandbox_view,
)

BACKENDS = ("namespaces", "landlock")


class StudentRaised(Exception):
    """`fault` is what the worker says of the exception."""

    def __init__(self, fault: dict[str, Any]) -> None:
        super().__init__(f"{fault['type']}: {fault['msg']}")
        self.fault = fault


class Box:
    """A loaded worker, called without handles, callbacks or gradients."""

    def __init__(self, worker: Worker) -> None:
        self.worker = worker
        self.ids = itertools.count(1)

    def request(self, op: str, timeout_s: float = 30.0, buffers: Any = (), **fields: Any) -> Any:
        """Send one request and return its reply's message and buffers."""
        number = next(self.ids)
        deadline = time.monotonic() + timeout_s
        self.worker.send({"op": op, "id": number, **fields}, buffers, deadline)
        message, received = self.worker.recv(deadline)
        assert message.get("id") == number, message
        return message, received

    def value(self, op: str, timeout_s: float = 30.0, buffers: Any = (), **fields: Any) -> Any:
        message, received = self.request(op, timeout_s, buffers, **fields)
        if "exc" in message:
            raise StudentRaised(message["exc"])
        return Decoder(received).decode(message["v"])

    def load(self, *sources: str, timeout_s: float = 30.0) -> list[Any]:
        cells = [[f"c{number}", source] for number, source in enumerate(sources)]
        return self.value("load", timeout_s, cells=cells)

    def run(self, source: str, timeout_s: float = 30.0) -> Any:
        """Load one cell that must not fail; return its variable `result`."""
        faults = self.load("result = None\n" + source, timeout_s=timeout_s)
        assert faults == [None], faults
        return self.value("value", timeout_s, t="result")

    def call(self, name: str, *args: Any, timeout_s: float = 30.0, **kwargs: Any) -> Any:
        encoder = Encoder()
        encoded = [encoder.encode(arg) for arg in args]
        named = {key: encoder.encode(arg) for key, arg in kwargs.items()}
        return self.value("call", timeout_s, encoder.buffers, t=name, a=encoded, k=named)


def descendants() -> set[int]:
    return {child.pid for child in psutil.Process().children(recursive=True)}


def wait_until_gone(pids: set[int], seconds: float = 5.0) -> set[int]:
    """Return those of the processes that still run after some time."""
    deadline = time.monotonic() + seconds
    while time.monotonic() < deadline:
        pids = {pid for pid in pids if psutil.pid_exists(pid) and not _is_zombie(pid)}
        if not pids:
            break
        time.sleep(0.02)
    return pids


def _is_zombie(pid: int) -> bool:
    with contextlib.suppress(psutil.Error):
        return psutil.Process(pid).status() == psutil.STATUS_ZOMBIE
    return True


def skip_or_fail(reason: str) -> None:
    """Skip, unless this machine is meant to have what is missing."""
    if os.environ.get("POLICYLAB_REQUIRE"):
        pytest.fail(reason)
    pytest.skip(reason)


def require_backend(name: str) -> None:
    if not (result := probe(name)).ok:
        skip_or_fail(f"{name} does not work here: {result.reason}")


@pytest.fixture(scope="session")
def view(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_sandbox_view(tmp_path_factory.mktemp("view") / "view")


@pytest.fixture(scope="session", params=BACKENDS)
def backend(request: pytest.FixtureRequest) -> str:
    require_backend(request.param)
    return request.param


@pytest.fixture(scope="session")
def zygote(backend: str, view: Path) -> Iterator[Zygote]:
    """Without torch: it starts in a fraction of a second."""
    with Zygote(view, backend=backend, preimport=()) as zygote:
        yield zygote


@pytest.fixture(scope="session")
def torch_zygote(backend: str, view: Path) -> Iterator[Zygote]:
    with Zygote(view, backend=backend, preimport=("torch",)) as zygote:
        yield zygote


@pytest.fixture
def box(zygote: Zygote) -> Iterator[Box]:
    with zygote.spawn(Limits(cpu_s=20)) as worker:
        yield Box(worker)


@pytest.fixture
def torch_box(torch_zygote: Zygote) -> Iterator[Box]:
    with torch_zygote.spawn(Limits(cpu_s=20)) as worker:
        yield Box(worker)
