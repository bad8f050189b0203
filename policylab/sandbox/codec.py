# SPDX-License-Identifier: MIT
"""Values as msgpack meta plus raw buffers: what crosses between a checker and a worker.

Covered: None, bool, int, float, complex, str, bytes, list, tuple, dict, set, tensors, arrays, NumPy
scalars and `torch.Generator` (its state). Subclasses are reduced to the plain type; a dataclass or
NamedTuple becomes a read-only `Record`. Whatever else there is becomes a handle or a callback, by
the functions given to `Encoder` and `Decoder`, or is refused.

Safe against a hostile peer: `Decoder` builds no class by name, unpickles nothing, and checks each
size, shape and dtype before it uses it. `Encoder` also runs next to student code, which may have
replaced it, so nothing that protects the trusted side may live there.

Torch and NumPy are optional: their values are known only where the process has imported them.
"""

import itertools
import math
import sys
import types
from collections.abc import Callable, Iterable, Iterator
from typing import Any

MAX_DEPTH = 40
MAX_NODES = 500_000
# Integers can be chosen to collide, which makes building a dict quadratic (8,000 keys took 1.3 s).
# Hashes of strings are seeded per process, so only the other keys are counted.
MAX_NON_STRING_KEYS = 3_000
MAX_INT_HEX_DIGITS = 20_000
MAX_DIMENSIONS = 12
MAX_DIMENSION = 1 << 40
MAX_NAME = 80

TENSOR_DTYPES = frozenset(
    "float16 bfloat16 float32 float64 int8 uint8 int16 int32 int64 bool "
    "complex64 complex128".split()
)
ARRAY_DTYPES = frozenset(
    "float16 float32 float64 int8 int16 int32 int64 uint8 uint16 uint32 uint64 bool "
    "complex64 complex128".split()
)

Node = Any  # what msgpack knows; a dict node carries its tag under "$"


class WireError(Exception):
    """The peer broke the protocol (kill the worker), or a value cannot be sent."""


class Record(types.SimpleNamespace):
    """Read-only picture of a remote dataclass or NamedTuple: its fields and its class's name."""

    def __init__(self, class_name: str, fields: dict[str, Any]) -> None:
        super().__init__()
        self.__dict__.update(fields, _class_name=class_name)

    def __setattr__(self, name: str, value: Any) -> None:
        raise AttributeError(f"a record is read-only; cannot set {name!r}")


def loaded(name: str) -> Any:
    """Return the module if this process has imported it: else no value can be of its types."""
    return sys.modules.get(name)


