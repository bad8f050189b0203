# SPDX-License-Identifier: MIT
"""The texts that new chapters start from: `<<word>>` in a template is replaced."""

import re
from pathlib import Path

__all__ = ["read", "render"]

FOLDER = Path(__file__).parents[1] / "templates" / "chapter"
WORD = re.compile(r"<<(\w+)>>")


def read(name: str) -> str:
    """Return a template as it is."""
    return (FOLDER / f"{name}.txt").read_text("utf-8")


def render(template: str, /, **words: str) -> str:
    """Return a template with its words filled in."""
    return WORD.sub(lambda found: words[found[1]], read(template))
