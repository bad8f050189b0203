# SPDX-License-Identifier: MIT
"""Values survive the wire; nodes made by a hostile peer are refused, whatever they are."""

import collections
import dataclasses
import enum
import math
import typing

import hypothesis.strategies as st
import msgspec
import numpy as np
import pytest
import torch
from hypothesis import given, settings

from policylab.sandbox import Decoder, Encoder, Record, WireError
from policylab.sandbox.values import MAX_DEPTH, MAX_NODES, MAX_NON_STRING_KEYS

torch.set_num_threads(1)


def cross(value):
    """Encode, pack, unpack and decode."""
    encoder = Encoder()
    packed = msgspec.msgpack.encode(encoder.encode(value))
    buffers = [bytearray(raw) for raw in encoder.buffers]
    return Decoder(buffers).decode(msgspec.msgpack.decode(packed))


def decode(node, *buffers):
    return Decoder([bytearray(raw) for raw in buffers]).decode(node)


scalars = (
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats(allow_nan=False)
    | st.complex_numbers(allow_nan=False)
    | st.text(st.characters(exclude_categories=()))
    | st.binary()
)
keys = st.text() | st.integers() | st.booleans() | st.tuples(st.integers(), st.text())
values = st.recursive(
    scalars,
    lambda inner: st.lists(inner) | st.tuples(inner, inner) | st.dictionaries(keys, inner),
    max_leaves=20,
)


@given(values)
@settings(max_examples=80, deadline=None)
def test_plain_values_survive(value):
    assert repr(cross(value)) == repr(value)  # repr also tells 1 from True and 0.0 from -0.0


@given(st.sets(keys))
@settings(deadline=None)
def test_sets_survive(value):
    assert cross(value) == value


@pytest.mark.parametrize(
    "value", [math.nan, math.inf, -0.0, 2**63, -(2**63) - 1, 10**400, "\ud800"]
)
def test_odd_scalars_survive(value):
    assert repr(cross(value)) == repr(value)


@pytest.mark.parametrize("dtype", "float16 bfloat16 float32 float64 int8 uint8 int64 bool".split())
@pytest.mark.parametrize("shape", [(), (3,), (2, 0, 4), (2, 3)])
def test_tensors_survive(dtype, shape):
    value = torch.arange(math.prod(shape)).reshape(shape).to(getattr(torch, dtype))
    result = cross(value)
    assert type(result) is torch.Tensor and result.shape == value.shape
    torch.testing.assert_close(result, value, rtol=0, atol=0)


def test_tensor_views_subclasses_and_gradients_cross_as_plain_tensors():
    leaf = torch.nn.Parameter(torch.arange(6.0).reshape(2, 3))
    for value in (leaf, leaf.t(), leaf.detach()[:, ::2], torch.complex(leaf, leaf).detach().conj()):
        result = cross(value)
        assert type(result) is torch.Tensor and result.requires_grad == value.requires_grad
        torch.testing.assert_close(result.detach(), value.detach())


def test_tensors_and_arrays_of_any_stride_survive():
    base = torch.arange(24.0, dtype=torch.float64).reshape(4, 6)
    views = [base[:1, :1].expand(1, 1), base[0, 0].expand(1), base[0, :1].expand(3, 1), base[1:1]]
    views += [base[::3, ::5], base[:, 0], base.T, base[2, 2:3], base[0, 0].expand(2, 3), base[::7]]
    views += [base.as_strided((1, 1), (0, 0)), base.as_strided((1,), (5,))]
    for value in views:
        assert torch.equal(cross(value), value)
        np.testing.assert_array_equal(cross(value.numpy()), value.numpy())


def test_a_received_tensor_can_be_written_to():
    result = cross(torch.zeros(3))
    result += 1
    assert result.tolist() == [1, 1, 1]


@pytest.mark.parametrize("dtype", "float32 float64 int8 uint16 uint64 bool complex128 >f4".split())
def test_arrays_survive(dtype):
    value = np.arange(6).reshape(2, 3).astype(dtype)
    np.testing.assert_array_equal(cross(value.T), value.T)
    assert cross(np.zeros((), dtype)).shape == ()


def test_numpy_scalars_keep_their_type():
    for value in (np.float32(1.5), np.int64(-3), np.bool_(True)):
        assert type(cross(value)) is type(value) and cross(value) == value


def test_a_generator_crosses_as_a_copy_of_its_state():
    generator = torch.Generator().manual_seed(7)
    copy = cross(generator)
    assert torch.equal(torch.rand(4, generator=copy), torch.rand(4, generator=generator))


class Colour(enum.IntEnum):
    RED = 1


class Text(str):
    def __str__(self):
        return "something else"


class Number(float):
    def __float__(self):
        return 0.0


def test_subclasses_are_reduced_past_their_own_methods():
    ordered = collections.OrderedDict(a=1)
    for value, plain in (
        (Colour.RED, 1),
        (Text("x"), "x"),
        (Number(2.5), 2.5),
        (ordered, {"a": 1}),
    ):
        result = cross(value)
        assert type(result) is type(plain) and result == plain


@dataclasses.dataclass
class Point:
    x: int
    y: list


class Pair(typing.NamedTuple):
    left: int
    right: str


def test_dataclasses_and_named_tuples_become_read_only_records():
    for value, fields in (
        (Point(1, [2]), {"x": 1, "y": [2]}),
        (Pair(1, "b"), {"left": 1, "right": "b"}),
    ):
        record = cross(value)
        assert type(record) is Record and record._class_name == type(value).__name__
        assert {name: getattr(record, name) for name in fields} == fields
        with pytest.raises(AttributeError):
            record.x = 2