class Encoder:
    """Turn values into nodes; raw bytes gather in `buffers`, tensors in `tensors`, in order.

    Args:
        on_other: makes the node of a value that has no plain form; None refuses such values.
        on_callable: the same for callables; None treats them like other values.
    """

    def __init__(
        self,
        on_other: Callable[[Any], Node] | None = None,
        on_callable: Callable[[Any], Node] | None = None,
    ) -> None:
        self.buffers: list[Any] = []
        self.tensors: list[Any] = []  # the autograd bridge pairs them with gradients
        self.on_other = on_other
        self.on_callable = on_callable
        self.torch, self.numpy = loaded("torch"), loaded("numpy")

    def encode(self, value: Any, depth: int = 0) -> Node:
        """Return the node of a value. Raises: WireError if it is too deep or cannot be sent."""
        if depth > MAX_DEPTH:
            raise WireError(f"a value nested deeper than {MAX_DEPTH} levels cannot be sent")
        kind = type(value)
        if value is None or kind in (bool, float, bytes):
            return value
        if kind is str:
            return self._text(value)
        if kind is int:
            return value if -(1 << 63) <= value < 1 << 63 else _big_int(value)
        if kind is list:
            return self._items(value, depth)
        if kind is tuple:
            return {"$": "t", "v": self._items(value, depth)}
        if kind is dict:
            return self._dict(value, depth)
        if kind in (set, frozenset):
            return {"$": "s", "v": self._items(value, depth)}
        if kind is complex:
            return {"$": "c", "v": [value.real, value.imag]}
        if (node := self._numeric(value)) is not None:
            return node
        return self._reduced(value, kind, depth)

    def _numeric(self, value: Any) -> Node:
        if self.torch is not None:
            if isinstance(value, self.torch.Tensor):
                return self._tensor(value)
            if isinstance(value, self.torch.Size):
                return {"$": "t", "v": [int(size) for size in value]}
            if isinstance(value, self.torch.Generator):
                state = value.get_state()
                return self._buffer("G", "uint8", state.shape, memoryview(state.numpy()))
        if self.numpy is not None:
            if isinstance(value, self.numpy.ndarray) and value.dtype.name in ARRAY_DTYPES:
                return self._array(value)
            if isinstance(value, (self.numpy.floating, self.numpy.integer, self.numpy.bool_)):
                return {"$": "n", "d": value.dtype.name, "v": value.item()}
        return None

    def _reduced(self, value: Any, kind: type, depth: int) -> Node:
        """Encode a subclass as its plain type, past any method that it overrides."""
        if isinstance(value, float):
            return float.__float__(value)
        if isinstance(value, int):
            return self.encode(int.__int__(value), depth)
        if isinstance(value, str):
            return self._text(str.__str__(value))
        if isinstance(value, dict) and kind.__module__ == "collections":
            return self._dict(value, depth)
        if self.on_callable is not None and callable(value):
            return self.on_callable(value)
        if hasattr(kind, "__dataclass_fields__"):
            return self._record(kind.__name__, kind.__dataclass_fields__, value, depth)
        if isinstance(value, tuple) and hasattr(kind, "_fields"):
            return self._record(kind.__name__, kind._fields, value, depth)
        if self.on_other is not None:
            return self.on_other(value)
        raise WireError(f"a value of type {kind.__name__} cannot be sent")

    @staticmethod
    def _text(value: str) -> Node:
        if value.isascii():
            return value
        try:
            value.encode()
        except UnicodeEncodeError:  # a lone surrogate is no UTF-8
            return {"$": "u", "v": value.encode("utf8", "surrogatepass")}
        return value

    def _items(self, values: Iterable[Any], depth: int) -> list[Node]:
        return [self.encode(item, depth + 1) for item in values]

    def _dict(self, value: dict[Any, Any], depth: int) -> Node:
        pairs = [self._items(pair, depth) for pair in dict.items(value)]
        return {"$": "d", "v": pairs}

    def _record(self, name: str, fields: Iterable[str], value: Any, depth: int) -> Node:
        encoded = {field: self.encode(getattr(value, field), depth + 1) for field in fields}
        return {"$": "D", "c": name, "v": encoded}

    def _tensor(self, value: Any) -> Node:
        plain = value.detach()
        if type(plain) is not self.torch.Tensor:
            plain = plain.as_subclass(self.torch.Tensor)
        dtype = str(plain.dtype).removeprefix("torch.")
        if dtype not in TENSOR_DTYPES or plain.layout is not self.torch.strided:
            raise WireError(f"a tensor of {dtype}, {plain.layout} cannot be sent")
        plain = plain.cpu().resolve_conj().resolve_neg().contiguous()
        self.tensors.append(value)
        raw = plain.reshape(-1).view(self.torch.uint8).numpy().data if plain.numel() else b""
        return {**self._buffer("T", dtype, plain.shape, raw), "g": bool(value.requires_grad)}

    def _array(self, value: Any) -> Node:
        plain = self.numpy.ascontiguousarray(self.numpy.asarray(value))
        if not plain.dtype.isnative:
            plain = plain.astype(plain.dtype.newbyteorder("="))
        raw = plain.reshape(-1).view(self.numpy.uint8).data if plain.nbytes else b""
        return self._buffer("N", plain.dtype.name, value.shape, raw)

    def _buffer(self, tag: str, dtype: str, shape: Iterable[int], raw: Any) -> dict[str, Node]:
        self.buffers.append(raw)
        return {"$": tag, "d": dtype, "s": [int(n) for n in shape], "b": len(self.buffers) - 1}


def _big_int(value: int) -> Node:
    digits = hex(value)
    if len(digits) > MAX_INT_HEX_DIGITS:
        raise WireError(f"an integer of {len(digits)} hexadecimal digits cannot be sent")
    return {"$": "i", "v": digits}


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
        odd = sum(type(key) is not str for key, _ in pairs)
        require(odd <= MAX_NON_STRING_KEYS, "too many keys that are not strings")
        return {self._value(k, depth + 1): self._value(v, depth + 1) for k, v in pairs}

    def _set(self, node: dict[str, Node], depth: int) -> set[Any]:
        items = _list(node)
        odd = sum(type(item) is not str for item in items)
        require(odd <= MAX_NON_STRING_KEYS, "too many members that are not strings")
        return {self._value(item, depth + 1) for item in items}

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
