# SPDX-License-Identifier: MIT
"""Run untrusted code: a jailed zygote that forks jailed workers, and the wire between them and us.

Trusted side: `process` (`Zygote`, `Worker`), `backends`. Jailed: `outer`, `zygote`, `inner`,
`worker`. Both: `codec`, `wire`. Primitives: `jail`, `landlock`, `seccomp`, `syscalls`, `layout`.
"""

from policylab.sandbox.codec import Decoder, Encoder, Record, WireError
from policylab.sandbox.death import Death, Limits
from policylab.sandbox.output import OutputFlood, OutputPump, clean
from policylab.sandbox.process import ForkDied, SandboxError, Worker, Zygote, ZygoteDied
from policylab.sandbox.wire import Channel, PeerGone, Timeout

__all__ = [
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
