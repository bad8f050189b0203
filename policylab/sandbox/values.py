# SPDX-License-Identifier: MIT
"""What `encoder` and `decoder` share: limits, the error, records.

Crosses: None, bool, int, float, complex, str, bytes, list, tuple, dict, set, tensors, arrays, NumPy
scalars and `torch.Generator` (its state). Subclasses are reduced to the plain type; a dataclass or
NamedTuple becomes a read-only `Record`. Whatever else there is becomes a handle or a callback, by
the functions given to `Encoder` and `Decoder`, or is refused.

Torch and NumPy are optional: their values are known only where the process has imported them.
"""

import sys
import types
from typing import Any

MAX_DEPTH = 40
MAX_NODES = 500_000
# Integers can be chosen to collide, which makes building a dict quadratic (8,000 keys took 1.3 s).
# Hashes of strings are seeded per process, so only the other keys count, by the squares of their
# numbers: one dict of 3,000, or many small ones.
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
