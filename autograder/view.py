# SPDX-License-Identifier: MIT
"""The copy of policylab that student code can import: graded functions without their bodies.

Stripped are the functions marked `@exercise(...)` for this assignment, and for later assignments
unless its settings give them; earlier assignments' functions stay, so that students may reuse them.
A file that holds a stripped function is written anew from its syntax tree, hence without comments.
"""

import ast
import hashlib
import importlib.util
import os
import shutil
import stat
import tempfile
from collections.abc import Collection, Iterator
from dataclasses import dataclass
from pathlib import Path

from autograder.assignment import Assignment

__all__ = ["View", "build_view", "graded_functions", "strip", "view_files"]

PACKAGE = "policylab"
LICENCE = "# SPDX-License-Identifier: MIT"
KEPT_DECORATORS = ("exercise", "staticmethod", "classmethod", "property")
Definition = ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef


@dataclass(frozen=True)
class View:
    """A finished view.

    Args:
        path: a directory that holds policylab/ and nothing else.
        hash: of the names and contents of its files.
    """

    path: Path
    hash: str


def build_view(
    assignment: Assignment, destination: Path | None = None, *, package: Path | None = None
) -> View:
    """Write the assignment's view, or find it where it was written before.

    Args:
        assignment: whose functions are stripped.
        destination: holds a folder per view, named by its hash; by default in the course's state.
        package: the policylab to copy; by default the installed one.
    """
    files = view_files(package or package_directory(), assignment.name, assignment.given)
    digest = _hash(files)
    views = destination or assignment.state_dir / "views"
    path = views / digest
    if not _is_intact(path, files):
        _write(path, files)
    return View(path, digest)


def package_directory() -> Path:
    """Return where the real policylab lies, without importing more than its `__init__`."""
    spec = importlib.util.find_spec(PACKAGE)
    if spec is None or not spec.submodule_search_locations:
        raise ModuleNotFoundError(f"{PACKAGE} is not installed. Run: pip install -e .")
    return Path(list(spec.submodule_search_locations)[0]).resolve()


def view_files(package: Path, assignment: str, given: Collection[str]) -> dict[str, bytes]:
    """Return the view's files by relative path, in order: modules and data, nothing else."""
    files = {}
    for path in sorted(package.rglob("*")):
        inside = path.relative_to(package)
        is_wanted = path.suffix == ".py" or inside.parts[0] == "data"
        if path.is_symlink() or not path.is_file() or not is_wanted or "__pycache__" in path.parts:
            continue
        content = path.read_bytes()
        if path.suffix == ".py":
            content = strip(content.decode("utf-8"), assignment, given).encode()
        files[f"{PACKAGE}/{inside.as_posix()}"] = content
    return files


def graded_functions(source: str) -> Iterator[tuple[str, Definition]]:
    """Yield (assignment, definition) of each `@exercise("assignment")` in a module."""
    for node in ast.walk(ast.parse(source)):
        name = _exercise_of(node)
        if name is not None:
            assert isinstance(node, Definition)
            yield name, node


def strip(source: str, assignment: str, given: Collection[str]) -> str:
    """Return a module's source without the bodies that students write themselves."""
    tree = ast.parse(source)
    is_changed = False
    for node in ast.walk(tree):
        name = _exercise_of(node)
        if name is None or name < assignment:
            continue
        assert isinstance(node, Definition)
        if name > assignment and node.name in given:
            continue
        _empty(node, f"{node.name} is exercise {name}: write it in your notebook")
        is_changed = True
    if not is_changed:
        return source
    return f"{LICENCE}\n{ast.unparse(ast.fix_missing_locations(tree))}\n"


def _exercise_of(node: ast.AST) -> str | None:
    """Return the assignment in the `@exercise(...)` of a definition."""
    if not isinstance(node, Definition):
        return None
    for item in node.decorator_list:
        if _name(item) == "exercise":
            if not (
                isinstance(item, ast.Call)
                and len(item.args) == 1
                and isinstance(item.args[0], ast.Constant)
                and type(item.args[0].value) is str
            ):
                raise ValueError(f'{node.name}: write @exercise("NN_slug") with a literal name.')
            return item.args[0].value
    return None


def _name(decorator: ast.expr) -> str:
    target = decorator.func if isinstance(decorator, ast.Call) else decorator
    return target.attr if isinstance(target, ast.Attribute) else getattr(target, "id", "")


def _empty(node: Definition, message: str) -> None:
    """Leave signature and docstring of a function; of a class, its methods likewise."""
    node.decorator_list = [item for item in node.decorator_list if _name(item) in KEPT_DECORATORS]
    docstring = node.body[:1] if ast.get_docstring(node, clean=False) is not None else []
    if isinstance(node, ast.ClassDef):
        methods = [
            item for item in node.body if isinstance(item, ast.FunctionDef | ast.AsyncFunctionDef)
        ]
        for method in methods:
            _empty(method, message)
        if not any(method.name == "__init__" for method in methods):
            methods.append(_refusing_init(message))
        node.body = [*docstring, *methods]
    else:
        node.body = [*docstring, *ast.parse(f"raise NotImplementedError({message!r})").body]


def _refusing_init(message: str) -> ast.FunctionDef:
    text = f"def __init__(self, *args, **kwargs):\n    raise NotImplementedError({message!r})"
    function = ast.parse(text).body[0]
    assert isinstance(function, ast.FunctionDef)
    return function


def _hash(files: dict[str, bytes]) -> str:
    digest = hashlib.sha256()
    for name, content in sorted(files.items()):
        for part in (name.encode(), content):
            digest.update(len(part).to_bytes(8, "big") + part)
    return digest.hexdigest()[:32]


def _is_intact(path: Path, files: dict[str, bytes]) -> bool:
    """Whether the directory holds exactly these files."""
    if not path.is_dir():
        return False
    found = {item for item in path.rglob("*") if not item.is_dir() or item.is_symlink()}
    return found == {path / name for name in files} and all(
        stat.S_ISREG((path / name).lstat().st_mode) and (path / name).read_bytes() == content
        for name, content in files.items()
    )


def _write(path: Path, files: dict[str, bytes]) -> None:
    """Create the directory in one step, readable by the user that student code runs as."""
    path.parent.mkdir(parents=True, exist_ok=True)
    scratch = Path(tempfile.mkdtemp(prefix=".view-", dir=path.parent))
    try:
        for name, content in files.items():
            target = scratch / name
            target.parent.mkdir(parents=True, exist_ok=True)
            target.write_bytes(content)
            target.chmod(0o644)
        for directory in [scratch, *(item for item in scratch.rglob("*") if item.is_dir())]:
            directory.chmod(0o755)
        if path.exists():  # damaged: out of the way, in one step as well
            os.rename(path, f"{scratch}.damaged")
        try:
            os.rename(scratch, path)
        except OSError:
            if not _is_intact(path, files):  # not a twin of this process that was faster
                raise
    finally:
        shutil.rmtree(scratch, ignore_errors=True)
        shutil.rmtree(f"{scratch}.damaged", ignore_errors=True)
