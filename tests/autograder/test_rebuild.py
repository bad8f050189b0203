# SPDX-License-Identifier: MIT
import copy

import pytest
from nbformat import validate
from nbformat.notebooknode import from_dict
from nbgrader.nbgraderformat import MetadataValidator

from autograder.preprocessors.rebuild import SourceCell, rebuild
from autograder.submission import runnable_cells


def source(name, text, cell_type="code", *, grade=False, solution=False, locked=False, points=None):
    return SourceCell(name, cell_type, text, locked, grade, solution, False, points, "0" * 32)


SOURCES = (
    source("setup", "import math", locked=True),
    source("ex_1_answer", "def f(): ...", solution=True),
    source("ex_1_visible", "assert f() == 1", locked=True),
    source("ex_1", "# hidden checks", grade=True, locked=True, points=3.0),
    source("ex_2", "*write here*", "markdown", grade=True, solution=True, points=2.0),
)


@pytest.fixture
def submitted():
    """The released notebook with an answer in it."""
    cells = [
        {
            "cell_type": item.cell_type,
            "id": f"id-{number}",
            "metadata": {"nbgrader": item.label()},
            "source": item.source,
        }
        | ({"outputs": [], "execution_count": None} if item.cell_type == "code" else {})
        for number, item in enumerate(SOURCES)
    ]
    notebook = from_dict({"cells": cells, "metadata": {}, "nbformat": 4, "nbformat_minor": 5})
    notebook.cells[1].source = "def f(): return 1"
    return notebook


def names(notebook):
    return [cell.metadata.get("nbgrader", {}).get("grade_id", "") for cell in notebook.cells]


def test_an_untouched_notebook_needs_no_repair_and_is_not_changed(submitted):
    before = copy.deepcopy(submitted)
    rebuilt, repairs = rebuild(submitted, SOURCES)
    assert repairs == ()
    assert submitted == before
    assert names(rebuilt) == [item.name for item in SOURCES]
    assert rebuilt.cells[1].source == "def f(): return 1"
    validate(rebuilt)


def test_a_deleted_cell_comes_back_in_its_place(submitted):
    del submitted.cells[2:4]
    rebuilt, repairs = rebuild(submitted, SOURCES)
    assert names(rebuilt) == [item.name for item in SOURCES]
    assert rebuilt.cells[3].metadata.nbgrader.points == 3.0
    assert len(repairs) == 2
    validate(rebuilt)


def test_all_cells_deleted_gives_the_release(submitted):
    submitted.cells = []
    rebuilt, _ = rebuild(submitted, SOURCES)
    assert [cell.source for cell in rebuilt.cells] == [item.source for item in SOURCES]


def test_edits_of_locked_cells_and_of_labels_count_for_nothing(submitted):
    submitted.cells[0].source = "import os; os.abort()"
    submitted.cells[3].source = "5.0"
    submitted.cells[3].metadata.nbgrader.update(points=100, grade=False, solution=True)
    submitted.cells[1].metadata.nbgrader.update(grade=True, points=50, locked=True)
    rebuilt, repairs = rebuild(submitted, SOURCES)
    assert rebuilt.cells[0].source == "import math"
    assert rebuilt.cells[3].metadata.nbgrader == SOURCES[3].label()
    assert rebuilt.cells[1].metadata.nbgrader == SOURCES[1].label()
    assert repairs == (
        "setup was edited and is back as it was released",
        "ex_1 was edited and is back as it was released",
    )


def test_the_first_copy_is_the_answer_and_the_second_an_added_cell(submitted):
    submitted.cells.insert(2, copy.deepcopy(submitted.cells[1]))
    submitted.cells[2].source = "def f(): return 2"
    rebuilt, repairs = rebuild(submitted, SOURCES)
    assert runnable_cells(rebuilt) == (
        ("setup", "import math"),
        ("ex_1_answer", "def f(): return 1"),
        ("added_1", "def f(): return 2"),
    )
    assert repairs == ("a copy of ex_1_answer counts as an added cell",)


def test_an_unchanged_copy_of_a_locked_cell_is_dropped_and_an_edited_one_runs(submitted):
    submitted.cells += [copy.deepcopy(submitted.cells[2]), copy.deepcopy(submitted.cells[2])]
    submitted.cells[-1].source = "helper = 1"
    rebuilt, _ = rebuild(submitted, SOURCES)
    assert runnable_cells(rebuilt)[-1] == ("added_1", "helper = 1")
    assert len(rebuilt.cells) == len(SOURCES) + 1


def test_retyped_cells_are_code_and_text_again(submitted):
    submitted.cells[1].cell_type = "markdown"
    submitted.cells[4].cell_type = "code"
    rebuilt, repairs = rebuild(submitted, SOURCES)
    assert [cell.cell_type for cell in rebuilt.cells] == [item.cell_type for item in SOURCES]
    assert ("ex_1_answer", "def f(): return 1") in runnable_cells(rebuilt)
    assert len(repairs) == 2
    validate(rebuilt)


def test_nothing_saved_survives(submitted):
    submitted.cells[3].outputs = [
        {"output_type": "execute_result", "data": {"text/plain": "3.0"}, "metadata": {}}
    ]
    submitted.cells[4].attachments = {"a.svg": {}}
    submitted.cells[1].metadata["policylab"] = {"explore": True}
    rebuilt, _ = rebuild(submitted, SOURCES)
    assert all(not cell.get("outputs") for cell in rebuilt.cells)
    assert "attachments" not in rebuilt.cells[4]
    assert rebuilt.cells[1].metadata.keys() == {"nbgrader"}


def test_what_comes_out_is_valid_for_nbgrader_whatever_came_in(submitted):
    for cell, junk in zip(submitted.cells, [{}, {"schema_version": 1}, 5, None, "x"], strict=True):
        cell.metadata.nbgrader = junk
    submitted.cells += copy.deepcopy(submitted.cells)
    rebuilt, _ = rebuild(submitted, SOURCES)
    MetadataValidator().validate_nb(rebuilt)
    validate(rebuilt)


def test_an_answer_renamed_to_an_exploration_is_not_hidden_from_the_grader(submitted):
    submitted.cells[1].metadata.nbgrader.grade_id = "ex_1_explore"
    rebuilt, _ = rebuild(submitted, SOURCES)
    ran = [text for _, text in runnable_cells(rebuilt)]
    assert "def f(): return 1" in ran  # as an added cell, after the stub that came back
    assert ran.index("def f(): ...") < ran.index("def f(): return 1")


def test_added_cells_keep_their_place(submitted):
    added = from_dict({"cell_type": "code", "metadata": {}, "source": "x = 1", "outputs": []})
    submitted.cells.insert(1, added)
    rebuilt, _ = rebuild(submitted, SOURCES)
    assert [name for name, _ in runnable_cells(rebuilt)] == ["setup", "added_1", "ex_1_answer"]
