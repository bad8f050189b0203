# SPDX-License-Identifier: MIT
"""Frames on a stream socket, with limits that hold before anything is allocated.

Frame: u32 length of meta | u32 number of buffers | u64 length of each buffer | meta | buffers,
with meta in msgpack.

Safe against a peer that announces huge frames, trickles bytes, floods its output or closes early.
With a deadline every byte counts against it; without one (in the worker) a channel blocks.
"""

import select
import socket
import struct
import time
from collections.abc import Sequence
from typing import Any, Protocol

import msgspec

from policylab.sandbox.structure import check_structure
from policylab.sandbox.values import WireError

MAX_META_BYTES = 8 << 20
MAX_BUFFER_BYTES = 64 << 20  # all buffers of a frame together
MAX_BUFFERS = 4_096

_UNCHECKED_BYTES = 16 << 10  # below that nothing in a frame can take long
_POLL_SECONDS = 5.0
_SEND_BYTES = 1 << 20
_FLAGS = socket.MSG_DONTWAIT | socket.MSG_NOSIGNAL


class Timeout(Exception):
    """The deadline of the request has passed."""


class PeerGone(Exception):
    """The other end closed the socket."""


class Pump(Protocol):
    """What drains the peer's output while a channel waits; else a chatty peer blocks for ever."""

    def register(self, poll: select.poll) -> None: ...

    def drain(self) -> None: ...


class Channel:
    """One end of a connection that carries frames."""

    def __init__(self, sock: socket.socket, max_buffer_bytes: int = MAX_BUFFER_BYTES) -> None:
        self.sock = sock
        self.max_buffer_bytes = max_buffer_bytes
        sock.setblocking(True)

    def send(
        self,
        message: Any,
        buffers: Sequence[Any] = (),
        deadline: float | None = None,
        pump: Pump | None = None,
    ) -> None:
        """Send one frame.

        Args:
            message: what msgpack can hold (nodes of an Encoder included).
            buffers: bytes-like objects.
            deadline: on `time.monotonic()`'s clock.
        Raises: WireError if the frame is over a limit (then nothing was sent), Timeout, PeerGone.
        """
        meta = msgspec.msgpack.encode(message)
        lengths = [len(raw) for raw in buffers]
        if len(meta) > MAX_META_BYTES or len(lengths) > MAX_BUFFERS:
            raise WireError(f"a frame of {len(meta)} bytes and {len(lengths)} buffers is too large")
        if sum(lengths) > self.max_buffer_bytes:
            raise WireError(
                f"{sum(lengths)} bytes of tensors are more than {self.max_buffer_bytes}"
            )
        head = struct.pack(f"<II{len(lengths)}Q", len(meta), len(lengths), *lengths)
        for part in (head + meta, *buffers):
            if deadline is None:
                self._send_all(part)
            else:
                self._send_part(memoryview(part), deadline, pump)

    def recv(
        self, deadline: float | None = None, pump: Pump | None = None
    ) -> tuple[Any, list[bytearray]]:
        """Receive one frame: its meta and its buffers. Raises: WireError, Timeout, PeerGone."""
        meta_length, count = struct.unpack("<II", self._recv_exactly(8, deadline, pump))
        if meta_length > MAX_META_BYTES or count > MAX_BUFFERS:
            raise WireError("a frame larger than the limit")
        lengths = struct.unpack(f"<{count}Q", self._recv_exactly(8 * count, deadline, pump))
        if sum(lengths) > self.max_buffer_bytes:
            raise WireError("buffers larger than the limit")
        meta = self._recv_exactly(meta_length, deadline, pump)
        buffers = [self._recv_exactly(length, deadline, pump) for length in lengths]
        if meta_length > _UNCHECKED_BYTES:
            check_structure(meta)
        try:
            return msgspec.msgpack.decode(meta), buffers
        except (msgspec.DecodeError, RecursionError, ValueError) as error:
            raise WireError(f"a malformed frame ({type(error).__name__})") from None

    def _send_all(self, part: Any) -> None:
        try:
            self.sock.sendall(part, socket.MSG_NOSIGNAL)
        except OSError:
            raise PeerGone() from None

    def _send_part(self, view: memoryview, deadline: float, pump: Pump | None) -> None:
        while len(view):
            self._wait(select.POLLOUT, deadline, pump)
            try:
                sent = self.sock.send(view[:_SEND_BYTES], _FLAGS)
            except BlockingIOError:
                continue
            except OSError:
                raise PeerGone() from None
            view = view[sent:]

    def _recv_exactly(self, size: int, deadline: float | None, pump: Pump | None) -> bytearray:
        data = bytearray(size)
        view = memoryview(data)
        while len(view):
            try:
                count = self.sock.recv_into(view, 0, 0 if deadline is None else socket.MSG_DONTWAIT)
            except BlockingIOError:
                assert deadline is not None
                self._wait(select.POLLIN, deadline, pump)
                continue
            except OSError:
                raise PeerGone() from None
            if count == 0:
                raise PeerGone()
            if deadline is not None and time.monotonic() > deadline:  # a peer that trickles bytes
                raise Timeout()
            view = view[count:]
        return data

    def _wait(self, event: int, deadline: float, pump: Pump | None) -> None:
        while True:
            left = deadline - time.monotonic()
            if left <= 0:
                raise Timeout()
            poll = select.poll()
            poll.register(self.sock, event)
            if pump is not None:
                pump.register(poll)
            ready = [fd for fd, _ in poll.poll(min(left, _POLL_SECONDS) * 1000)]
            if pump is not None and any(fd != self.sock.fileno() for fd in ready):
                pump.drain()
            if self.sock.fileno() in ready:
                return
