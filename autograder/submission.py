# SPDX-License-Identifier: MIT
"""From a rebuilt notebook to the code cells that the grader runs.

Run, in notebook order: the source's locked code cells (imports, set-up), the answer cells, and the
student's own added code cells.  Not run: graded cells, visible checks (`…_visible`) and
explorations (`…_explore`).  The names come from the gradebook (see preprocessors/rebuild.py), so
that a student cannot turn an answer into an exploration or the reverse.

Jupyter's magics (`%`, `%%`, `!`, `?`) are not Python and are dropped, never executed.
"""

import re
from collections.abc import Iterator
from typing import Any

__all__ = ["drop_magics", "runnable_cells"]

NOT_RUN = ("_visible", "_explore")
#: Cell magics whose body is ordinary code of the notebook.
TRANSPARENT = ("%%time", "%%timeit", "%%capture", "%%prun")

# Strings come first, so that nothing inside one is taken for code.  An unterminated string ends
# with its line, or for triple quotes with the cell.
_TOKEN = re.compile(
    r"""(?P<string>'''(?:[^\\]|\\.)*?(?:'''|\\?\Z)|\"\"\"(?:[^\\]|\\.)*?(?:\"\"\"|\\?\Z)
      |'(?:[^'\\\n]|\\.)*'?|"(?:[^"\\\n]|\\.)*"?)
    |(?P<comment>\#[^\n]*)
    |(?P<joined>\\\n)
    |(?P<newline>\n)
    |(?P<opening>[\[({])|(?P<closing>[\])}])
    |(?P<help>\?)""",
    re.VERBOSE | re.DOTALL,
)
# `%`, `!` and `?` cannot start a line of Python, nor follow its `=`.
_MAGIC = re.compile(
    r"[ \t]*(?:[%!?]|[\w.][\w.,\[\] \t]*=[ \t]*(?:%|!))(?:[^\n\\]|\\.)*(?:\n|\\?\Z)", re.DOTALL
)
_TIMED = re.compile(r"([ \t]*)%time[ \t]+(?=\S)")


def runnable_cells(notebook: Any) -> tuple[tuple[str, str], ...]:
    """Return (name, source) of the cells to run; added cells are called added_1, added_2, …"""
    cells = []
    added = 0
    for cell in notebook["cells"]:
        if cell["cell_type"] != "code":
            continue
        label = cell["metadata"].get("nbgrader")
        if label is None:
            added += 1
            cells.append((f"added_{added}", drop_magics(cell["source"])))
        elif not label["grade"] and not (label["locked"] and label["grade_id"].endswith(NOT_RUN)):
            cells.append((label["grade_id"], drop_magics(cell["source"])))
    return tuple(cells)


def drop_magics(source: str) -> str:
    """Replace each magic by `pass`, so that every other line keeps its number and indentation.

    A line inside a string, a bracket or a continued line is no magic, whatever it looks like.
    `%time statement` keeps its statement; `%%time` and its like keep the cell's body, any other
    cell magic drops the whole cell.
    """
    first, _, body = source.lstrip().partition("\n")
    if first.startswith("%%"):
        if first.split()[0] not in TRANSPARENT:
            return "pass"
        lines = source[: len(source) - len(source.lstrip())].count("\n")
        return "\n" * lines + "pass\n" + _drop_lines(body)
    return _drop_lines(source)


def _drop_lines(source: str) -> str:
    return "".join(
        _without_magic(line) if is_magic else line for line, is_magic in _logical_lines(source)
    )


def _logical_lines(source: str) -> Iterator[tuple[str, bool]]:
    """Yield each logical line, and whether it is a magic or asks for help."""
    start = 0
    while start < len(source):
        if magic := _MAGIC.match(source, start):
            end, is_magic = magic.end(), True
        else:
            end, is_magic = _end_of_line(source, start)
        yield source[start:end], is_magic
        start = end


def _end_of_line(source: str, position: int) -> tuple[int, bool]:
    """Return where the logical line of Python ends, and whether a `?` stands in its code."""
    depth, is_help = 0, False
    while match := _TOKEN.search(source, position):
        position = match.end()
        kind = match.lastgroup
        if kind == "newline" and depth == 0:
            return position, is_help
        depth = max(0, depth + (kind == "opening") - (kind == "closing"))
        is_help = is_help or kind == "help"
    return len(source), is_help


def _without_magic(line: str) -> str:
    """Return `pass` with the line's indentation and its number of newlines."""
    if timed := _TIMED.match(line):
        return timed.group(1) + line[timed.end() :]
    indent = line[: len(line) - len(line.lstrip())]
    return f"{indent}pass" + "\n" * line.count("\n")
