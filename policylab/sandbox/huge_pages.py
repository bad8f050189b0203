# SPDX-License-Identifier: MIT
"""Huge pages for what a process has on its heap, so that its forks are cheap.

A fork copies a page table's entry for each 4 KiB of private memory, and its end drops them again:
with torch imported, 180 MB are 45,000 entries, and 90 in pages of 2 MiB. From Linux 6.1 on pages
can be merged on demand; elsewhere nothing happens, and forks stay as they are.
"""

import contextlib
import ctypes
from collections.abc import Iterator

_MADV_HUGEPAGE, _MADV_COLLAPSE = 14, 25
_HUGE = 2 << 20


def collapse_heap() -> None:
    """Merge the pages of private anonymous memory. Call it after all imports, before forking."""
    libc = ctypes.CDLL(None)
    with contextlib.suppress(OSError), open("/proc/self/maps") as file:
        for start, end in private_ranges(file.read()):
            libc.madvise(ctypes.c_void_p(start), ctypes.c_size_t(end - start), _MADV_HUGEPAGE)
            for page in range(start, end, _HUGE):  # one by one: one that cannot is left as it is
                libc.madvise(ctypes.c_void_p(page), ctypes.c_size_t(_HUGE), _MADV_COLLAPSE)


def private_ranges(maps: str) -> Iterator[tuple[int, int]]:
    """Yield start and end of the 2 MiB-aligned parts of writable anonymous mappings.

    Args:
        maps: the text of /proc/PID/maps.
    """
    for line in maps.splitlines():
        fields = line.split()
        if fields[1] == "rw-p" and (len(fields) == 5 or fields[5] == "[heap]"):
            low, high = (int(number, 16) for number in fields[0].split("-"))
            start, end = -(-low // _HUGE) * _HUGE, high // _HUGE * _HUGE
            if start < end:
                yield start, end
