# SPDX-License-Identifier: MIT
import ast
import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from autograder.assignment import GradingLimits, load_assignment
from autograder.proxy import StudentProcess
from autograder.view import build_view, graded_functions, package_directory, strip, view_files
from policylab.sandbox import Zygote

TOY = "03_toy"
MODULE = '''\
"""A module."""
# a comment that would tell
from policylab.exercise import exercise


@exercise("{name}")
def secret_sauce(x: int, *, y: float = 2.0) -> float:
    """Mix x with y.

    Returns: the sauce.
    """
    # the trick: double it
    mixed = x * y
    return mixed + x
'''
CLASS = '''\
from policylab.exercise import exercise


@exercise("04_later")
class Model(Base):
    """A model."""

    width = 17

    def forward(self, x):
        """Go."""
        return x @ self.weight
'''


def write_package(root, **modules):
    package = root / "policylab"
    package.mkdir(parents=True)
    (package / "__init__.py").write_text('"""Empty."""\n')
    (package / "exercise.py").write_text((package_directory() / "exercise.py").read_text())
    for name, source in modules.items():
        (package / f"{name}.py").write_text(source)
    return package


@pytest.mark.parametrize(
    ("name", "given", "is_stripped"),
    [
        ("03_toy", (), True),
        ("03_toy", ("secret_sauce",), True),  # its own exercise is never given
        ("04_later", (), True),
        ("04_later", ("secret_sauce",), False),
        ("02_earlier", (), False),
    ],
)
def test_which_bodies_are_stripped(name, given, is_stripped):
    source = MODULE.format(name=name)
    stripped = strip(source, TOY, given)
    assert (stripped != source) == is_stripped
    assert ("mixed" not in stripped) == is_stripped


def test_signature_and_docstring_stay_comments_go(tmp_path):
    namespace: dict = {}
    stripped = strip(MODULE.format(name=TOY), TOY, ())
    exec(stripped, namespace)
    function = namespace["secret_sauce"]
    assert function.__annotations__ == {"x": int, "y": float, "return": float}
    assert function.__doc__.startswith("Mix x with y.") and function.__kwdefaults__ == {"y": 2.0}
    assert "trick" not in stripped and "would tell" not in stripped
    with pytest.raises(NotImplementedError, match="secret_sauce is exercise 03_toy: write it in"):
        function(1)


def test_a_class_keeps_its_methods_names_only():
    stripped = strip(CLASS, TOY, ())
    namespace = {"Base": object}
    exec(stripped, namespace)
    assert "17" not in stripped and "weight" not in stripped
    with pytest.raises(NotImplementedError, match="Model is exercise 04_later"):
        namespace["Model"]()


def test_a_computed_exercise_name_is_refused():
    with pytest.raises(ValueError, match="literal"):
        strip("@exercise(NAME)\ndef f(): pass\n", TOY, ())


def test_written_once_and_readable_by_the_students_user(toy_course, tmp_path):
    assignment = load_assignment(TOY, toy_course)
    package = write_package(tmp_path, sauce=MODULE.format(name=TOY))
    (package / "__pycache__").mkdir()
    (package / "__pycache__" / "sauce.cpython-311.pyc").write_bytes(b"mixed")
    (package / "notes.txt").write_text("mixed")
    (package / "data").mkdir()
    (package / "data" / "small.safetensors").write_bytes(b"\0\1")
    view = build_view(assignment, package=package)
    again = build_view(assignment, package=package)
    assert view == again and view.path == toy_course / ".autograder" / "views" / view.hash
    names = {str(path.relative_to(view.path)) for path in view.path.rglob("*") if path.is_file()}
    assert names == {
        f"policylab/{name}"
        for name in ("__init__.py", "exercise.py", "sauce.py", "data/small.safetensors")
    }
    for path in [view.path, *view.path.rglob("*")]:
        assert path.stat().st_mode & 0o777 == (0o755 if path.is_dir() else 0o644)
    assert os.listdir(view.path.parent) == [view.hash]


def test_a_damaged_view_is_written_anew(toy_course, tmp_path):
    assignment = load_assignment(TOY, toy_course)
    package = write_package(tmp_path, sauce=MODULE.format(name=TOY))
    view = build_view(assignment, package=package)
    (view.path / "policylab" / "sauce.py").write_text(MODULE.format(name=TOY))
    (view.path / "policylab" / "extra.py").write_text("")
    assert build_view(assignment, package=package) == view
    assert "mixed" not in (view.path / "policylab" / "sauce.py").read_text()
    assert not (view.path / "policylab" / "extra.py").exists()


def test_the_hash_follows_the_content(toy_course, tmp_path):
    assignment = load_assignment(TOY, toy_course)
    one = write_package(tmp_path / "one", sauce=MODULE.format(name=TOY))
    body = MODULE.format(name=TOY).replace("mixed + x", "mixed")
    two = write_package(tmp_path / "two", sauce=body)
    three = write_package(tmp_path / "three", sauce=MODULE.format(name="02_earlier"))
    hashes = [build_view(assignment, package=package).hash for package in (one, two, three)]
    assert hashes[0] == hashes[1] != hashes[2]  # a body that no student sees changes nothing


def statements(node):
    """The normalised body of a definition, without its docstring."""
    body = node.body[1:] if ast.get_docstring(node, clean=False) is not None else node.body
    return [ast.dump(item) for item in body]


