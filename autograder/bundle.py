# SPDX-License-Identifier: MIT
"""The students' zip of an assignment: notebook, data, the stripped library as a wheel,
instructions.

The same inputs give the same bytes.  The real policylab is never published as a wheel: this one
holds the assignment's view, and `refuse_answers` asserts it before anything is written.
"""

import ast
import base64
import hashlib
import io
import zipfile
from collections.abc import Mapping
from importlib import metadata
from pathlib import Path, PurePosixPath

from autograder.assignment import Assignment, load_assignment
from autograder.course import Course, CourseError
from autograder.view import build_view, graded_functions

__all__ = ["make_bundle", "refuse_answers"]

EPOCH = (1980, 1, 1, 0, 0, 0)
TOOLS = ("ipykernel", "jupyterlab", "matplotlib")
FORBIDDEN = ("autograder", "checks", "solutions", "tests", "rubric.md", "assignment.toml")

README = """\
# {title}

You need Python 3.11 or newer.

1. Make an environment, here in this folder:

       python -m venv .venv

   On Linux without a GPU put the small build of PyTorch into it first; otherwise the next command
   brings some 5 GB of GPU libraries along:

       .venv/bin/pip install torch --index-url https://download.pytorch.org/whl/cpu

   Then, everywhere:

       .venv/bin/pip install -r requirements.txt        (Windows: .venv\\Scripts\\pip)

   `.venv/bin/policylab info` says whether it works.  Each assignment has a `policylab` of its own,
   so give each an environment of its own.

2. Open the notebook, and write your answers where it says so:

       .venv/bin/jupyter lab {name}.ipynb               (Windows: .venv\\Scripts\\jupyter)

3. Run it from top to bottom (Kernel, Restart and run all), save it, and hand in the one file
   {name}.ipynb under this name.

The cells that check your answers while you work are a part of the grade only: more checks run
when it is graded.  The library `policylab` in this folder leaves out what you write yourself.
"""


def make_bundle(course: Course, name: str, output: Path) -> Path:
    """Write `output`/`name`.zip from what was released; return its path.

    Raises: CourseError if the assignment was not released.
    """
    folder = course.exercises / name
    if not (folder / f"{name}.ipynb").is_file():
        raise CourseError(f"{folder} holds no notebook. Run: autograder release {name}")
    assignment = load_assignment(name, course.root)
    view = build_view(assignment).path
    library = {
        path.relative_to(view).as_posix(): path.read_bytes()
        for path in sorted(view.rglob("*"))
        if path.is_file()
    }
    wheel_name, wheel = _wheel(name, library)
    released = {
        path.relative_to(folder).as_posix(): path.read_bytes()
        for path in sorted(folder.rglob("*"))
        if path.is_file() and not path.is_symlink() and ".ipynb_checkpoints" not in path.parts
    }
    files = released | {
        wheel_name: wheel,
        "requirements.txt": _requirements(wheel_name).encode(),
        "README.md": README.format(title=assignment.title, name=name).encode(),
    }
    refuse_answers(assignment, library, released)
    output.mkdir(parents=True, exist_ok=True)
    target = output / f"{name}.zip"
    target.write_bytes(_zip({f"{name}/{path}": content for path, content in files.items()}))
    return target


def refuse_answers(
    assignment: Assignment, library: Mapping[str, bytes], released: Mapping[str, bytes]
) -> None:
    """Assert that nothing gives an answer or a hidden check away."""
    for path in [*library, *released]:
        assert not set(PurePosixPath(path).parts) & set(FORBIDDEN), f"{path} is not for students"
        assert PurePosixPath(path).suffix not in (".pyc", ".db"), f"{path} is not for students"
    for path, content in released.items():
        assert b"BEGIN SOLUTION" not in content and b"BEGIN HIDDEN" not in content, path
    for path, content in library.items():
        if not path.endswith(".py"):
            continue
        for exercise, node in graded_functions(content.decode("utf-8")):
            is_given = exercise < assignment.name or node.name in assignment.given
            assert is_given or _is_empty(node), f"{path}: {node.name} still has its body"


def _is_empty(node: ast.AST) -> bool:
    """Whether a function only raises, or a class has only such methods."""
    if isinstance(node, ast.ClassDef):
        methods = [item for item in node.body if not _is_docstring(item)]
        return all(isinstance(item, ast.FunctionDef) and _is_empty(item) for item in methods)
    assert isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
    statements = [item for item in node.body if not _is_docstring(item)]
    return len(statements) == 1 and isinstance(statements[0], ast.Raise)


def _is_docstring(node: ast.stmt) -> bool:
    return isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)


def _wheel(name: str, library: Mapping[str, bytes]) -> tuple[str, bytes]:
    """Return file name and content of a wheel with the library's files."""
    digest = hashlib.sha256(b"".join(library[path] for path in sorted(library))).hexdigest()
    version = f"{metadata.version('policylab')}+{name.replace('_', '.')}.{digest[:8]}"
    info = f"policylab-{version}.dist-info"
    fields = [
        "Metadata-Version: 2.1",
        "Name: policylab",
        f"Version: {version}",
        "Summary: Policy Lab's library without the exercises' answers",
        "License: MIT",
        "Requires-Python: >=3.11",
        *(f"Requires-Dist: {line}" for line in _requires() if "extra ==" not in line),
    ]
    files = dict(library) | {
        f"{info}/METADATA": ("\n".join(fields) + "\n").encode(),
        f"{info}/WHEEL": b"Wheel-Version: 1.0\nGenerator: autograder\nRoot-Is-Purelib: true\n"
        b"Tag: py3-none-any\n",
        f"{info}/entry_points.txt": b"[console_scripts]\npolicylab = policylab.cli:main\n",
    }
    record = f"{info}/RECORD"
    rows = [f"{path},{_record_hash(content)},{len(content)}" for path, content in files.items()]
    files[record] = ("\n".join([*rows, f"{record},,"]) + "\n").encode()
    return f"policylab-{version}-py3-none-any.whl", _zip(files)


def _requires() -> list[str]:
    return metadata.requires("policylab") or []


def _requirements(wheel_name: str) -> str:
    tools = {line.split(";")[0].strip() for line in _requires() if line.startswith(TOOLS)}
    return "\n".join([f"./{wheel_name}", *sorted(tools)]) + "\n"


def _record_hash(content: bytes) -> str:
    digest = base64.urlsafe_b64encode(hashlib.sha256(content).digest()).rstrip(b"=")
    return f"sha256={digest.decode()}"


def _zip(files: Mapping[str, bytes]) -> bytes:
    """Return a zip whose bytes depend on the files alone."""
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_DEFLATED) as archive:
        for path in sorted(files, key=lambda path: (path.endswith("RECORD"), path)):
            entry = zipfile.ZipInfo(path, EPOCH)
            entry.compress_type = zipfile.ZIP_DEFLATED
            entry.external_attr = 0o644 << 16
            archive.writestr(entry, files[path])
    return buffer.getvalue()
