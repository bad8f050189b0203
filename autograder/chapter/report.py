# SPDX-License-Identifier: MIT
"""What `autograder chapter` prints: the files of a new chapter, or a table of what one needs."""

import json
import sys
from collections.abc import Sequence
from pathlib import Path

from rich.table import Table
from rich.text import Text

from autograder.chapter.layout import lay_out, plan
from autograder.chapter.needs import needs_of
from autograder.chapter.places import Mark, chapter_at, existing
from autograder.tables import console, print_table

__all__ = ["check_chapter", "new_chapter"]


def new_chapter(
    root: Path,
    name: str,
    *,
    title: str,
    functions: Sequence[str],
    module: str | None,
    is_dry_run: bool,
    as_json: bool,
) -> int:
    """Lay out a chapter and print its files; return 0."""
    planned = plan(chapter_at(root, name), title, functions, module)
    if not is_dry_run:
        lay_out(planned)
    files = [str(path.relative_to(root)) for path in planned.new]
    if as_json:
        print(json.dumps({"schema": 1, "files": files, "to_write": planned.to_write}, indent=1))
        return 0
    print("\n".join([*files, "_toc.yml"]))
    if planned.to_write:
        names = ", ".join(planned.to_write)
        print(f"\nnot in the library yet: {names}. Write into a module of policylab/:\n")
        print("\n\n".join(planned.to_write.values()))
    if planned.stubs:
        print(
            f"autograder: notebook, checks and answers have a stub's arguments for "
            f"{', '.join(planned.stubs)}. To have the real ones, write the function in policylab/ "
            "first, then lay out.",
            file=sys.stderr,
        )
    if is_dry_run:
        print(f"autograder: {len(files)} files would be written.", file=sys.stderr)
    else:
        done = f"autograder: {len(files)} files written; fill in each line with FILL. What is left:"
        print(f"{done}\n  autograder chapter {name} --check", file=sys.stderr)
    return 0


def check_chapter(root: Path, name: str, *, as_json: bool) -> int:
    """Print what the chapter needs; return 0 if it is all there, else 1."""
    chapter = existing(root, name)
    needs, marks = needs_of(chapter), chapter.marks()
    if as_json:
        rows = [
            {"part": n.part, "needed": n.needed, "there": n.there, "is_met": n.is_met}
            for n in needs
        ]
        print(json.dumps({"schema": 1, "needs": rows, "marks": [str(m) for m in marks]}, indent=1))
    else:
        table = Table(box=None, pad_edge=False, header_style="bold")
        for column in ("", "part", "needed", "there"):
            table.add_column(column, overflow="fold")
        for need in needs:
            sign = Text("ok", style="green") if need.is_met else Text("missing", style="red")
            table.add_row(sign, need.part, need.needed, need.there)
        print_table(table)
        for line in _by_file(marks):
            console().print(line)
    return int(any(not need.is_met for need in needs))


def _by_file(marks: Sequence[Mark]) -> list[str]:
    """Return a line for each file that has marks: its first one, or a notebook's cells."""
    files: dict[Path, list[Mark]] = {}
    for mark in marks:
        files.setdefault(mark.path, []).append(mark)
    lines = []
    for path, mine in files.items():
        cells = list(dict.fromkeys(mark.cell for mark in mine if mark.cell))
        more = f" and {len(mine) - 1} more" if mine[1:] else ""
        where = f"{path}, cells {', '.join(cells)}" if cells else f"{mine[0]}{more}"
        lines.append(f"FILL {where}")
    return lines
