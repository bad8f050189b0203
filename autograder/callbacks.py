# SPDX-License-Identifier: MIT
"""Functions of a check that it lends to the student's code: they run here and are counted here."""

import itertools
from collections.abc import Callable
from typing import Any

from autograder.errors import StudentError
from policylab.sandbox import Decoder, Encoder, WireError

__all__ = ["Callbacks"]

MAX_CALLS = 100_000
MAX_BYTES = 1 << 30  # of tensors in all calls together: a check may keep what it is given


class Callbacks:
    """Callables by number; only the number and a name cross."""

    def __init__(self) -> None:
        self._ids = itertools.count(1)
        self._lent: dict[int, Callable[..., Any]] = {}
        self._calls = self._bytes = 0
        self._failed: AssertionError | None = None

    def lend(self, function: Callable[..., Any]) -> dict[str, Any]:
        """Return the node that stands for a callable; the same one for the same callable."""
        numbers = [number for number, known in self._lent.items() if known is function]
        number = numbers[0] if numbers else next(self._ids)
        self._lent[number] = function
        return {"$": "cb", "id": number, "n": getattr(function, "__name__", "callback")}

    def run(self, message: dict[str, Any], decoder: Decoder, encoder: Encoder) -> dict[str, Any]:
        """Call what the message asks for and return the reply.

        Raises: WireError if the message is malformed, or comes once too often.
        """
        self._calls += 1
        self._bytes += sum(map(len, decoder.buffers))
        if self._calls > MAX_CALLS or self._bytes > MAX_BYTES:
            raise WireError("too many callbacks, or too much in them")
        number, args, kwargs = (message.get(name) for name in ("id", "a", "k"))
        function = self._lent.get(number) if type(number) is int else None
        if function is None or type(args) is not list or type(kwargs) is not dict:
            raise WireError("a malformed callback")
        positional = [decoder.decode(value) for value in args]
        named = {str(name): decoder.decode(value) for name, value in kwargs.items()}
        try:
            return {"v": encoder.encode(function(*positional, **named))}
        except Exception as error:
            if isinstance(error, AssertionError) and self._failed is None:
                self._failed = error
            # no message and no traceback of ours may reach the student's code
            return {"err": error.type if isinstance(error, StudentError) else type(error).__name__}

    def raise_failed_assertion(self) -> None:
        """Fail the check for an assertion in a callback, even if student code hid the error."""
        error, self._failed = self._failed, None
        if error is not None:
            raise error
