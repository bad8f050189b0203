# SPDX-License-Identifier: MIT
"""Limits of a worker, and the reason why one ended."""

import dataclasses
import signal
from typing import Any, Literal

Kind = Literal["memory", "cpu", "signal", "exit", "killed", "setup"]

_CRASH_SIGNALS = (signal.SIGSEGV, signal.SIGABRT, signal.SIGBUS)
_NEAR_LIMIT = 0.7


@dataclasses.dataclass(frozen=True)
class Limits:
    """What one worker may use; deadlines in wall-clock time come with each request.

    memory: bytes of address space on top of what the zygote has mapped; per process.
    cpu_s: CPU seconds of one process.
    disk: bytes of the private directory (`namespaces` only; elsewhere nothing can be written).
    processes: processes and threads together (`namespaces` only; elsewhere none can be started).
    output: bytes written to stdout and stderr before the worker is ended.
    buffer_bytes: bytes of all tensors in one message.
    """

    memory: int = 1 << 30
    cpu_s: int = 60
    disk: int = 16 << 20
    processes: int = 16
    open_files: int = 128
    output: int = 64 << 20
    buffer_bytes: int = 64 << 20


@dataclasses.dataclass(frozen=True)
class Death:
    """How a worker or a fork of it ended; `detail` is one line for instructors.

    kind: "memory" and "cpu" are limits; "signal" and "exit" are the code's own doing; "killed" is
        ours; "setup" is a fault of the sandbox.
    """

    kind: Kind
    detail: str
    cpu_s: float = 0.0
    maxrss_kb: int = 0


def classify(report: Any, limits: Limits, base_rss_kb: int, why: str = "it ended") -> Death:
    """Judge how a process ended.

    Args:
        report: "code" (negative: a signal), "cpu_s", "maxrss_kb"; from our own side of the jail
            also "asked" (we killed it) and "fail" (it could not be set up).
        base_rss_kb: memory of the zygote, which a worker shares.
        why: the reason we had for killing it.
    """
    fields = report if isinstance(report, dict) else {}
    cpu_s, rss, code = (_number(fields.get(key)) for key in ("cpu_s", "maxrss_kb", "code"))

    def death(kind: Kind, detail: str) -> Death:
        return Death(kind, detail, float(cpu_s), int(rss))

    if "fail" in fields:
        return death("setup", f"the jail could not be set up: {str(fields.get('fail', ''))[:500]}")
    if fields.get("asked") or "code" not in fields:
        return death("killed", why)
    if code >= 0:
        return death("exit", f"the process exited with code {int(code)}")
    number = int(-code)
    if number == signal.SIGXCPU or (number == signal.SIGKILL and cpu_s >= limits.cpu_s):
        return death("cpu", f"the process used more than {limits.cpu_s} s of CPU time")
    if number == signal.SIGKILL:
        return death("memory", "the kernel killed the process, most likely for its memory")
    grown = (rss - base_rss_kb) * 1024
    if number in _CRASH_SIGNALS and grown > _NEAR_LIMIT * limits.memory:
        return death("memory", f"the process crashed near its limit of {limits.memory >> 20} MiB")
    name = signal.Signals(number).name if number in set(signal.Signals) else str(number)
    return death("signal", f"the process ended by signal {name}")


def claimed(report: Any) -> dict[str, Any]:
    """Keep of a report written next to student code what cannot blame us: a claim all the same."""
    fields = report if isinstance(report, dict) else {}
    return {"code": 1} | {
        key: fields[key] for key in ("code", "cpu_s", "maxrss_kb") if key in fields
    }


def _number(value: Any) -> float:
    plain = type(value) in (int, float) and abs(value) < 1e15  # NaN compares false
    return value if plain else 0
