# SPDX-License-Identifier: MIT
"""JSON messages between our own processes, on a stream socket: u32 length, then the text."""

import json
import select
import socket
import struct
import time
from typing import Any

__all__ = ["MessageError", "MessageTimeout", "receive", "send"]

MAX_BYTES = 64 << 20


class MessageError(Exception):
    """The other process is gone, sent nonsense, or did not answer in time."""


class MessageTimeout(MessageError):
    """Nothing complete came before the deadline."""


def send(sock: socket.socket, message: Any) -> None:
    """Send one message. Raises: MessageError if the other end is closed."""
    data = json.dumps(message).encode()
    try:
        sock.sendall(struct.pack("<I", len(data)) + data)
    except OSError as error:
        raise MessageError(f"cannot send: {error}") from None


def receive(
    sock: socket.socket, deadline: float | None = None, *, hangup: socket.socket | None = None
) -> Any:
    """Return the next message.

    Args:
        sock: a stream socket.
        deadline: on `time.monotonic()`'s clock; None waits for ever.
        hangup: a second connection; when its other end closes, waiting ends.
    Raises: MessageError, of which MessageTimeout says that the other end may still live.
    """
    (size,) = struct.unpack("<I", _exactly(sock, 4, deadline, hangup))
    if size > MAX_BYTES:
        raise MessageError(f"a message of {size} bytes")
    try:
        return json.loads(_exactly(sock, size, deadline, hangup))
    except ValueError:
        raise MessageError("a message that is not JSON") from None


def _exactly(
    sock: socket.socket, size: int, deadline: float | None, hangup: socket.socket | None
) -> bytes:
    data = bytearray()
    while len(data) < size:
        _wait(sock, deadline, hangup)
        try:
            part = sock.recv(min(size - len(data), 1 << 20))
        except OSError as error:
            raise MessageError(f"cannot receive: {error}") from None
        if not part:
            raise MessageError("the other process is gone")
        data += part
    return bytes(data)


def _wait(sock: socket.socket, deadline: float | None, hangup: socket.socket | None) -> None:
    """Return when the socket can be read."""
    poll = select.poll()
    poll.register(sock, select.POLLIN)
    if hangup is not None:
        poll.register(hangup, select.POLLRDHUP)
    left = None if deadline is None else max(0.0, deadline - time.monotonic()) * 1000
    ready = [fd for fd, _ in poll.poll(left)]
    if not ready:
        raise MessageTimeout("no message in time")
    if sock.fileno() not in ready:
        raise MessageError("the lane hung up")
