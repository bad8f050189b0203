# SPDX-License-Identifier: MIT
"""Make text that a student chose safe to print: no terminal escapes, no invisible reordering."""

import re

_UNSAFE = re.compile(
    r"\x1b\[[0-?]*[ -/]*[@-~]|\x1b[@-_]"  # terminal escape sequences
    r"|[\x00-\x08\x0b-\x1f\x7f-\x9f]"  # controls, but for tab and newline
    r"|[\u061c\u200b-\u200f\u2028-\u202e\u2060-\u206f\ufeff\ufff9-\ufffb]"  # bidi and invisible
    r"|[\U000e0000-\U000e007f\ud800-\udfff]"  # tags, lone surrogates
)


def clean(text: object, limit: int) -> str:
    """Return `text` with unsafe characters replaced, cut to `limit`; "" if it is not a str."""
    if type(text) is not str:
        return ""
    return _UNSAFE.sub("\ufffd", text[:limit])


def one_line(text: object, limit: int) -> str:
    """`clean`, on a single line and without space around it."""
    return " ".join(clean(text, limit).split())