ASSIGNMENTS = sorted(
    {
        name
        for path in package_directory().rglob("*.py")
        for name, _ in graded_functions(path.read_text())
    }
)


@pytest.mark.parametrize("assignment", ASSIGNMENTS)
def test_no_file_of_the_real_view_holds_a_graded_body(assignment):
    package = package_directory()
    files = view_files(package, assignment, ())
    bodies = {
        node.name: statements(node)
        for path in sorted(package.rglob("*.py"))
        for name, node in graded_functions(path.read_text())
        if name >= assignment
    }
    assert bodies
    held = {
        dump
        for content in files.values()
        for node in ast.walk(ast.parse(content))
        for field in ("body", "orelse", "finalbody")
        if isinstance(getattr(node, field, None), list)
        for dump in map(ast.dump, getattr(node, field))
    }
    for name, body in bodies.items():
        own = [item for item in body if item in held]
        assert not any(len(item) > 300 for item in own), f"{name}: a statement is in the view"
        assert len(own) < len(body), f"{name}: the whole body is in the view"


PROBE = """
import importlib, inspect, json, linecache, sys
sys.path.insert(0, sys.argv[1])
found = {}
for module, name in json.loads(sys.argv[2]):
    function = getattr(importlib.import_module(module), name)
    path = inspect.getsourcefile(function)
    assert path.startswith(sys.argv[1]), path
    found[name] = inspect.getsource(function) + "".join(linecache.getlines(path))
print(json.dumps(found))
"""


@pytest.mark.parametrize("assignment", ASSIGNMENTS)
def test_import_inspect_and_linecache_of_the_view_give_no_body(assignment, tmp_path):
    package = package_directory()
    graded = {}
    for path in sorted(package.rglob("*.py")):
        for name, node in graded_functions(path.read_text()):
            if name >= assignment:
                dotted = ".".join(path.relative_to(package.parent).with_suffix("").parts)
                graded[dotted, node.name] = statements(node)
    for name, content in view_files(package, assignment, ()).items():
        target = tmp_path / name
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_bytes(content)
    site = str(Path(__import__("torch").__file__).parents[1])
    command = [sys.executable, "-S", "-B", "-c", PROBE, str(tmp_path), json.dumps(list(graded))]
    run = subprocess.run(command, capture_output=True, text=True, env={"PYTHONPATH": site})
    assert run.returncode == 0, run.stderr
    found = json.loads(run.stdout)
    for (_, name), body in graded.items():
        source = found[name]
        text = source[: source.index("raise NotImplementedError")]
        assert "NotImplementedError" in source and f"def {name}" in text
        functions = [node for node in ast.walk(ast.parse(source)) if hasattr(node, "body")]
        dumps = {d for n in functions if isinstance(n.body, list) for d in map(ast.dump, n.body)}
        assert len([item for item in body if item in dumps]) < len(body)


SEARCH = """
import importlib, importlib.metadata, inspect, linecache, os, sys

def search(names):
    texts, tried = [], []
    for module_name, name in names:
        module = importlib.import_module(module_name)
        function = getattr(module, name)
        texts.append(inspect.getsource(function))
        texts.append("".join(linecache.getlines(module.__file__)))
        tried.append(name)
    places = {os.path.dirname(p) for p in importlib.import_module("policylab").__path__}
    for place in [*sys.path, *places, "/work", "/root", os.path.expanduser("~"), os.getcwd()]:
        for folder in ("policylab", "autograder", "solutions", "tests"):
            for directory, _, files in os.walk(os.path.join(place, folder)):
                for file in files:
                    try:
                        with open(os.path.join(directory, file), errors="replace") as opened:
                            texts.append(opened.read())
                    except OSError:
                        pass
    for distribution in importlib.metadata.distributions():
        if distribution.metadata["Name"] in ("policylab", "autograder"):
            for file in distribution.files or []:
                texts.append(str(file))
    return tried, "\\n".join(texts)
"""


@pytest.mark.parametrize("assignment", ASSIGNMENTS)
def test_in_the_jail_no_way_of_reading_gives_a_body(assignment, backend, tmp_path, zygote):
    package = package_directory()
    files = view_files(package, assignment, ())
    for name, content in files.items():
        target = tmp_path / "view" / name
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_bytes(content)
    graded = {}
    for path in sorted(package.rglob("*.py")):
        for name, node in graded_functions(path.read_text()):
            if name >= assignment:
                dotted = ".".join(path.relative_to(package.parent).with_suffix("").parts)
                graded[dotted, node.name] = [ast.unparse(s) for s in node.body[1:]]
    with Zygote(tmp_path / "view", backend=backend, preimport=()) as bare:
        limits = GradingLimits(load_s=60, submission_s=200)
        process = StudentProcess(bare, [("search", SEARCH)], limits)
        with process.check(120):
            tried, text = process.call("search", [list(key) for key in graded])
        process.close()
    assert tried == [name for _, name in graded] and "NotImplementedError" in text
    lines = {line.strip() for line in text.splitlines()}
    originals = {
        line.strip() for content in files.values() for line in content.decode().split("\n")
    }
    for (_, name), body in graded.items():
        own = {line.strip() for statement in body for line in statement.split("\n")} - originals
        own = {line for line in own if len(line) > 12}
        assert own and not own & lines, f"{name}: {sorted(own & lines)}"
