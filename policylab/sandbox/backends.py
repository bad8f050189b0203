# SPDX-License-Identifier: MIT
"""Which jail this machine can give: tried, not guessed, in the order of strength, else refused.

`namespaces` (outer and inner jail), then `landlock` ("reduced": the host's tree stays visible to
stat), then `NoSafeBackend`. POLICYLAB_SANDBOX names one; a weaker one is never taken in its place.
`UNSAFE`, which is no jail, is not among them: only a caller can name it.
"""

import contextlib
import dataclasses
import functools
import os
import shutil
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from policylab.sandbox import landlock
from policylab.sandbox.decoder import Decoder
from policylab.sandbox.outer import UNSAFE as UNSAFE
from policylab.sandbox.process import SandboxError, Zygote
from policylab.sandbox.remote import Worker
from policylab.sandbox.values import WireError
from policylab.sandbox.wire import PeerGone, Timeout

BACKENDS = ("namespaces", "landlock")  # the strongest first
VARIABLE = "POLICYLAB_SANDBOX"

_PROBE_SECONDS = 30.0
_PROC_SYS = Path("/proc/sys")
_SYSCTLS = {
    "kernel/apparmor_restrict_unprivileged_userns": ("1", "0"),
    "kernel/unprivileged_userns_clone": ("0", "1"),
    "user/max_user_namespaces": ("0", "15000"),
}


class NoSafeBackend(SandboxError):
    """No jail can be had here; the message says what to change."""


class CodeRaised(Exception):
    """The code in the worker raised; type and message as it claims."""


@dataclasses.dataclass(frozen=True)
class ProbeResult:
    """Whether a backend works here; if not, why, and what would help."""

    ok: bool
    reason: str = ""
    fix: str = ""


def write_sandbox_view(directory: str | os.PathLike[str]) -> Path:
    """Write a view that holds policylab.sandbox and nothing else; return it."""
    package = Path(directory) / "policylab"
    package.mkdir(parents=True)
    (package / "__init__.py").write_text("")
    ignored = shutil.ignore_patterns("__pycache__")
    shutil.copytree(Path(__file__).parent, package / "sandbox", ignore=ignored)
    return Path(directory)


def probe(name: str) -> ProbeResult:
    """Start a jail of this kind and run code in it. Raises: ValueError for an unknown name."""
    if name not in BACKENDS:
        raise ValueError(f"backend must be one of {', '.join(BACKENDS)}; got {name!r}")
    return _probe(name, os.getuid())


@functools.cache
def _probe(name: str, uid: int) -> ProbeResult:
    if not sys.platform.startswith("linux"):
        fix = "grade on Linux, or in a virtual machine or container that runs it"
        return ProbeResult(False, f"there is no {name} backend on {sys.platform}", fix)
    try:
        with bare_zygote(name) as zygote, zygote.spawn() as worker:
            deadline = time.monotonic() + _PROBE_SECONDS
            request(
                worker, {"op": "load", "id": 1, "cells": [["probe", "answer = 6 * 7"]]}, deadline
            )
            answer = request(worker, {"op": "value", "id": 2, "t": "answer"}, deadline)
    except PeerGone:
        return ProbeResult(False, "its worker ended at once", _fix(name))
    except (SandboxError, CodeRaised, Timeout, WireError, OSError) as error:
        return ProbeResult(False, str(error), _fix(name))
    if answer != 42:
        return ProbeResult(False, f"it answered {answer!r} where 42 was right", _fix(name))
    return ProbeResult(True)


def choose_backend(preferred: str | None = None) -> str:
    """Return the strongest backend that works here, or the one asked for.

    Args:
        preferred: a backend's name; of it and POLICYLAB_SANDBOX the stronger one counts.
    Raises: NoSafeBackend, with what to change.
    """
    asked = [name for name in (preferred, os.environ.get(VARIABLE)) if name]
    if unknown := [name for name in asked if name not in BACKENDS]:
        known = " or ".join(BACKENDS)
        raise NoSafeBackend(f"there is no sandbox backend {unknown[0]!r}; choose {known}")
    candidates = [min(asked, key=BACKENDS.index)] if asked else BACKENDS
    results = {}
    for name in candidates:
        results[name] = probe(name)
        if results[name].ok:
            return name
    lines = [f"- {name}: {r.reason}\n  What helps: {r.fix}" for name, r in results.items()]
    raise NoSafeBackend("no safe sandbox can be had on this machine:\n" + "\n".join(lines))


def _fix(name: str) -> str:
    if name == "landlock":
        if landlock.abi() < 1:
            return (
                "a kernel from Linux 5.13 on, with landlock in its list of LSMs (boot option lsm=)"
            )
        return (
            "as root, an interpreter and an environment that ordinary users can read (for example "
            "below /opt); or run as an ordinary user"
        )
    for path, (bad, good) in _SYSCTLS.items():
        with contextlib.suppress(OSError):
            if Path(_PROC_SYS, path).read_text().strip() == bad:
                return f"as root: sysctl {path.replace('/', '.')}={good}"
    if Path("/.dockerenv").exists() or Path("/run/.containerenv").exists():
        return "let the container make namespaces and mounts (its seccomp profile forbids them)"
    return "user namespaces for ordinary users (a kernel with CONFIG_USER_NS)"


@contextlib.contextmanager
def bare_zygote(name: str) -> Iterator[Zygote]:
    """Start a zygote without torch, on a view of the sandbox alone."""
    with tempfile.TemporaryDirectory(prefix="policylab-probe-") as directory:
        view = write_sandbox_view(Path(directory) / "view")
        with Zygote(view, backend=name, preimport=(), startup_s=_PROBE_SECONDS) as zygote:
            yield zygote


def request(worker: Worker, message: dict[str, Any], deadline: float) -> Any:
    """Send one message and return the value of its reply. Raises: CodeRaised."""
    worker.send(message, (), deadline)
    reply, buffers = worker.recv(deadline)
    if "exc" in reply:
        fault = reply["exc"] if isinstance(reply["exc"], dict) else {}
        raise CodeRaised(f"{fault.get('type')}: {fault.get('msg')}")
    return Decoder(buffers).decode(reply.get("v"))
