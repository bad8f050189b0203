# SPDX-License-Identifier: MIT
import json
import os

import pytest

from autograder.intake import Limits, clean_notebook, read_submission, stage

NAME = "03_toy"


def notebook(*cells, **changes):
    return {"cells": list(cells), "metadata": {}, "nbformat": 4, "nbformat_minor": 5} | changes


def code(source, grade_id=None, **changes):
    metadata = {"nbgrader": {"grade_id": grade_id, "points": 100}} if grade_id else {}
    cell = {"cell_type": "code", "metadata": metadata, "source": source, "outputs": []}
    return cell | changes


@pytest.fixture
def folder(tmp_path):
    path = tmp_path / "submitted" / "ada" / NAME
    path.mkdir(parents=True)
    return path


def hand_in(folder, content, name=f"{NAME}.ipynb"):
    data = content if isinstance(content, bytes) else json.dumps(content).encode()
    (folder / name).write_bytes(data)


def read(folder, **limits):
    return read_submission(folder, "ada", NAME, Limits(**limits))


def test_only_type_label_and_source_of_a_cell_are_kept(folder):
    cell = code("x = 1", "toy", attachments={"a.png": {}}, execution_count=7, id="mine")
    cell["outputs"] = [{"output_type": "stream", "name": "stdout", "text": "5.0"}]
    hand_in(folder, notebook(cell, metadata={"kernelspec": {"name": "evil"}}))
    clean = read(folder).notebook()
    assert clean["cells"] == [
        {
            "cell_type": "code",
            "execution_count": None,
            "id": "cell-0",
            "metadata": {"nbgrader": {"grade_id": "toy"}},
            "outputs": [],
            "source": "x = 1",
        }
    ]
    assert clean["metadata"]["kernelspec"]["name"] == "python3"


def test_the_only_notebook_is_taken_whatever_its_name(folder):
    hand_in(folder, notebook(code("x = 1")), f"{NAME} (1).ipynb")
    submission = read(folder)
    assert submission.cells == (("code", "", "x = 1"),)
    assert "(1).ipynb was taken for" in submission.warnings[0]


def test_the_right_name_wins_over_other_notebooks(folder):
    hand_in(folder, notebook(code("right")))
    hand_in(folder, notebook(code("other")), "old.ipynb")
    assert read(folder).cells == (("code", "", "right"),)


@pytest.mark.parametrize(
    ("content", "says"),
    [
        (b"<<<<<<< HEAD\n{}\n=======\n[]\n>>>>>>> theirs\n", "merge conflict markers"),
        (b"PK\x03\x04\xff", "not UTF-8"),
        (b"{", "not valid JSON"),
        (b"", "not valid JSON"),
        (b"[1, 2]", "not a notebook"),
        (b'{"nbformat": 4}', "no list of cells"),
        (b'{"nbformat": 3, "worksheets": []}', "format 3"),
        (b"[" * 100_000, "too deep"),
        (b'{"nbformat": 4, "cells": [' + b"1," * 600_000 + b"1]}", "too many values"),
        (b'{"nbformat": 4, "cells": "' + b'\\"' * 400_000, "not valid JSON"),
        (b'{"nbformat": ' + b"9" * 10_000 + b"}", "not valid JSON"),
    ],
)
def test_what_is_no_notebook_is_named(folder, content, says):
    hand_in(folder, content)
    submission = read(folder)
    assert says in submission.problem
    assert submission.cells == ()


def test_no_notebook_and_too_many_are_named(folder):
    assert "no notebook was handed in" in read(folder).problem
    for name in ("a.ipynb", "b.ipynb"):
        hand_in(folder, notebook(), name)
    assert "2 notebooks were handed in" in read(folder).problem


def test_links_and_devices_are_refused(folder, tmp_path):
    secret = tmp_path / "secret.ipynb"
    secret.write_text(json.dumps(notebook(code("secret"))))
    (folder / f"{NAME}.ipynb").symlink_to(secret)
    assert "symbolic link" in read(folder).problem
    (folder / f"{NAME}.ipynb").unlink()
    os.mkfifo(folder / f"{NAME}.ipynb")
    assert "not a regular file" in read(folder).problem


def test_a_linked_folder_is_refused(tmp_path):
    real = tmp_path / "real"
    real.mkdir()
    hand_in(real, notebook(code("x")))
    (tmp_path / "linked").symlink_to(real)
    assert "symbolic link" in read_submission(tmp_path / "linked", "ada", NAME).problem


