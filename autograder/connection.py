# SPDX-License-Identifier: MIT
"""Requests to one worker: values out, claims back, callbacks in between.

Whatever the worker does, a request ends within its time and gives a plain value or raises a
`StudentFailure`.  After a time-out, a death or a broken protocol the worker is killed, and every
later request raises the same failure.  What the caller does wrong (a value that cannot be sent) is
a TypeError: the check is at fault, not the student.
"""

import itertools
import time
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import torch

from autograder.autograd_bridge import RemoteGraph
from autograder.budget import Budget
from autograder.callbacks import Callbacks
from autograder.cleaning import clean
from autograder.errors import (
    Frame,
    StudentCrashed,
    StudentError,
    StudentFailure,
    StudentMemory,
    StudentTimeout,
)
from autograder.handles import RemoteObject
from policylab.sandbox import (
    Death,
    Decoder,
    Encoder,
    ForkDied,
    PeerGone,
    SandboxError,
    Timeout,
    WireError,
    Worker,
)
from policylab.sandbox.faults import is_memory

__all__ = ["Connection", "MissingName"]

MAX_NESTING = 20  # calls of a callback into the student's code and back
MAX_FRAMES = 50
MAX_TEXT = 2_000
FIELDS = {  # of a message, by the short names that cross
    "target": "t",
    "name": "n",
    "seed": "s",
    "graph": "g",
    "count": "n",
    "cells": "cells",
    "cpu_s": "cpu_s",
}
VALUES = {"index": "i", "value": "v", "parameters": "p"}  # the same, encoded


class MissingName(StudentError):
    """The notebook does not define what a check calls."""

    def __init__(self, name: str) -> None:
        super().__init__("NameError", f"name {name!r} is not defined")
        self.name = name


