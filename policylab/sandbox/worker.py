# SPDX-License-Identifier: MIT
"""Runs inside both jails, in the process of the student's code: nothing here is trusted.

It exists so that honest code can be loaded and called, and so that the trusted side has plain data
to judge. Requests are `{"op", "id", ...}`; replies `{"id", "v"}`, with "g" for an autograd graph
kept here, or `{"id", "exc": {"type", "msg", "memory", "frames": [[cell, line, text], ...]}}`.
"""

import importlib
import itertools
import linecache
import os
import random
import socket
import sys
import types
from collections.abc import Callable
from typing import Any, NoReturn

from policylab.sandbox import inner
from policylab.sandbox.decoder import Decoder
from policylab.sandbox.encoder import Encoder
from policylab.sandbox.faults import CELL_FILE, describe
from policylab.sandbox.values import WireError, loaded
from policylab.sandbox.wire import Channel, PeerGone

SETUP_FAILED = 71
_OPS_WITH_GRAPH = ("call", "functional_call")


class CallbackError(Exception):
    """A callable lent by the check raised. Its type's name crosses, never its message."""


class Server:
    """The student's namespace, and the operations on it."""

    def __init__(self, sock: socket.socket, can_fork: bool, buffer_bytes: int) -> None:
        self.channel = Channel(sock, buffer_bytes)
        self.can_fork = can_fork
        self.fork_end: int | None = (
            None  # in a fork: tells the parent that the check ended in order
        )
        self.ids = itertools.count(1)
        self.handles: dict[int, Any] = {}
        self.graphs: dict[
            int, tuple[list[Any], list[Any]]
        ] = {}  # (outputs, leaves) for a later vjp
        self.special = {"cb": self.make_callback, "h": lambda node: self.handles[node["id"]]}
        module = types.ModuleType("__main__")
        module.__dict__["__builtins__"] = __builtins__
        sys.modules["__main__"] = module
        self.namespace = module.__dict__

    # ---- objects that stay here, callables that stay there
    def encoder(self) -> Encoder:
        return Encoder(self.make_handle, self.make_handle)

    def make_handle(self, value: Any) -> dict[str, Any]:
        handle = next(self.ids)
        self.handles[handle] = value
        torch = loaded("torch")
        is_module = torch is not None and isinstance(value, torch.nn.Module)
        return {"$": "h", "id": handle, "c": type(value).__name__[:80], "m": is_module}

    def make_callback(self, node: dict[str, Any]) -> Callable[..., Any]:
        def callback(*args: Any, **kwargs: Any) -> Any:
            encoder = self.encoder()
            message = {
                "op": "cb",
                "id": node["id"],
                "a": [encoder.encode(arg) for arg in args],
                "k": {name: encoder.encode(arg) for name, arg in kwargs.items()},
            }
            self.channel.send(message, encoder.buffers)
            while True:
                reply, buffers = self.channel.recv()
                if "op" in reply:  # the callback itself calls student code: serve that first
                    self.serve(reply, buffers)
                elif "err" in reply:
                    raise CallbackError(reply["err"])
                else:
                    return Decoder(buffers, self.special).decode(reply["v"])

        callback.__name__ = node.get("n", "callback")
        return callback

    def resolve(self, target: int | str) -> Any:
        """Return the object of a handle, or of a dotted name in the notebook's namespace."""
        if isinstance(target, int):
            return self.handles[target]
        head, *rest = target.split(".")
        if head not in self.namespace:
            raise NameError(f"name {head!r} is not defined")
        value = self.namespace[head]
        for name in rest:
            value = getattr(value, name)
        return value

    # ---- operations: (request, decoder) -> value
    def op_load(self, request: dict[str, Any], decoder: Decoder) -> list[dict[str, Any] | None]:
        """Execute cells in order; one that fails does not stop the next."""
        return [self.run_cell(name, source) for name, source in request["cells"]]

    def run_cell(self, name: str, source: str) -> dict[str, Any] | None:
        filename = CELL_FILE.format(name)
        linecache.cache[filename] = (len(source), None, source.splitlines(True), filename)
        try:
            exec(compile(source, filename, "exec", dont_inherit=True), self.namespace)
        except BaseException as error:  # SystemExit too
            return describe(error)
        return None

    def op_call(self, request: dict[str, Any], decoder: Decoder) -> Any:
        function = self.resolve(request["t"])
        args = [decoder.decode(arg) for arg in request["a"]]
        kwargs = {name: decoder.decode(arg) for name, arg in request["k"].items()}
        return function(*args, **kwargs)

    def op_call_mutating(self, request: dict[str, Any], decoder: Decoder) -> list[Any]:
        function = self.resolve(request["t"])
        args = [decoder.decode(arg) for arg in request["a"]]
        kwargs = {name: decoder.decode(arg) for name, arg in request["k"].items()}
        return [function(*args, **kwargs), args, kwargs]

    def op_functional_call(self, request: dict[str, Any], decoder: Decoder) -> Any:
        torch = importlib.import_module("torch")
        parameters = decoder.decode(request["p"])
        args = tuple(decoder.decode(arg) for arg in request["a"])
        return torch.func.functional_call(self.resolve(request["t"]), parameters, args)

    def op_vjp(self, request: dict[str, Any], decoder: Decoder) -> list[Any]:
        outputs, leaves = self.graphs[request["g"]]
        for leaf in leaves:
            leaf.grad = None
        grads = [decoder.decode(arg) for arg in request["a"]]
        torch = importlib.import_module("torch")
        torch.autograd.backward(outputs, grads, retain_graph=True)
        return [leaf.grad for leaf in leaves]

    def op_get(self, request: dict[str, Any], decoder: Decoder) -> Any:
        return getattr(self.resolve(request["t"]), request["n"])

    def op_value(self, request: dict[str, Any], decoder: Decoder) -> Any:
        return self.resolve(request["t"])

    def op_item(self, request: dict[str, Any], decoder: Decoder) -> Any:
        return self.resolve(request["t"])[decoder.decode(request["i"])]

    def op_setattr(self, request: dict[str, Any], decoder: Decoder) -> None:
        setattr(self.resolve(request["t"]), request["n"], decoder.decode(request["v"]))

    def op_iter(self, request: dict[str, Any], decoder: Decoder) -> Any:
        return iter(self.resolve(request["t"]))

    def op_next(self, request: dict[str, Any], decoder: Decoder) -> list[Any]:
        return list(itertools.islice(iter(self.resolve(request["t"])), request["n"]))

    def op_has(self, request: dict[str, Any], decoder: Decoder) -> bool:
        return request["n"] in self.namespace

    def op_params(self, request: dict[str, Any], decoder: Decoder) -> list[Any]:
        module = self.resolve(request["t"])
        return [(n, p.detach(), p.grad, p.requires_grad) for n, p in module.named_parameters()]

    def op_seed(self, request: dict[str, Any], decoder: Decoder) -> None:
        random.seed(request["s"])
        if (numpy := loaded("numpy")) is not None:
            numpy.random.seed(request["s"] % (1 << 32))
        if (torch := loaded("torch")) is not None:
            torch.manual_seed(request["s"])

    # ---- a fork of the loaded state for each check
    def fork(self, request: dict[str, Any]) -> None:
        """Fork, then serve in the child while the parent waits for it to end."""
        if not self.can_fork or self.fork_end is not None:
            return self.refuse(request, RuntimeError("this worker cannot be forked"))
        flush_streams()
        read_end, write_end = os.pipe()
        random_state = random.getstate()
        try:
            pid = os.fork()
        except OSError as error:  # the code left too many processes behind
            os.close(read_end)
            os.close(write_end)
            return self.refuse(request, error)
        if pid:
            os.close(write_end)
            return self.wait_for_fork(pid, read_end)
        try:
            random.setstate(random_state)  # Python seeds it anew in a fork
            os.close(read_end)
            self.fork_end = write_end
            inner.confine_check(request.get("cpu_s"))
        except BaseException:
            os._exit(SETUP_FAILED)
        self.channel.send({"id": request["id"], "v": None})

    def wait_for_fork(self, pid: int, read_end: int) -> None:
        _, status, usage = os.wait4(pid, 0)
        end_id = os.read(read_end, 64)
        os.close(read_end)
        report = {
            "code": os.waitstatus_to_exitcode(status),
            "cpu_s": usage.ru_utime + usage.ru_stime,
            "maxrss_kb": usage.ru_maxrss,
        }
        if end_id:
            self.channel.send({"id": int(end_id), "v": self.encoder().encode(report)})
        else:
            self.channel.send({"died": report})
            self.skip_to_fork()

    def skip_to_fork(self) -> None:
        """Drop what was meant for a fork that died: done here it would spoil the loaded state."""
        while True:
            request, _ = self.channel.recv()
            if request.get("op") == "fork":
                return self.fork(request)

    def end(self, request: dict[str, Any]) -> None:
        """In a fork: hand the id of this request to the parent, which replies once we are gone."""
        if self.fork_end is None:
            return self.refuse(request, RuntimeError("there is no fork to end"))
        flush_streams()
        os.write(self.fork_end, str(request["id"]).encode())
        os._exit(0)

    def refuse(self, request: dict[str, Any], error: Exception) -> None:
        self.channel.send({"id": request["id"], "exc": describe(error)})

    # ---- loop
    def serve(self, request: dict[str, Any], buffers: list[bytearray]) -> None:
        try:
            decoder = Decoder(buffers, self.special)
            value = getattr(self, "op_" + request["op"])(request, decoder)
            encoder = self.encoder()
            message = {"id": request["id"], "v": encoder.encode(value)}
            if request["op"] in _OPS_WITH_GRAPH:
                self.keep_graph(message, encoder.tensors, decoder.tensors)
            flush_streams()
            self.channel.send(message, encoder.buffers)
        except PeerGone:
            raise
        except BaseException as error:
            fault = describe(error)
            flush_streams()
            self.channel.send({"id": request["id"], "exc": fault})

    def keep_graph(self, message: dict[str, Any], encoded: list[Any], decoded: list[Any]) -> None:
        outputs = [tensor for tensor in encoded if tensor.requires_grad]
        leaves = [tensor for tensor in decoded if tensor.requires_grad]
        known = {id(leaf) for leaf in leaves}
        if any(tensor.grad_fn is not None or id(tensor) in known for tensor in outputs):
            message["g"] = next(self.ids)
            self.graphs[message["g"]] = (outputs, leaves)

    def run(self) -> None:
        while True:
            request, buffers = self.channel.recv()
            if request["op"] == "fork":
                self.fork(request)
            elif request["op"] == "end":
                self.end(request)
            else:
                self.serve(request, buffers)


def flush_streams() -> None:
    for stream in (sys.stdout, sys.stderr):
        try:
            stream.flush()
        except BaseException:
            pass  # the student may have put anything there


def main(sock: socket.socket, can_fork: bool, buffer_bytes: int) -> NoReturn:
    """Serve until the checker closes the connection."""
    sys.argv = ["notebook"]
    try:
        Server(sock, can_fork, buffer_bytes).run()
    except (PeerGone, WireError):
        pass
    os._exit(0)
