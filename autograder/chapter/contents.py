# SPDX-License-Identifier: MIT
"""Put a chapter into the book's table of contents, as text: its comments and order stay."""

import re

from autograder.chapter.places import NAME, ChapterError

__all__ = ["PARTS", "with_chapter"]

#: The parts of the book: caption, and the number of its last chapter.
PARTS = (
    ("Foundations", 2),
    ("Human feedback", 5),
    ("Verifiable rewards", 8),
    ("Agents", 99),
)
CAPTION = re.compile(r"  - caption: (.+)")
FILE = re.compile(r"      - file: (\S+)")


def with_chapter(toc: str, name: str) -> str:
    """Return the table of contents with the chapter in its part, in order of the names.

    Raises: ChapterError if the chapter is in it, or its form is not the expected one.
    """
    lines = toc.splitlines()
    listed = [found[1] for line in lines if (found := FILE.fullmatch(line))]
    if name in listed:
        raise ChapterError(f"_toc.yml lists {name} already.")
    caption = next(caption for caption, last in PARTS if int(name[:2]) <= last)
    captions = [found[1] for line in lines if (found := CAPTION.fullmatch(line))]
    if caption not in captions:
        # The part comes after the last chapter of a part before it.
        before = [other for other in listed if NAME.fullmatch(other) and other < name]
        anchor = f"      - file: {before[-1]}" if before else lines[-1]
        if not before:
            raise ChapterError("_toc.yml lists no chapter before this one. Add its part by hand.")
        at = _end_of_part(lines, lines.index(anchor))
        lines[at:at] = [f"  - caption: {caption}", "    chapters:"]
    start = lines.index(f"  - caption: {caption}")
    end = _end_of_part(lines, start)
    inside = [
        number
        for number in range(start, end)
        if (found := FILE.fullmatch(lines[number])) and found[1] < name
    ]
    at = inside[-1] + 1 if inside else start + 2
    lines.insert(at, f"      - file: {name}")
    return "\n".join(lines) + "\n"


def _end_of_part(lines: list[str], inside: int) -> int:
    """Return the number of the line after the part that holds the line `inside`."""
    later = (n for n in range(inside + 1, len(lines)) if CAPTION.fullmatch(lines[n]))
    return next(later, len(lines))
