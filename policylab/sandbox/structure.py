# SPDX-License-Identifier: MIT
"""Look over untrusted msgpack before it is decoded: nodes, depth, and keys that are strings.

Decoding builds dicts at once. Keys that are numbers or lists can be chosen to collide, which makes
that quadratic, in C and past any deadline; hashes of strings are seeded, so they cannot.
"""

from policylab.sandbox.values import MAX_DEPTH, MAX_NODES, WireError

_MAX_LEVELS = 3 * MAX_DEPTH  # a level of a value takes up to three of msgpack
_MAX_MSGPACK_NODES = 2 * MAX_NODES
_SKIP, _LIST, _MAP, _REFUSE = range(4)
_Entry = tuple[int, int, bool, int, int]


def _entry(first: int) -> _Entry:
    """What a node's first byte says: bytes to skip; items that follow, negative for a map (keys and
    values); whether it is text; bytes of a length that follows, and what that length means."""
    if first < 0x80 or first >= 0xE0 or first in (0xC0, 0xC2, 0xC3):
        return 0, 0, False, 0, _SKIP
    if first < 0x90:
        return 0, -2 * (first & 0x0F), False, 0, _SKIP
    if first < 0xA0:
        return 0, first & 0x0F, False, 0, _SKIP
    if first < 0xC0:
        return first & 0x1F, 0, True, 0, _SKIP
    if first in (0xC4, 0xC5, 0xC6):  # bytes
        return 0, 0, False, 1 << first - 0xC4, _SKIP
    if first in (0xCA, 0xCB):  # floats
        return 4 << first - 0xCA, 0, False, 0, _SKIP
    if 0xCC <= first <= 0xD3:  # integers
        return 1 << (first - 0xCC) % 4, 0, False, 0, _SKIP
    if first in (0xD9, 0xDA, 0xDB):  # text
        return 0, 0, True, 1 << first - 0xD9, _SKIP
    if first in (0xDC, 0xDD):
        return 0, 0, False, 2 << first - 0xDC, _LIST
    if first in (0xDE, 0xDF):
        return 0, 0, False, 2 << first - 0xDE, _MAP
    return 0, 0, False, 1, _REFUSE  # extension types, and a byte that msgpack never uses


_ENTRIES = [_entry(first) for first in range(256)]


def check_structure(data: bytes | bytearray) -> None:
    """Raise WireError unless this is one msgpack value that is safe to decode."""
    try:
        _check(data)
    except IndexError:
        raise WireError("a frame that is cut short") from None


def _check(data: bytes | bytearray) -> None:
    position = nodes = 0
    left = 1  # items still to come at this level; negative in a map, even before each key
    outer: list[int] = []
    while True:
        while left == 0:
            if not outer:
                if position != len(data):
                    raise WireError("a frame of the wrong length")
                return
            left = outer.pop()
        nodes += 1
        if nodes > _MAX_MSGPACK_NODES or len(outer) > _MAX_LEVELS:
            raise WireError("a frame too deep or too large")
        skip, items, is_text, size, meaning = _ENTRIES[data[position]]
        if left < 0:
            if not left & 1 and not is_text:
                raise WireError("a map whose key is not a string")
            left += 1
        else:
            left -= 1
        position += 1 + skip
        if size:
            length = int.from_bytes(data[position : position + size], "big")
            position += size
            if meaning == _SKIP:
                position += length
            elif meaning == _REFUSE:
                raise WireError("a frame with an extension type")
            else:
                items = length if meaning == _LIST else -2 * length
        if items:
            outer.append(left)
            left = items
