# SPDX-License-Identifier: MIT
"""The library's side of a graded function: where it stands, and its source for an answer cell."""

import ast
import re
import subprocess
import sys
import textwrap
from collections.abc import Iterator
from dataclasses import dataclass

from autograder.chapter.places import Chapter, ChapterError

__all__ = ["Answer", "Definition", "answer_cell", "find_answer", "sorted_imports", "stub_answer"]

WIDTH = 79
INDENT = " " * 4
BEGIN, END = "### BEGIN SOLUTION", "### END SOLUTION"
QUOTES = '"""'
ENTRY = re.compile(r"(\*{0,2}\w+(, \w+)*|Source|Returns|Raises): ")
#: What the notebook's setup cell imports anyway, or does not want.
NOT_IMPORTED = {"torch", "Tensor", "exercise"}
Definition = ast.FunctionDef | ast.ClassDef


@dataclass(frozen=True)
class Answer:
    """What an exercise asks for.

    Args:
        name: of the function or class.
        source: its definition, without decorators.
        module: such as "policylab.losses"; empty where the library does not have it yet.
        imports: lines that the definition needs besides torch.
    """

    name: str
    source: str
    module: str = ""
    imports: tuple[str, ...] = ()

    @property
    def parameters(self) -> str:
        """Names of the parameters, as in a definition without annotations; for a class `*args`."""
        (node,) = ast.parse(self.source).body
        if not isinstance(node, ast.FunctionDef):
            return "*args"
        for argument in [*node.args.posonlyargs, *node.args.args, *node.args.kwonlyargs]:
            argument.annotation = None
        return ast.unparse(node.args)


def find_answer(chapter: Chapter, name: str) -> Answer | None:
    """Look in the library for the definition that is marked for this chapter.

    Raises: ChapterError if it has another mark, or none.
    """
    for path in sorted((chapter.root / "policylab").rglob("*.py")):
        source = path.read_text("utf-8")
        for node in ast.parse(source).body:
            if not isinstance(node, Definition) or node.name != name:
                continue
            where = f"{path.relative_to(chapter.root)}, line {node.lineno}"
            marks = [ast.unparse(item) for item in node.decorator_list]
            if f"exercise({chapter.name!r})" not in marks:
                found = f"has {', '.join(marks)}" if marks else "has no mark"
                raise ChapterError(
                    f'{where}: {name} {found}. Write @exercise("{chapter.name}") above it, or name '
                    "another function."
                )
            text = "\n".join(source.splitlines()[node.lineno - 1 : node.end_lineno])
            relative = path.relative_to(chapter.root).with_suffix("")
            module = ".".join(relative.parts).removesuffix(".__init__")
            return Answer(name, text, module, tuple(_imports(source, text)))
    return None


def stub_answer(name: str, template: str, module: str = "") -> Answer:
    """Return the definition that stands for one which is yet to be written."""
    return Answer(name, template.replace("<<function>>", name).rstrip(), module)


def answer_cell(answer: Answer) -> str:
    """Return the answer cell: signature, docstring, checks at the door, then the solution region.

    Of a class, the last method is the answer, and what stands above it is given.  The code is
    formatted to a notebook's width, so it stays equal as a syntax tree.
    """
    text = _wrapped(_formatted(answer.source))
    lines = text.splitlines()
    (node,) = ast.parse(text).body
    if isinstance(node, ast.ClassDef):
        node = [item for item in node.body if isinstance(item, ast.FunctionDef)][-1]
    assert isinstance(node, ast.FunctionDef)
    body = node.body[1:] if ast.get_docstring(node) is not None else node.body
    first = next((item for item in body if not _is_guard(item)), body[-1])
    indent = " " * first.col_offset
    # Comments above the first statement of the answer belong to it.
    start = first.lineno - 1
    while lines[start - 1].lstrip().startswith("#"):
        start -= 1
    return "\n".join([*lines[:start], indent + BEGIN, *lines[start:], indent + END])


def _is_guard(node: ast.stmt) -> bool:
    """Whether a statement is a call of a check_... function, which students may see."""
    is_call = isinstance(node, ast.Expr) and isinstance(node.value, ast.Call)
    return is_call and ast.unparse(node).startswith("check_")


def sorted_imports(source: str) -> str:
    """Return a cell with its imports in the linter's order."""
    first_party = 'lint.isort.known-first-party=["policylab"]'
    return _ruff(source, "check", "--quiet", "--select=I", "--fix", "--config", first_party)


def _formatted(source: str) -> str:
    return _ruff(source, "format", f"--line-length={WIDTH}")


def _ruff(source: str, *arguments: str) -> str:
    """Run ruff over a text; where it is not installed, return the text as it is."""
    command = [sys.executable, "-m", "ruff", *arguments, "--isolated", "-"]
    found = subprocess.run(command, input=source, capture_output=True, text=True)
    return (found.stdout if found.returncode == 0 else source).rstrip()


def _wrapped(source: str) -> str:
    """Wrap the docstring's paragraphs and entries to a notebook's width."""
    (node,) = ast.parse(source).body
    assert isinstance(node, Definition)
    lines = source.splitlines()
    if ast.get_docstring(node) is None:
        return source
    start, end = node.body[0].lineno - 1, node.body[0].end_lineno
    wrapped = [line for group in _groups(lines[start:end]) for line in _wrap(group)]
    return "\n".join([*lines[:start], *wrapped, *lines[end:]])


def _groups(lines: list[str]) -> Iterator[list[str]]:
    """Yield the lines that make one paragraph or one entry, such as an argument's."""
    group: list[str] = []
    for line in lines:
        text, last = line.strip(), group[-1].strip() if group else ""
        is_alone = text in ("", QUOTES, "Args:") or last in ("", "Args:")
        if group and (is_alone or ENTRY.match(text) or _indent(line) < _indent(group[0])):
            yield group
            group = []
        group.append(line)
    yield group


def _indent(line: str) -> int:
    return len(line) - len(line.lstrip())


def _wrap(group: list[str]) -> list[str]:
    """Wrap one group; the lines after an entry's first are indented."""
    if all(len(line) <= WIDTH for line in group):
        return group
    indent = " " * _indent(group[0])
    hanging = indent + INDENT if ENTRY.match(group[0].strip()) else indent
    text = " ".join(line.strip() for line in group)
    return textwrap.wrap(text, WIDTH, initial_indent=indent, subsequent_indent=hanging)


def _imports(module: str, definition: str) -> Iterator[str]:
    """Yield the imports of a module that a definition in it uses."""
    used = {node.id for node in ast.walk(ast.parse(definition)) if isinstance(node, ast.Name)}
    for node in ast.parse(module).body:
        if not isinstance(node, ast.Import | ast.ImportFrom):
            continue
        for alias in node.names:
            name = alias.asname or alias.name
            if name.split(".")[0] not in used or name in NOT_IMPORTED:
                continue
            source = "" if isinstance(node, ast.Import) else f"from {node.module} "
            yield f"{source}import {ast.unparse(alias)}"
