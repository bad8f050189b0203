# SPDX-License-Identifier: MIT
"""Build plain values from untrusted nodes and buffers.

Safe against a hostile peer: no class is built by name, nothing is unpickled, and each size, shape
and dtype is checked before it is used.
"""

import itertools
import math
from collections.abc import Callable, Iterator
from typing import Any

from policylab.sandbox.values import (
    ARRAY_DTYPES,
    MAX_DEPTH,
    MAX_DIMENSION,
    MAX_DIMENSIONS,
    MAX_INT_HEX_DIGITS,
    MAX_NAME,
    MAX_NODES,
    MAX_NON_STRING_KEYS,
    TENSOR_DTYPES,
    Node,
    Record,
    WireError,
    loaded,
)


def require(condition: bool, problem: str) -> None:
    """Raise WireError unless the peer kept this rule."""
    if not condition:
        raise WireError(problem)


class Decoder:
    """Build plain values from untrusted nodes and buffers.

    Args:
        buffers: the frame's raw buffers; tensors and arrays share their memory.
        special: functions that make handles or callbacks of a node, by tag ("h", "cb").
        grad_tensors: if given, its items replace the tensors that require a gradient, in order
            (the second pass of the autograd bridge).
    """

    def __init__(
        self,
        buffers: list[bytearray],
        special: dict[str, Callable[[dict[str, Node]], Any]] | None = None,
        grad_tensors: Iterator[Any] | None = None,
    ) -> None:
        self.buffers = buffers
        self.special = special or {}
        self.grad_tensors = grad_tensors
        self.tensors: list[Any] = []
        self.torch, self.numpy = loaded("torch"), loaded("numpy")
        self._count = itertools.count(1)
        self._used: set[int] = set()  # buffers; one used for many tensors would outgrow its frame
        self._collisions_left = MAX_NON_STRING_KEYS**2

    def decode(self, node: Node) -> Any:
        """Return the value of a node. Raises: WireError whatever the hostile node does."""
        try:
            return self._value(node, 0)
        except WireError:
            raise
        except Exception as error:
            raise WireError(f"a malformed value ({type(error).__name__})") from None

    def _value(self, node: Node, depth: int) -> Any:
        require(
            depth <= MAX_DEPTH and next(self._count) <= MAX_NODES, "a value too deep or too large"
        )
        kind = type(node)
        if node is None or kind in (bool, int, float, str, bytes):
            return node
        if kind is list:
            return [self._value(item, depth + 1) for item in node]
        require(kind is dict, "a node of an unknown type")
        tag = node.get("$")
        require(type(tag) is str, "a node without a tag")
        if tag in self.special:
            return self.special[tag](node)
        decode = _DECODERS.get(tag)
        if decode is None:
            raise WireError("a node with an unknown tag")
        return decode(self, node, depth)

    def _tuple(self, node: dict[str, Node], depth: int) -> tuple[Any, ...]:
        return tuple(self._value(item, depth + 1) for item in _list(node))

    def _dict(self, node: dict[str, Node], depth: int) -> dict[Any, Any]:
        pairs = _list(node)
        require(all(type(pair) is list and len(pair) == 2 for pair in pairs), "a malformed dict")
        self._spend(sum(type(key) is not str for key, _ in pairs))
        return {self._value(k, depth + 1): self._value(v, depth + 1) for k, v in pairs}

    def _set(self, node: dict[str, Node], depth: int) -> set[Any]:
        items = _list(node)
        self._spend(sum(type(item) is not str for item in items))
        return {self._value(item, depth + 1) for item in items}

    def _spend(self, odd_keys: int) -> None:
        self._collisions_left -= odd_keys**2
        require(self._collisions_left >= 0, "too many keys that are not strings")

    def _complex(self, node: dict[str, Node], depth: int) -> complex:
        real, imaginary = _list(node)
        require(type(real) is float and type(imaginary) is float, "a malformed complex number")
        return complex(real, imaginary)

    def _int(self, node: dict[str, Node], depth: int) -> int:
        digits: Any = node.get("v")
        require(type(digits) is str and len(digits) <= MAX_INT_HEX_DIGITS, "a malformed integer")
        return int(digits, 16)

    def _surrogates(self, node: dict[str, Node], depth: int) -> str:
        raw: Any = node.get("v")
        require(type(raw) is bytes, "a malformed string")
        return raw.decode("utf8", "surrogatepass")

    def _record(self, node: dict[str, Node], depth: int) -> Record:
        name: Any = node.get("c")
        fields: Any = node.get("v")
        require(type(name) is str and type(fields) is dict, "a malformed record")
        require(all(type(field) is str for field in fields), "a malformed record")
        values = {field[:MAX_NAME]: self._value(v, depth + 1) for field, v in fields.items()}
        return Record(name[:MAX_NAME], values)

    def _raw(self, node: dict[str, Node], allowed: frozenset[str]) -> tuple[str, list[int], Any]:
        dtype: Any = node.get("d")
        shape: Any = node.get("s")
        index: Any = node.get("b")
        require(type(dtype) is str and dtype in allowed, "a dtype that is not allowed")
        require(type(shape) is list and len(shape) <= MAX_DIMENSIONS, "a malformed shape")
        sized = all(type(n) is int and 0 <= n < MAX_DIMENSION for n in shape)
        require(sized, "a malformed shape")
        require(type(index) is int and 0 <= index < len(self.buffers), "a buffer that is not there")
        require(index not in self._used, "a buffer that is used twice")
        self._used.add(index)
        return dtype, shape, self.buffers[index]

    def _scalar(self, node: dict[str, Node], depth: int) -> Any:
        dtype, value = node.get("d"), node.get("v")
        require(self.numpy is not None, "a NumPy scalar where NumPy is not imported")
        require(type(dtype) is str and dtype in ARRAY_DTYPES, "a dtype that is not allowed")
        require(type(value) in (bool, int, float), "a malformed scalar")
        return self.numpy.dtype(dtype).type(value)

    def _array(self, node: dict[str, Node], depth: int) -> Any:
        require(self.numpy is not None, "an array where NumPy is not imported")
        name, shape, raw = self._raw(node, ARRAY_DTYPES)
        dtype = self.numpy.dtype(name)
        require(math.prod(shape) * dtype.itemsize == len(raw), "shape and bytes differ")
        if name == "bool":
            return self.numpy.frombuffer(raw, dtype=self.numpy.uint8).reshape(shape) != 0
        return self.numpy.frombuffer(raw, dtype=dtype).reshape(shape)

    def _tensor(self, node: dict[str, Node], depth: int) -> Any:
        torch = self.torch
        require(torch is not None, "a tensor where torch is not imported")
        name, shape, raw = self._raw(node, TENSOR_DTYPES)
        dtype = getattr(torch, name)
        count = math.prod(shape)
        require(count * dtype.itemsize == len(raw), "shape and bytes differ")
        if name == "bool":  # a byte that is neither 0 nor 1 is undefined behaviour in a bool tensor
            tensor = (
                torch.frombuffer(raw, dtype=torch.uint8).ne(0) if count else torch.empty(0).bool()
            )
        else:
            tensor = torch.frombuffer(raw, dtype=dtype) if count else torch.empty(0, dtype=dtype)
        tensor = tensor.reshape(shape)
        if node.get("g") is True and (tensor.is_floating_point() or tensor.is_complex()):
            if self.grad_tensors is not None:
                return next(self.grad_tensors)
            tensor.requires_grad_()
        self.tensors.append(tensor)
        return tensor

    def _generator(self, node: dict[str, Node], depth: int) -> Any:
        require(self.torch is not None, "a generator where torch is not imported")
        _, _, raw = self._raw(node, frozenset({"uint8"}))
        generator = self.torch.Generator()
        require(len(raw) == generator.get_state().numel(), "a malformed generator state")
        generator.set_state(self.torch.frombuffer(raw, dtype=self.torch.uint8).clone())
        return generator


def _list(node: dict[str, Node]) -> list[Node]:
    value = node.get("v")
    if type(value) is not list:
        raise WireError("a node without its list")
    return value


_DECODERS: dict[str, Callable[[Decoder, dict[str, Node], int], Any]] = {
    "t": Decoder._tuple,
    "d": Decoder._dict,
    "s": Decoder._set,
    "c": Decoder._complex,
    "i": Decoder._int,
    "u": Decoder._surrogates,
    "D": Decoder._record,
    "n": Decoder._scalar,
    "N": Decoder._array,
    "T": Decoder._tensor,
    "G": Decoder._generator,
}
