# SPDX-License-Identifier: MIT
"""A worker, seen from the trusted side: its channel, its output, and how it ended."""

import dataclasses
import json
import os
import secrets
import socket
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from policylab.sandbox.death import Death, Limits, claimed, classify
from policylab.sandbox.output import OutputPump
from policylab.sandbox.values import WireError
from policylab.sandbox.wire import Channel

if TYPE_CHECKING:
    from policylab.sandbox.process import Zygote

_GRACE_SECONDS = 1.0


class ForkDied(Exception):
    """The fork that served this check ended; the loaded worker lives on and can be forked again."""

    def __init__(self, death: Death) -> None:
        super().__init__(death.detail)
        self.death = death


class Worker:
    """One process of student code, loaded once; with `can_fork` each check runs in a fork of it.

    Attributes:
        channel: frames to and from the worker.
        pump: the student's output.
        dead: the reason, once `kill` or `death` was called.
    """

    def __init__(self, zygote: "Zygote", limits: Limits) -> None:
        self.zygote, self.limits = zygote, limits
        self.can_fork = bool(zygote.info["can_fork"])
        self.dead: str | None = None
        self._death: Death | None = None
        self._id = secrets.randbits(53)
        ours, theirs = socket.socketpair()
        output_read, output_write = os.pipe()
        self._status_fd, status_write = os.pipe()
        os.set_blocking(self._status_fd, False)
        self.channel = Channel(ours, limits.buffer_bytes)
        self.pump = OutputPump(output_read, flood=limits.output)
        try:
            fds = [theirs.fileno(), output_write, status_write]
            zygote.request("spawn", fds, worker=self._id, limits=dataclasses.asdict(limits))
        except BaseException:
            self.let_go()
            raise
        finally:
            theirs.close()
            os.close(output_write)
            os.close(status_write)

    def send(self, message: Any, buffers: Sequence[Any] = (), deadline: float = 0.0) -> None:
        """Send a frame. Raises: WireError, Timeout, PeerGone."""
        self.channel.send(message, buffers, deadline, self.pump)

    def recv(self, deadline: float) -> tuple[dict[str, Any], list[bytearray]]:
        """Receive a frame whose meta is a dict. Raises: ForkDied, WireError, Timeout, PeerGone."""
        message, buffers = self.channel.recv(deadline, self.pump)
        if type(message) is not dict:
            raise WireError("a frame that is no message")
        if "died" in message:
            raise ForkDied(
                classify(claimed(message["died"]), self.limits, self.zygote.info["rss_kb"])
            )
        return message, buffers

    def kill(self, why: str) -> Death:
        """End the worker and all its processes, for this reason."""
        return self._end(why, 0.0)

    def death(self) -> Death:
        """Say how the worker ended, after `PeerGone`; ends it if it has not."""
        return self._end("it closed its connection", _GRACE_SECONDS)

    def _end(self, why: str, grace_s: float) -> Death:
        if self._death is not None:
            return self._death
        self.dead = why
        report: dict[str, Any] = {}
        try:
            report = self.zygote.request("kill", worker=self._id, grace_s=grace_s)
            if report.get("stuck"):
                self.zygote.dead = "a worker could not be killed"
            if self.zygote.backend == "namespaces":  # A tells more than its own end does
                report = self._status() or report
            else:
                report |= self._status()
            self.pump.drain_quietly()
        finally:
            self.let_go()
        self._death = classify(report, self.limits, self.zygote.info["rss_kb"], why)
        self.dead = self._death.detail
        return self._death

    def _status(self) -> dict[str, Any]:
        try:
            data = os.read(self._status_fd, 4096)
        except BlockingIOError:
            return {}
        return json.loads(data) if data else {}

    def let_go(self) -> None:
        """Close our ends; the worker ends with its zygote."""
        self.channel.sock.close()
        self.pump.close()
        if self._status_fd >= 0:
            os.close(self._status_fd)
            self._status_fd = -1

    def __enter__(self) -> "Worker":
        return self

    def __exit__(self, *_: object) -> None:
        if self.zygote.dead is None:
            self.kill("it was no longer needed")
        else:
            self.let_go()
