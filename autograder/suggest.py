# SPDX-License-Identifier: MIT
"""The end of a message about an unknown name: what was probably meant."""

import difflib
from collections.abc import Iterable


def did_you_mean(name: str, known: Iterable[str]) -> str:
    """Return ". Did you mean 'x'?", or the known names where none is near."""
    known = sorted(known)
    near = difflib.get_close_matches(name, known, n=1)
    if near:
        return f". Did you mean {near[0]!r}?"
    return f". Known: {', '.join(known)}." if known else ". None is known."
