# SPDX-License-Identifier: MIT
"""Run untrusted code: a jailed zygote that forks jailed workers, and the wire between them and us.

Trusted side: `process`, `remote`, `backends`, `trials`. Jailed: `outer`, `zygote`, `inner`,
`worker`. Both: `encoder`, `decoder`, `wire`. Primitives: `jail`, `landlock`, `seccomp`, `syscalls`,
`layout`.
"""

from policylab.sandbox.backends import (
    NoSafeBackend,
    ProbeResult,
    choose_backend,
    probe,
    write_sandbox_view,
)
from policylab.sandbox.death import Death, Limits
from policylab.sandbox.decoder import Decoder
from policylab.sandbox.encoder import Encoder
from policylab.sandbox.output import OutputFlood, OutputPump, clean
from policylab.sandbox.process import SandboxError, Zygote, ZygoteDied
from policylab.sandbox.remote import ForkDied, Worker
from policylab.sandbox.trials import AttackResult, run_probe_attacks
from policylab.sandbox.values import Record, WireError
from policylab.sandbox.wire import Channel, PeerGone, Timeout

__all__ = [
    "AttackResult",
    "NoSafeBackend",
    "ProbeResult",
    "choose_backend",
    "probe",
    "run_probe_attacks",
    "write_sandbox_view",
    "Channel",
    "Death",
    "Decoder",
    "Encoder",
    "ForkDied",
    "Limits",
    "OutputFlood",
    "OutputPump",
    "PeerGone",
    "Record",
    "SandboxError",
    "Timeout",
    "WireError",
    "Worker",
    "Zygote",
    "ZygoteDied",
    "clean",
]