def test_objects_and_functions_are_refused_or_given_away():
    with pytest.raises(WireError, match="object"):
        Encoder().encode([object()])
    encoder = Encoder(
        on_other=lambda value: {"$": "h", "id": 1}, on_callable=lambda value: {"$": "cb"}
    )
    assert encoder.encode([object(), len]) == [{"$": "h", "id": 1}, {"$": "cb"}]
    special = {"h": lambda node: ("handle", node["id"])}
    assert Decoder([], special).decode({"$": "h", "id": 3}) == ("handle", 3)


def test_encoding_refuses_what_is_too_deep_or_too_large():
    deep = []
    for _ in range(MAX_DEPTH + 1):
        deep = [deep]
    loop: list = []
    loop.append(loop)
    for value in (deep, loop, 1 << 100_000, torch.zeros(2).to_sparse()):
        with pytest.raises(WireError):
            Encoder().encode(value)


def nested(levels):
    node = None
    for _ in range(levels):
        node = [node]
    return node


tensor = {"$": "T", "d": "float32", "s": [2], "b": 0, "g": False}
array = {"$": "N", "d": "float32", "s": [2], "b": 0}
HOSTILE = {
    "deep": nested(MAX_DEPTH + 1),
    "many nodes": [0] * MAX_NODES,
    "no tag": {"v": []},
    "unknown tag": {"$": "pickle", "v": b""},
    "tag of another type": {"$": ["t"], "v": []},
    "handle where none is known": {"$": "h", "id": 1},
    "tuple without list": {"$": "t", "v": "ab"},
    "dict of odd pairs": {"$": "d", "v": [[1]]},
    "dict with unhashable key": {"$": "d", "v": [[[], 1]]},
    "set with unhashable member": {"$": "s", "v": [[]]},
    "dict of many numbers": {"$": "d", "v": [[n, n] for n in range(MAX_NON_STRING_KEYS + 1)]},
    "set of many numbers": {"$": "s", "v": list(range(MAX_NON_STRING_KEYS + 1))},
    "many dicts of numbers": [{"$": "d", "v": [[n, n] for n in range(900)]}] * 12,
    "complex of text": {"$": "c", "v": ["1", "2"]},
    "complex of three": {"$": "c", "v": [1.0, 2.0, 3.0]},
    "integer of letters": {"$": "i", "v": "zz"},
    "integer too long": {"$": "i", "v": "f" * 100_000},
    "record without fields": {"$": "D", "c": "X", "v": []},
    "record with numbers for fields": {"$": "D", "c": "X", "v": {1: 2}},
    "surrogates that are text": {"$": "u", "v": "x"},
    "surrogates that are no UTF-8": {"$": "u", "v": b"\xff"},
    "scalar of unknown dtype": {"$": "n", "d": "object", "v": 1},
    "scalar of text": {"$": "n", "d": "float32", "v": "1"},
    "scalar out of range": {"$": "n", "d": "int8", "v": 1 << 40},
    "extension type": msgspec.msgpack.Ext(1, b"x"),
} | {
    f"{kind} with {name}": node | change
    for kind, node in (("tensor", tensor), ("array", array))
    for name, change in {
        "unknown dtype": {"d": "object"},
        "dtype of another type": {"d": ["float32"]},
        "wrong number of bytes": {"s": [3]},
        "negative size": {"s": [-2, -1]},
        "huge size": {"s": [1 << 62, 1 << 62]},
        "size that is no number": {"s": [2.0]},
        "size that is a bool": {"s": [True, 2]},
        "many dimensions": {"s": [1] * 40 + [2]},
        "shape that is no list": {"s": 2},
        "missing buffer": {"b": 1},
        "negative buffer": {"b": -1},
        "buffer that is a bool": {"b": False},
    }.items()
}


@pytest.mark.parametrize("name", HOSTILE)
def test_hostile_nodes_are_refused(name):
    with pytest.raises(WireError):
        decode(HOSTILE[name], bytes(8))


@given(st.recursive(scalars, lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner)))
@settings(max_examples=80, deadline=None)
def test_random_nodes_give_a_value_or_a_wire_error(node):
    try:
        decode(node)
    except WireError:
        pass


@pytest.mark.parametrize("node", [tensor, array])
def test_a_buffer_holds_one_value_only(node):
    with pytest.raises(WireError, match="used twice"):
        decode([node, node], bytes(8))


def test_many_small_dicts_with_numbers_for_keys_survive():
    value = [{n: n for n in range(10)} for _ in range(1000)]
    assert cross(value) == value


def test_a_hostile_node_in_a_special_function_is_a_wire_error():
    with pytest.raises(WireError):
        Decoder([], {"h": lambda node: node["id"]}).decode({"$": "h"})


def test_bytes_of_a_bool_tensor_are_made_true_or_false():
    node = {"$": "T", "d": "bool", "s": [3], "b": 0, "g": False}
    assert decode(node, b"\x00\x01\x07").view(torch.uint8).tolist() == [0, 1, 1]


def test_a_generator_state_of_the_wrong_size_or_content_is_refused():
    for raw in (b"", bytes(16), b"\xff" * torch.Generator().get_state().numel()):
        with pytest.raises(WireError):
            decode({"$": "G", "d": "uint8", "s": [len(raw)], "b": 0}, raw)


def test_a_gradient_flag_on_integers_is_ignored():
    node = {"$": "T", "d": "int64", "s": [1], "b": 0, "g": True}
    assert not decode(node, bytes(8)).requires_grad
