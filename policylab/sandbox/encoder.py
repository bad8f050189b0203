# SPDX-License-Identifier: MIT
"""Turn values into msgpack nodes and raw buffers.

The encoder also runs next to student code, which may have replaced it: nothing that protects the
trusted side lives here.
"""

from collections.abc import Callable, Iterable
from typing import Any

from policylab.sandbox.values import (
    ARRAY_DTYPES,
    MAX_DEPTH,
    MAX_INT_HEX_DIGITS,
    TENSOR_DTYPES,
    Node,
    WireError,
    loaded,
)


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
        flat = plain.reshape(-1)
        if flat.stride(0) != 1:  # a single element counts as contiguous with any stride
            flat = flat.clone(memory_format=self.torch.contiguous_format)
        raw = flat.view(self.torch.uint8).numpy().data if flat.numel() else b""
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
