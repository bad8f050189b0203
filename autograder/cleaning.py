# SPDX-License-Identifier: MIT
"""Make text that a student chose safe to print: no terminal escapes, no invisible reordering."""

from policylab.sandbox import output


def clean(text: object, limit: int) -> str:
    """Return `text` with unsafe characters replaced, cut to `limit`; "" if it is not a str."""
    if type(text) is not str:
        return ""
    return output.clean(text[:limit])


def one_line(text: object, limit: int) -> str:
    """`clean`, on a single line and without space around it."""
    return " ".join(clean(text, limit).split())
