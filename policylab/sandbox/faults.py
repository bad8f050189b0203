# SPDX-License-Identifier: MIT
"""What an exception in student code becomes: plain data with the student's own lines."""

import errno
import linecache
import traceback
import types
from typing import Any

CELL_FILE = "<cell {}>"
_PREFIX = "<cell "
_MAX_FRAMES = 20
_MAX_MESSAGE = 2_000
_MAX_LINE = 500


def describe(error: BaseException) -> dict[str, Any]:
    """Return {"type", "msg", "memory", "frames": [[cell, line, text], ...]}, innermost last."""
    try:
        return {
            "type": type(error).__name__[:80],
            "msg": _message(error),
            "memory": is_memory(error),
            "frames": _frames(error)[-_MAX_FRAMES:],
        }
    except BaseException:  # the student controls __str__ and more
        return {"type": "Unprintable", "msg": "", "memory": False, "frames": []}


def is_memory(error: BaseException) -> bool:
    """Whether the memory limit raised this: MemoryError, torch's allocator, or a failed mmap."""
    if isinstance(error, MemoryError):
        return True
    if isinstance(error, OSError):
        return error.errno == errno.ENOMEM
    return isinstance(error, RuntimeError) and "can't allocate memory" in str(error)


def _message(error: BaseException) -> str:
    try:
        return str(error)[:_MAX_MESSAGE]
    except BaseException:
        return ""


def _frames(error: BaseException) -> list[list[Any]]:
    frames = []
    for frame, line in traceback.walk_tb(error.__traceback__):
        if frame.f_code.co_filename.startswith(_PREFIX):
            frames.append(_frame(frame.f_code, line))
    if isinstance(error, SyntaxError) and (name := str(error.filename)).startswith(_PREFIX):
        text = (error.text or "").strip()[:_MAX_LINE]
        frames.append([name[len(_PREFIX) : -1], error.lineno or 0, text])
    return frames


def _frame(code: types.CodeType, line: int) -> list[Any]:
    text = linecache.getline(code.co_filename, line).strip()
    return [code.co_filename[len(_PREFIX) : -1], line, text[:_MAX_LINE]]
