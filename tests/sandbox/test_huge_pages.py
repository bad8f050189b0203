# SPDX-License-Identifier: MIT
"""Which memory is merged into huge pages, and that merging changes nothing but the pages."""

import subprocess
import sys

from policylab.sandbox.huge_pages import private_ranges

MAPS = """\
55d0c0000000-55d0c0900000 rw-p 00000000 00:00 0                          [heap]
7f0000100000-7f0000500000 rw-p 00000000 00:00 0
7f0000500000-7f0000600000 rw-p 00000000 00:00 0
7f1000000000-7f1000800000 r--p 00000000 fe:00 12                         /usr/lib/libtorch.so
7f2000000000-7f2000800000 rw-p 00000000 fe:00 12                         /usr/lib/libtorch.so
7f3000000000-7f3000800000 rw-s 00000000 00:01 12                         /dev/zero
7ffc00000000-7ffc00800000 rw-p 00000000 00:00 0                          [stack]
"""


def test_only_whole_huge_pages_of_private_anonymous_memory_are_named():
    assert list(private_ranges(MAPS)) == [
        (0x55D0C0000000, 0x55D0C0800000),  # 9 MiB hold four pages of 2 MiB
        (0x7F0000200000, 0x7F0000400000),  # aligned upwards and downwards
    ]


def test_memory_holds_what_it_held_and_forks_see_it():
    code = (
        "import os, hashlib\n"
        "from policylab.sandbox.huge_pages import collapse_heap\n"
        "data = [os.urandom(1 << 20) for _ in range(32)]\n"
        "before = hashlib.sha256(b''.join(data)).digest()\n"
        "collapse_heap()\n"
        "pid = os.fork()\n"
        "same = hashlib.sha256(b''.join(data)).digest() == before\n"
        "if pid == 0: os._exit(not same)\n"
        "assert same and os.waitpid(pid, 0)[1] == 0\n"
    )
    subprocess.run([sys.executable, "-c", code], check=True)
