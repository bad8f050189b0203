# SPDX-License-Identifier: MIT
"""Solution notebooks: their form, their agreement with the library, and that they run."""

import ast
import re
from collections import Counter
from functools import cache
from pathlib import Path

import nbformat
import pytest
from nbclient import NotebookClient

ROOT = Path(__file__).parents[1]
NOTEBOOKS = sorted(ROOT.glob("solutions/*/*.ipynb"))
MARKERS = ("BEGIN SOLUTION", "END SOLUTION")
OTHER_MARKERS = ("HIDDEN TESTS", "MARK SCHEME", "AUTOTEST", "YOUR CODE HERE", "YOUR ANSWER HERE")
FLAGS = {"grade", "solution", "locked", "task"}

pytestmark = pytest.mark.parametrize(
    "path", NOTEBOOKS, ids=[path.parent.name for path in NOTEBOOKS]
)


@cache
def read(path: Path) -> nbformat.NotebookNode:
    return nbformat.read(path, as_version=4)


def label(cell) -> dict:
    return cell.metadata.get("nbgrader", {})


def name_of(cell) -> str:
    return label(cell).get("grade_id", "")


def code_cells(path: Path) -> list:
    return [cell for cell in read(path).cells if cell.cell_type == "code"]


@cache
def exercises(assignment: str) -> dict[str, ast.FunctionDef | ast.ClassDef]:
    """Return the library's graded functions and classes of an assignment."""
    found = {}
    for module in sorted((ROOT / "policylab").rglob("*.py")):
        for node in ast.parse(module.read_text("utf-8")).body:
            for mark in getattr(node, "decorator_list", []):
                if ast.unparse(mark) == f"exercise({assignment!r})":
                    found[node.name] = node
    return found


def without_words(node: ast.AST) -> str:
    """Dump a definition without docstrings and decorators; of a class, its bases and members."""
    if not isinstance(node, ast.FunctionDef | ast.ClassDef):
        return ast.dump(node)
    body = node.body[1:] if ast.get_docstring(node) is not None else node.body
    head = node.bases if isinstance(node, ast.ClassDef) else [node.args, node.returns]
    return "\n".join([node.name, *(without_words(part) for part in [*head, *body] if part)])


def code_lines(source: str) -> int:
    """Count lines; of a function alone in its cell those of the body, without docstring."""
    tree = ast.parse(source)
    lines = [line for line in source.splitlines() if not line.lstrip().startswith("### ")]
    if len(tree.body) == 1 and isinstance(tree.body[0], ast.FunctionDef):
        statements = tree.body[0].body
        doc = ast.get_docstring(tree.body[0]) is not None
        first = statements[1 if doc else 0].lineno
        return len(lines) - first + 1
    return len(lines)


def test_the_file_is_normalised(path):
    notebook = read(path)
    assert path.read_text("utf-8") == nbformat.writes(notebook) + "\n"
    assert (notebook.nbformat, notebook.nbformat_minor) == (4, 5)
    assert notebook.metadata.kernelspec.name == "python3"
    ids = Counter(cell.id for cell in notebook.cells)
    assert [name for name, count in ids.items() if count > 1] == []
    for cell in code_cells(path):
        assert (cell.outputs, cell.execution_count) == ([], None), cell.id


def test_code_is_narrow_and_short(path):
    for cell in code_cells(path):
        wide = [line for line in cell.source.splitlines() if len(line) > 79]
        assert wide == [], cell.id
        assert code_lines(cell.source) <= 30, f"{cell.id} is too long"


def test_labels_agree_with_names(path):
    names = Counter(name_of(cell) for cell in read(path).cells if label(cell))
    assert [name for name, count in names.items() if count > 1] == []
    for cell in read(path).cells:
        if not label(cell):
            assert cell.cell_type == "markdown", f"{cell.id}: a code cell needs a grade_id"
            continue
        name, flags = name_of(cell), {flag for flag in FLAGS if label(cell)[flag]}
        assert label(cell)["schema_version"] == 3, name
        explore = cell.metadata.get("policylab", {}).get("explore", False)
        assert explore == name.endswith("_explore"), name
        if cell.cell_type == "markdown":
            assert flags == {"grade", "solution"}, name
        elif name.endswith("_answer"):
            assert flags == {"solution"}, name
        elif "points" in label(cell):
            assert flags == {"grade", "locked"}, name
        else:
            assert flags == {"locked"}, name


def test_every_graded_function_has_its_cells(path):
    names = {name_of(cell) for cell in read(path).cells}
    graded = [c for c in code_cells(path) if label(c)["grade"]]
    functions = {name_of(cell).split("_", 2)[2] for cell in graded}
    assert functions == set(exercises(path.parent.name))
    for cell in graded:
        assert {f"{name_of(cell)}_answer", f"{name_of(cell)}_visible"} <= names
        assert ast.parse(cell.source).body == [], "a graded cell holds a comment only"


def test_the_title_states_the_points(path):
    points = {True: 0, False: 0}
    for cell in read(path).cells:
        points[cell.cell_type == "code"] += label(cell).get("points", 0)
        if "points" in label(cell):
            number = ".".join(str(int(part)) for part in re.findall(r"\d+", name_of(cell))[:2])
            header = f"### Exercise {number}: "
            text = next(c.source for c in read(path).cells if header in c.source)
            assert f"{label(cell)['points']} points" in text, header
    title = read(path).cells[0].source
    stated = f"{sum(points.values())} points ({points[True]} by hidden checks, "
    assert stated + f"{points[False]} by a person)" in title


def test_marker_words_stand_in_answer_cells_only(path):
    for cell in read(path).cells:
        source = cell.source.upper()
        assert not any(word in source for word in OTHER_MARKERS), cell.id
        expected = 1 if name_of(cell).endswith("_answer") else 0
        assert [source.count(word) for word in MARKERS] == [expected] * 2, cell.id


def test_answers_are_the_librarys_functions(path):
    library = exercises(path.parent.name)
    answers = {}
    for cell in code_cells(path):
        if name_of(cell).endswith("_answer"):
            (function,) = ast.parse(cell.source).body
            assert isinstance(function, ast.FunctionDef | ast.ClassDef)
            assert name_of(cell).split("_", 2)[2] == f"{function.name}_answer"
            answers[function.name] = function
    assert set(answers) == set(library)
    for name, function in answers.items():
        assert without_words(function) == without_words(library[name]), name


def test_the_notebook_runs(path, tmp_path):
    """Visible checks pass, training and plots work; on two idle cores in well under a minute."""
    notebook = nbformat.read(path, as_version=4)
    options = {"metadata": {"path": str(tmp_path)}}
    NotebookClient(notebook, timeout=300, resources=options).execute()
    for cell in notebook.cells:
        if name_of(cell).endswith("_visible"):
            text = "".join(output.get("text", "") for output in cell.outputs)
            assert text.startswith("Visible checks passed"), cell.id