class Connection:
    """The trusted end of a worker.

    Args:
        worker: from `Zygote.spawn`.
        sources: lines of the student's cells by name; a traceback's text is taken from here.
        budget: replaced for each check.
    """

    def __init__(
        self, worker: Worker, sources: Mapping[str, Sequence[str]], budget: Budget
    ) -> None:
        self.worker, self.sources, self.budget = worker, sources, budget
        self.failure: StudentFailure | None = None  # why it was killed
        self._special: dict[str, Callable[[dict[str, Any]], Any]] = {"h": self._decode_handle}
        self._ids = itertools.count(1)
        self._callbacks = Callbacks()
        self._deadline, self._depth = 0.0, 0
        self._has_answered = False

    def request(
        self,
        operation: str,
        *,
        args: Sequence[Any] | None = None,
        kwargs: Mapping[str, Any] | None = None,
        timeout_s: float | None = None,
        **fields: Any,
    ) -> Any:
        """Ask the worker for an operation and return what it claims.

        Args:
            operation: of the worker's table.
            args, kwargs: values that are sent.
            timeout_s: limit of this request, within the budget; nested ones share the outer limit.
            fields: of the message; see `FIELDS` and `VALUES`.
        """
        if self.failure is not None:
            raise self.failure
        message, encoder = self._encode(operation, args, kwargs, fields)
        started, outer = time.monotonic(), self._deadline
        limit = self.budget.left if timeout_s is None else min(timeout_s, self.budget.left)
        self._deadline = min(outer, started + limit) if self._depth else started + limit
        self._depth += 1
        try:
            value = self._exchange(message, encoder)
        except StudentFailure:
            raise
        except BaseException as error:  # an interrupt may have come in the middle of a frame
            if is_memory(error):  # of what the student's code sent, or made a callback keep
                failure = StudentMemory("what it sent filled the memory that a check may use")
                self._kill(failure)
                raise failure from None
            self._kill(StudentCrashed(f"abandoned: {type(error).__name__}"))
            raise
        finally:
            self._depth -= 1
            self._deadline = outer
            if self._depth == 0:
                self.budget.spend(time.monotonic() - started)
                self._callbacks.raise_failed_assertion()
        return value

    def close(self) -> None:
        """Kill the worker."""
        if self.failure is None:
            self._kill(StudentCrashed("closed"))

    def _encode(
        self,
        operation: str,
        args: Sequence[Any] | None,
        kwargs: Mapping[str, Any] | None,
        fields: dict[str, Any],
    ) -> tuple[dict[str, Any], Encoder]:
        encoder = Encoder(self._encode_other, self._encode_callable)
        message = {"op": operation, "id": next(self._ids)}
        try:
            for name, value in fields.items():
                if name in VALUES:
                    message[VALUES[name]] = encoder.encode(value)
                else:
                    message[FIELDS[name]] = value
            if args is not None:
                message["a"] = [encoder.encode(value) for value in args]
                named = {} if kwargs is None else kwargs
                message["k"] = {name: encoder.encode(value) for name, value in named.items()}
        except WireError as error:
            raise TypeError(
                f"an argument cannot be sent to the student's process: {error}"
            ) from None
        return message, encoder

    def _exchange(self, message: dict[str, Any], encoder: Encoder) -> Any:
        try:
            if self._depth > MAX_NESTING:
                raise WireError("callbacks nested too deep")
            if self._deadline <= time.monotonic():
                raise Timeout()
            self._send(message, encoder.buffers)
            reply, buffers = self._reply(message["id"])
            if "exc" in reply:
                raise self._raised(reply["exc"], message)
            return self._value(reply, buffers, encoder)
        except Timeout:
            failure: StudentFailure = StudentTimeout("the student's code did not finish in time")
            self._kill(failure)
        except ForkDied as error:
            failure = self._failure_of(error.death)
            self._kill(failure)
        except PeerGone:
            failure = self.failure = self._failure_of(self.worker.death())
        except WireError as error:
            failure = StudentCrashed(f"broke the protocol: {error}")
            self._kill(failure)
        raise failure

    def _send(self, message: dict[str, Any], buffers: Sequence[Any]) -> None:
        try:
            self.worker.send(message, buffers, self._deadline)
        except WireError as error:  # nothing was sent: the caller's frame is over a limit
            raise ValueError(f"the arguments are too large: {error}") from None

    def _kill(self, failure: StudentFailure) -> None:
        self.failure = failure
        self.worker.kill(str(failure))

    def _failure_of(self, death: Death) -> StudentFailure:
        """Return what a death means.

        Raises: SandboxError if the worker never answered because its jail could not be set up;
            later the student's code chooses the exit code, which then means nothing.
        """
        if death.kind == "setup" and not self._has_answered:
            raise SandboxError(death.detail)
        kinds = {"memory": StudentMemory, "cpu": StudentTimeout}
        return kinds.get(death.kind, StudentCrashed)(death.detail)

    def _reply(self, request_id: int) -> tuple[dict[str, Any], list[bytearray]]:
        while True:
            reply, buffers = self.worker.recv(self._deadline)
            self._has_answered = True
            if reply.get("op") == "cb":
                self._run_callback(reply, buffers)
                continue
            if reply.get("id") != request_id:  # written ahead of the request, for example
                raise WireError("a reply to another request")
            return reply, buffers

    def _value(self, reply: dict[str, Any], buffers: list[bytearray], encoder: Encoder) -> Any:
        decoder = Decoder(buffers, self._special)
        value = decoder.decode(reply.get("v"))
        graph = reply.get("g")
        if graph is None:
            return value
        if type(graph) is not int:
            raise WireError("a graph that is no number")
        outputs = [tensor.detach() for tensor in decoder.tensors if tensor.requires_grad]
        if not outputs:
            raise WireError("a graph without outputs")
        leaves = [tensor for tensor in encoder.tensors if tensor.requires_grad]
        anchor = torch.zeros((), requires_grad=True)  # so that backward runs even without leaves
        bridged = RemoteGraph.apply(self, graph, outputs, anchor, *leaves)
        return Decoder(buffers, self._special, iter(bridged)).decode(reply["v"])

    def _run_callback(self, message: dict[str, Any], buffers: list[bytearray]) -> None:
        encoder = Encoder(self._encode_other, self._encode_callable)
        reply = self._callbacks.run(message, Decoder(buffers, self._special), encoder)
        if self.failure is not None:  # the callback called the student's code, which broke
            raise self.failure
        try:
            self.worker.send(reply, encoder.buffers if "v" in reply else (), self._deadline)
        except WireError:  # the student's arguments made the answer too large
            self._send({"err": "ValueError"}, ())

    def _encode_other(self, value: Any) -> dict[str, Any]:
        if isinstance(value, RemoteObject):
            connection, number = value.__dict__["_connection"], value.__dict__["_number"]
            if connection is not self:
                raise WireError("a handle of another check")
            return {"$": "h", "id": number}
        raise WireError(f"a value of type {type(value).__name__}")

    def _encode_callable(self, function: Callable[..., Any]) -> dict[str, Any]:
        if isinstance(function, RemoteObject):
            return self._encode_other(function)
        return self._callbacks.lend(function)

    def _decode_handle(self, node: dict[str, Any]) -> RemoteObject:
        number = node.get("id")
        if type(number) is not int:
            raise WireError("a malformed handle")
        return RemoteObject(self, number, clean(node.get("c"), 80), node.get("m") is True)

    def student_error(self, raw: Any) -> StudentError:
        """Return the exception that the worker reports."""
        if type(raw) is not dict:
            raise WireError("a malformed exception")
        kind, text = clean(raw.get("type"), 80), clean(raw.get("msg"), MAX_TEXT)
        return StudentError(kind, text, self._frames(raw.get("frames")))

    def _raised(self, raw: Any, message: dict[str, Any]) -> StudentFailure:
        error = self.student_error(raw)
        if raw.get("memory") is True:
            return StudentMemory(error.message)
        target = message.get("t")
        if error.type == "NameError" and not error.frames and type(target) is str:
            return MissingName(target)
        return error

    def _frames(self, raw: Any) -> tuple[Frame, ...]:
        """Return the claimed lines of the student's own cells, with our copy of their text."""
        found = []
        for row in raw[-MAX_FRAMES:] if type(raw) is list else []:
            if type(row) is not list or len(row) < 2 or type(row[1]) is not int:
                continue
            cell, number = row[0], row[1]
            lines = self.sources.get(cell) if type(cell) is str else None
            if lines is not None and 0 < number <= len(lines):
                found.append(Frame(cell, number, clean(lines[number - 1].strip(), 200)))
        return tuple(found)
