# SPDX-License-Identifier: MIT
"""The student's output: drained while we wait, its head kept, a flood ended."""

import os
import re
import select

from policylab.sandbox.values import WireError

_CHUNK = 1 << 16
_CHUNKS_AT_ONCE = 64
_UNSAFE = re.compile(
    r"\x1b\[[0-?]*[ -/]*[@-~]|\x1b[@-_]"  # terminal escape sequences
    r"|[\x00-\x08\x0b-\x1f\x7f-\x9f]"  # controls, but for tab and newline
    r"|[\u061c\u200b-\u200f\u2028-\u202e\u2060-\u206f\ufeff\ufff9-\ufffb]"  # bidi and invisible
    r"|[\U000e0000-\U000e007f\ud800-\udfff]"  # tags, lone surrogates
)


class OutputFlood(WireError):
    """The worker wrote more than its limit."""


def clean(text: str) -> str:
    """Replace what could act on a terminal or reorder text."""
    return _UNSAFE.sub("\ufffd", text)


class OutputPump:
    """Reads a pipe without blocking; keeps the first `keep` bytes, and raises at `flood` bytes."""

    def __init__(self, fd: int, keep: int = 64 << 10, flood: int = 64 << 20) -> None:
        self.fd, self.keep, self.flood = fd, keep, flood
        self.head, self.total, self.is_open = bytearray(), 0, True
        os.set_blocking(fd, False)

    def register(self, poll: select.poll) -> None:
        if self.is_open:
            poll.register(self.fd, select.POLLIN)

    def drain(self) -> None:
        """Read what is there. Raises: OutputFlood."""
        for _ in range(_CHUNKS_AT_ONCE):  # a fast writer must not keep us past the deadline
            if not self.is_open:
                return
            try:
                data = os.read(self.fd, _CHUNK)
            except BlockingIOError:
                return
            if not data:
                return self.close()
            self.total += len(data)
            self.head += data[: max(0, self.keep - len(self.head))]
            if self.total > self.flood:
                raise OutputFlood(f"it wrote more than {self.flood} bytes of output")

    def drain_quietly(self) -> None:
        try:
            self.drain()
        except OutputFlood:
            pass

    def text(self) -> str:
        """Return the head of the output, safe to print."""
        note = "\n[output truncated]" if self.total > self.keep else ""
        return clean(self.head.decode("utf8", "replace")) + note

    def close(self) -> None:
        if self.is_open:
            self.is_open = False
            os.close(self.fd)
