# SPDX-License-Identifier: MIT
"""Run the attacks of `attacks` against a jail of this machine, for `autograder doctor`."""

import contextlib
import dataclasses
import inspect
import os
import signal
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from policylab.sandbox import attacks
from policylab.sandbox.backends import CodeRaised, bare_zygote, request
from policylab.sandbox.encoder import Encoder
from policylab.sandbox.process import Zygote
from policylab.sandbox.values import WireError
from policylab.sandbox.wire import PeerGone, Timeout

_ATTACK_SECONDS = 10.0


@dataclasses.dataclass(frozen=True)
class AttackResult:
    """What became of one attack."""

    name: str
    title: str
    blocked: bool
    detail: str


def run_probe_attacks(backend: str) -> list[AttackResult]:
    """Run every attack in a worker of its own, at check time. Raises: SandboxError."""
    with attack_targets() as targets, bare_zygote(backend) as zygote:
        return [
            _attack(zygote, attack.__name__, attack.__doc__, targets) for attack in attacks.ATTACKS
        ]


def _attack(zygote: Zygote, name: str, title: str | None, targets: dict[str, Any]) -> AttackResult:
    deadline = time.monotonic() + _ATTACK_SECONDS
    title = (title or name).strip()
    argument = Encoder().encode(targets)
    cells = [["attacks", inspect.getsource(attacks)]]
    call = {"op": "call", "id": 3, "t": name, "a": [argument], "k": {}}
    with zygote.spawn() as worker:
        try:
            request(worker, {"op": "load", "id": 1, "cells": cells}, deadline)
            if worker.can_fork:
                request(worker, {"op": "fork", "id": 2}, deadline)
            loot = request(worker, call, deadline)
        except CodeRaised as error:
            return AttackResult(name, title, True, str(error)[:200])
        except (PeerGone, Timeout, WireError) as error:
            return AttackResult(name, title, True, f"{type(error).__name__} {error}".strip())
    return AttackResult(name, title, loot is None, "" if loot is None else f"it got: {loot!s:.200}")


@contextlib.contextmanager
def attack_targets() -> Iterator[attacks.Targets]:
    """Set up what the attacks aim at: harmless things outside the jail."""
    with contextlib.ExitStack() as stack:
        directory = stack.enter_context(tempfile.TemporaryDirectory(prefix="policylab-attacks-"))
        os.chmod(directory, 0o777)
        canary = Path(directory, "canary.txt")
        canary.write_text("canary")
        canary.chmod(0o644)
        tcp = stack.enter_context(socket.create_server(("127.0.0.1", 0)))
        name = f"\0policylab-{os.getpid()}"
        abstract = stack.enter_context(socket.socket(socket.AF_UNIX))
        abstract.bind(name)
        abstract.listen(1)
        victim = subprocess.Popen(
            [sys.executable, "-c", "import time; time.sleep(600)"],
            env={**os.environ, "POLICYLAB_CANARY": "canary"},
        )
        stack.callback(victim.wait)
        stack.callback(victim.send_signal, signal.SIGKILL)
        yield {
            "file": str(canary),
            "directory": directory,
            "source": str(Path(__file__).resolve().parents[1] / "__init__.py"),
            "variables": sorted(os.environ),
            "pid": victim.pid,
            "port": tcp.getsockname()[1],
            "abstract": name,
        }