def test_sizes_are_capped_before_parsing(folder):
    hand_in(folder, notebook(code("x" * 5000), code("y"), code("z")))
    assert "larger than" in read(folder, file_bytes=1000).problem
    assert "more than 2 cells" in read(folder, cells=2).problem
    assert "more than 100 characters" in read(folder, source_chars=100).problem
    for number in range(5):
        (folder / f"data{number}").write_text("")
    assert "more than 3 files" in read(folder, files=3).problem


def test_older_and_sloppy_notebooks_are_normalised(folder):
    old = notebook(
        code(["x = 1\n", "y = 2"], "toy", id="twice"),
        code("z", id="twice"),
        {"cell_type": "markdown", "source": "text"},
        "not a cell",
        {"cell_type": "code", "source": 5},
        code("w", metadata={"nbgrader": {"grade_id": ["list"]}}),
        nbformat_minor=2,
    )
    hand_in(folder, old)
    submission = read(folder)
    assert submission.cells == (
        ("code", "toy", "x = 1\ny = 2"),
        ("code", "", "z"),
        ("markdown", "", "text"),
        ("code", "", "w"),
    )
    assert submission.warnings == ("2 malformed cells were left out",)
    assert len({cell["id"] for cell in submission.notebook()["cells"]}) == 4


def test_text_that_no_file_can_hold_is_replaced(folder, tmp_path):
    hand_in(folder, b'{"nbformat": 4, "cells": [{"cell_type": "code", "source": "a\\ud800b"}]}')
    submission = read(folder)
    assert submission.cells == (("code", "", "a?b"),)
    stage(submission, tmp_path / "staged")


@pytest.mark.parametrize(
    ("text", "kept"),
    [
        ("2025-02-03 04:05:06 UTC", "2025-02-03 04:05:06 UTC"),
        ("2025-02-03 04:05:06.5 +0200", "2025-02-03 02:05:06 UTC"),
        ("2025-02-03 04:05:06 America/Los_Angeles", "2025-02-03 12:05:06 UTC"),
        ("2025-02-03 04:05:06", "2025-02-03 04:05:06 UTC"),
        ("2025-02-03 04:05:06 No/Where", ""),
        ("2025-02-03 04:05:06 Europe", ""),
        ("2025-02-30 04:05:06", ""),
        ("0001-01-01 00:00:00 +0200", ""),
        ("soon", ""),
        ("9" * 90, ""),
        ("9" * 5000, ""),
        ("\u0663", ""),
    ],
)
def test_timestamps_are_checked(folder, text, kept):
    hand_in(folder, notebook())
    (folder / "timestamp.txt").write_text(text)
    submission = read(folder)
    assert submission.timestamp == kept
    assert bool(submission.warnings) == (not kept)


def test_only_the_notebook_and_the_timestamp_are_staged(folder, tmp_path):
    hand_in(folder, notebook(code("x = 1")), "my work.ipynb")
    (folder / "timestamp.txt").write_text("2025-02-03 04:05:06 UTC")
    (folder / "passwd").symlink_to("/etc/passwd")
    (folder / "sub").mkdir()
    (folder / "sub" / "data.csv").write_text("1")
    target = stage(read(folder), tmp_path / "staged")
    assert sorted(path.name for path in target.rglob("*")) == [f"{NAME}.ipynb", "timestamp.txt"]
    hand_in(folder, b"broken", "my work.ipynb")
    stage(read(folder), tmp_path / "staged")
    staged = json.loads((target / f"{NAME}.ipynb").read_text())
    assert staged["cells"] == []
    assert "not valid JSON" in staged["metadata"]["policylab"]["problem"]


def test_names_of_files_reach_messages_without_control_characters(folder):
    hand_in(folder, notebook(), "\x1b[31mred\u202e.ipynb")
    assert "\x1b" not in read(folder).warnings[0]
    assert "\u202e" not in read(folder).warnings[0]


def test_a_notebook_that_is_parsed_already_is_cleaned_the_same_way(folder):
    dirty = notebook(code("x = 1", "toy"), metadata={"policylab": {"problem": "forged"}})
    hand_in(folder, dirty)
    assert clean_notebook(dirty) == read(folder).notebook()
