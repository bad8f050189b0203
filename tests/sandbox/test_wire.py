# SPDX-License-Identifier: MIT
"""Frames: limits hold before anything is allocated, and no peer keeps us past the deadline."""

import contextlib
import os
import socket
import struct
import threading
import time

import hypothesis.strategies as st
import msgspec
import pytest
from hypothesis import given, settings

from policylab.sandbox import Channel, OutputFlood, OutputPump, PeerGone, Timeout, WireError, clean
from policylab.sandbox.structure import check_structure


@pytest.fixture
def pair():
    ours, theirs = socket.socketpair()
    with ours, theirs:
        yield Channel(ours, max_buffer_bytes=1 << 20), theirs


def soon(seconds=5.0):
    return time.monotonic() + seconds


def head(meta, *lengths):
    return struct.pack(f"<II{len(lengths)}Q", meta, len(lengths), *lengths)


def test_a_frame_arrives_as_it_was_sent(pair):
    ours, theirs = pair
    peer = Channel(theirs)
    ours.send({"id": 1, "v": [1, "x"]}, [b"abc", bytearray(b"")], soon())
    assert peer.recv(soon()) == ({"id": 1, "v": [1, "x"]}, [b"abc", b""])
    peer.send({"id": 2})
    assert ours.recv(soon()) == ({"id": 2}, [])


@pytest.mark.parametrize(
    "frame",
    [
        head(0xFFFFFFFF),
        head(9 << 20),
        struct.pack("<II", 1, 0xFFFFFFFF),
        head(1, 1 << 60),
        head(1, 1 << 20, 1),
        head(1) + b"\xc1",  # a byte that msgpack never uses
        head(5) + b"\xc7\x02\x01ab",
        head(2) + b"\xc0\xc0",
        head(0),
        head(100_000) + b"\x91" * 100_000,
        head(1 << 20) + b"\xdd\x00\x0f\xff\xfb" + b"\x00" * ((1 << 20) - 5),
    ],
    ids=lambda frame: frame[:12].hex(),
)
def test_hostile_frames_are_refused_at_once(pair, frame):
    ours, theirs = pair
    sender = threading.Thread(target=theirs.sendall, args=(frame,))
    sender.start()
    started = time.monotonic()
    with contextlib.suppress(WireError):
        message, _ = ours.recv(soon(5.0))
        assert type(message) is msgspec.msgpack.Ext  # what is no message Worker.recv refuses
    assert time.monotonic() - started < 4.0
    ours.sock.close()
    sender.join()


def test_a_peer_that_is_silent_or_trickles_meets_the_deadline(pair):
    ours, theirs = pair
    with pytest.raises(Timeout):
        ours.recv(soon(0.05))
    stop = threading.Event()

    def trickle():
        theirs.sendall(head(1 << 20))
        while not stop.wait(0.005):
            theirs.send(b"\x90")

    thread = threading.Thread(target=trickle)
    thread.start()
    started = time.monotonic()
    with pytest.raises(Timeout):
        ours.recv(soon(0.2))
    assert time.monotonic() - started < 1.0
    stop.set()
    thread.join()


def test_a_peer_that_does_not_read_meets_the_deadline(pair):
    ours, _ = pair
    with pytest.raises(Timeout):
        for _ in range(100):
            ours.send({"id": 1}, [bytes(1 << 20)], soon(0.1))


def test_a_peer_that_closes_is_gone(pair):
    ours, theirs = pair
    theirs.sendall(head(10) + b"half")
    theirs.close()
    with pytest.raises(PeerGone):
        ours.recv(soon())
    with pytest.raises(PeerGone):
        ours.send({"id": 1}, [bytes(1 << 20)], soon())


def test_our_own_frames_keep_the_limits_too(pair):
    ours, theirs = pair
    for message, buffers in (
        ("x" * (9 << 20), []),
        (1, [b""] * 5000),
        (1, [bytes(1 << 20), b"1"]),
    ):
        with pytest.raises(WireError):
            ours.send(message, buffers, soon())
    theirs.setblocking(False)
    with pytest.raises(BlockingIOError):  # nothing was sent
        theirs.recv(1)


@pytest.fixture
def pumped():
    read_end, write_end = os.pipe()
    pump = OutputPump(read_end, keep=10, flood=1000)
    yield pump, write_end
    pump.close()
    os.close(write_end)


def test_a_pump_keeps_the_head_of_the_output(pumped):
    pump, write_end = pumped
    os.write(write_end, b"0123456789abc")
    pump.drain()
    assert pump.text() == "0123456789\n[output truncated]" and pump.total == 13


def test_a_flood_of_output_ends_a_wait(pumped, pair):
    pump, write_end = pumped
    os.write(write_end, b"x" * 2000)
    with pytest.raises(OutputFlood):
        pair[0].recv(soon(), pump)


def test_printed_text_cannot_act_on_a_terminal_or_reorder_lines():
    assert clean("a\x1b[31mred\x1b]0;title\x07\u202eabc\r\x00é\n\t") == (
        "a\ufffdred\ufffd0;title\ufffd\ufffdabc\ufffd\ufffdé\n\t"
    )


packable = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(1 << 63), (1 << 64) - 1)
    | st.floats()
    | st.text()
    | st.binary(),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
)


@given(packable)
@settings(max_examples=80, deadline=None)
def test_what_msgpack_makes_of_plain_values_is_sound(value):
    packed = msgspec.msgpack.encode(value)
    check_structure(packed)
    for damaged in (packed[:-1], packed + b"\x00"):
        with pytest.raises(WireError):
            check_structure(damaged)


@given(st.binary(max_size=200))
@settings(max_examples=150, deadline=None)
def test_what_is_sound_decodes(data):
    try:
        check_structure(data)
    except WireError:
        return
    with contextlib.suppress(msgspec.DecodeError):  # text that is no UTF-8
        msgspec.msgpack.decode(data)


@pytest.mark.parametrize("value", [b"\x00" * 100, "é" * 300, [1] * 70_000, {"a" * 300: [[2.5]]}])
def test_long_values_are_sound(value):
    check_structure(msgspec.msgpack.encode(value))


@pytest.mark.parametrize("key", [1, 1 << 40, 2.5, b"x", None, [1]], ids=repr)
def test_keys_that_could_be_made_to_collide_are_refused(key):
    packed = b"\x91\x81" + msgspec.msgpack.encode(key) + b"\x00"
    with pytest.raises(WireError, match="key"):
        check_structure(packed)


def test_a_large_frame_with_other_keys_is_refused_before_it_is_decoded(pair):
    ours, theirs = pair
    pairs = b"".join(b"\xce" + struct.pack(">I", n) + b"\x00" for n in range(4000))
    meta = b"\xde" + struct.pack(">H", 4000) + pairs
    theirs.sendall(head(len(meta)) + meta)
    with pytest.raises(WireError, match="key"):
        ours.recv(soon())
