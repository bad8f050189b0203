# SPDX-License-Identifier: MIT
"""`autograder chapter`: what it lays out, what it refuses, and what it finds missing."""

import ast
import json
import shutil
from pathlib import Path

import nbformat
import pytest
import yaml

from autograder.chapter import Chapter, ChapterError, chapter_at, needs_of, plan
from autograder.chapter.contents import with_chapter
from autograder.chapter.library import Answer, answer_cell, find_answer
from autograder.cli import main

NAME = "03_reward_models"
FUNCTIONS = ["preference_probability", "bradley_terry_loss"]
GOAL = "- FILL something a reader can show after the chapter, as a verb with its object;"
TOC = """\
# a comment that stays
format: jb-book
root: index
parts:
  - caption: Foundations
    chapters:
      - file: 02_llm_as_policy
  - caption: Reference
    chapters:
      - file: notation
"""
LIBRARY = '''\
import math

import torch
from torch import Tensor

from policylab.exercise import exercise
from policylab.shapes import check_rank, check_shape


def other(x):
    return math.exp(x)


@exercise("03_reward_models")
def preference_probability(score_a: Tensor, score_b: Tensor, *, scale: float = 1.0) -> Tensor:
    """Give the probability that the first of two completions is preferred, by Bradley and Terry.

    Source: Bradley and Terry 1952,
    equation 1.

    Args:
        score_a: (B,) the first's score, in units of the scale, of any sign and any size, finite.
        score_b: (B,) the second's.
    Returns: (B,) probabilities.
    """
    check_rank("score_a", score_a, "(B,)")
    # The difference alone counts.
    difference = torch.clamp(score_a - score_b, min=-1000.0, max=1000.0) / torch.as_tensor(scale)
    return torch.sigmoid(difference)
'''


@pytest.fixture
def root(tmp_path) -> Path:
    """A checkout with a table of contents, a library and one chapter's page."""
    for folder in ("book", "policylab", "solutions"):
        (tmp_path / folder).mkdir()
    (tmp_path / "nbgrader_config.py").write_text("")
    (tmp_path / "_toc.yml").write_text(TOC)
    (tmp_path / "book" / "02_llm_as_policy.md").write_text("# Chapter 2\n")
    return tmp_path


@pytest.fixture
def command(root, capsys):
    """Run `autograder chapter`; return its status, stdout and stderr."""

    def run(*arguments):
        status = main(["chapter", *arguments, "--course-root", str(root)])
        captured = capsys.readouterr()
        return status, captured.out, captured.err

    return run


def files_of(root: Path) -> dict[str, bytes]:
    return {str(p.relative_to(root)): p.read_bytes() for p in root.rglob("*") if p.is_file()}


def new(*options):
    return [NAME, "--title", "Reward models", "--functions", ",".join(FUNCTIONS), *options]


def test_it_lays_out_what_it_prints(command, root):
    before = files_of(root)
    status, out, err = command(*new("--module", "preferences"))
    after = files_of(root)
    made = set(after) - set(before)
    assert (status, set(out.split())) == (0, made | {"_toc.yml"})
    assert {name for name in before if before[name] != after[name]} == {"_toc.yml"}
    # Page, drawing, script, results, notebook, settings, rubric, module; a function has its checks
    # and 8 wrong, 2 right answers and shaped.py.
    assert len(made) == 8 + 2 * (1 + 8 + 2 + 1)
    assert f"autograder chapter {NAME} --check" in err
    assert f"a stub's arguments for {', '.join(FUNCTIONS)}." in err
    for name in made:
        assert b"<<" not in after[name], name
        if name.endswith(".py"):
            ast.parse(after[name])


def test_a_dry_run_prints_the_same_and_writes_nothing(command, root):
    before = files_of(root)
    _, listed, err = command(*new("--dry-run"))
    assert files_of(root) == before
    assert "would be written" in err
    assert command(*new())[1] == listed


def test_json_is_only_json_and_names_what_the_library_lacks(command, root):
    (root / "policylab" / "preferences.py").write_text(LIBRARY)
    status, out, _ = command(*new("--json"))
    found = json.loads(out)
    assert (status, list(found["to_write"])) == (0, ["bradley_terry_loss"])
    assert found["to_write"]["bradley_terry_loss"].startswith(f'@exercise("{NAME}")\ndef bradley')
    assert f"book/{NAME}.md" in found["files"]


def test_the_notebook_has_the_form_that_solutions_have(command, root):
    command(*new())
    path = Chapter(root, NAME).notebook
    notebook = nbformat.read(path, as_version=4)
    nbformat.validate(notebook)
    assert path.read_text("utf-8") == nbformat.writes(notebook) + "\n"
    labels = [cell.metadata.nbgrader for cell in notebook.cells if "nbgrader" in cell.metadata]
    graded = {label.grade_id: label.points for label in labels if label.grade}
    assert graded == {
        "ex03_1_preference_probability": 4,
        "ex03_2_bradley_terry_loss": 4,
        "ex03_3_interpret": 4,
    }
    assert (
        "12 points (8 by hidden checks, 4 by a person) · about 40 minutes"
        in notebook.cells[0].source
    )


def test_an_answer_cell_is_the_librarys_function_at_a_notebooks_width(root):
    (root / "policylab" / "preferences.py").write_text(LIBRARY)
    answer = find_answer(Chapter(root, NAME), "preference_probability")
    assert answer.imports == ("from policylab.shapes import check_rank",)
    assert answer.parameters == "score_a, score_b, *, scale=1.0"
    text = answer_cell(answer)
    lines = text.splitlines()
    assert max(map(len, lines)) <= 79
    assert lines.index("    ### BEGIN SOLUTION") + 1 == lines.index(
        "    # The difference alone counts."
    )
    assert lines[-1] == "    ### END SOLUTION"
    assert "    check_rank" in text.split("### BEGIN SOLUTION")[0]
    assert "        score_b: (B,) the second's.\n    Returns: (B,) probabilities.\n" in text
    (mine,), (right,) = ast.parse(text).body, ast.parse(answer.source).body
    assert [ast.dump(node) for node in mine.body[1:]] == [ast.dump(node) for node in right.body[1:]]
    assert ast.get_docstring(mine).split() == ast.get_docstring(right).split()


def test_of_a_class_the_last_method_is_the_answer():
    source = (
        "class RewardModel(nn.Module):\n"
        '    """Score a completion."""\n\n'
        "    def __init__(self, width):\n"
        "        super().__init__()\n\n"
        "    def forward(self, ids):\n"
        '        check_rank("ids", ids, "(B, L)")\n'
        "        return ids.sum(dim=1)"
    )
    before, _, after = answer_cell(Answer("RewardModel", source)).partition("### BEGIN SOLUTION")
    assert before.endswith('check_rank("ids", ids, "(B, L)")\n        ')
    assert after == "\n        return ids.sum(dim=1)\n        ### END SOLUTION"


def test_a_function_of_another_exercise_is_refused(root):
    source = LIBRARY.replace(NAME, "05_dpo")
    (root / "policylab" / "preferences.py").write_text(source)
    with pytest.raises(
        ChapterError, match=r"line 15: preference_probability has exercise\('05_dpo"
    ):
        find_answer(Chapter(root, NAME), "preference_probability")
    with pytest.raises(ChapterError, match="other has no mark. Write @exercise"):
        find_answer(Chapter(root, NAME), "other")


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (["3_reward", "--title", "A", "--functions", "f"], "such as 03_reward_models"),
        (["03-reward", "--title", "A", "--functions", "f"], "such as 03_reward_models"),
        (["../03_reward", "--title", "A", "--functions", "f"], "such as 03_reward_models"),
        (["02_other", "--title", "A", "--functions", "f"], "chapter 02 is 02_llm_as_policy"),
        (["02_llm_as_policy"], "these exist: book/02_llm_as_policy.md"),
        ([NAME, "--functions", "f"], '--title "Reward models"'),
        ([NAME, "--title", "A"], "name the graded functions"),
        ([NAME, "--title", "A", "--functions", "f,f"], "f is named twice"),
        ([NAME, "--title", "A", "--functions", "f-g"], "'f-g' is no name for a function"),
        ([NAME, "--title", "A", "--functions", "if"], "'if' is no name for a function"),
        ([NAME, "--title", "A", "--functions", "torch"], "torch means something else"),
        ([NAME, "--title", "A", "--functions", "print"], "print means something else"),
        (["\u0660\u0663_x", "--title", "A", "--functions", "f"], "no name for a chapter"),
        ([NAME, "--title", "A", "--functions", "f", "--module", "../x"], "no module of policylab"),
        ([NAME, "--title", "A", "--functions", "f", "--module", "class"], "no module of policylab"),
        (["03_reward", "--check"], "Known: 02_llm_as_policy"),
    ],
)
def test_wrong_use_is_one_line_and_writes_nothing(command, root, arguments, says):
    before = files_of(root)
    status, out, err = command(*arguments)
    assert (status, out, err.count("\n")) == (2, "", 1)
    assert says in err
    assert files_of(root) == before


def test_nothing_is_overwritten(command, root):
    assert command(*new("--module", "preferences"))[0] == 0
    before = files_of(root)
    status, _, err = command(*new())
    assert (status, f"solutions/{NAME}/{NAME}.ipynb" in err, "more" in err) == (2, True, True)
    assert files_of(root) == before
    shutil.rmtree(root / "solutions")
    (root / "book" / f"{NAME}.md").unlink()
    assert command(*new())[0] == 2  # its checks are still there
    with pytest.raises(ChapterError, match="these exist: policylab/preferences.py"):
        plan(chapter_at(root, "04_ppo"), "PPO", ["gae"], "preferences")


def test_check_says_what_is_missing_and_where(command, root):
    command(*new("--module", "preferences"))
    status, out, _ = command(NAME, "--check")
    assert status == 1
    lines = out.splitlines()
    assert any(line.startswith("missing") and "checks: 25 or more" in line for line in lines)
    assert any(line.startswith("ok") and "checks of bradley_terry_loss" in line for line in lines)
    marks = [line for line in lines if line.startswith("FILL ")]
    assert len(marks) == len({line.split()[1] for line in marks})  # one line a file
    first = (root / "book" / f"{NAME}.md").read_text().splitlines().index(GOAL) + 1
    assert any(line.startswith(f"FILL book/{NAME}.md:{first} and ") for line in marks)
    (cells,) = [line for line in marks if f"{NAME}.ipynb, cells title, how-it-works, " in line]
    assert cells.endswith("ex03-3-question, ex03-3-interpret")
    found = json.loads(command(NAME, "--check", "--json")[1])
    assert "policylab/preferences.py:2" in found["marks"]
    assert {"part": "_toc.yml", "needed": f"file: {NAME}", "there": "yes", "is_met": True} in found[
        "needs"
    ]


@pytest.mark.parametrize(
    ("path", "old", "new_text", "needed"),
    [
        (f"book/{NAME}.md", "::::{quiz}", "::::{note}", "7 quizzes: 1"),
        (f"book/{NAME}.md", "## Pitfalls", "## Slips", "5 section “Pitfalls”: 1"),
        (f"book/{NAME}.md", "show(", "display(", "4 figures of runs, show(…, alt=…): 1 or more"),
        (
            f"book/{NAME}.md",
            "_models.json",
            ".txt",
            "4 claims read from benchmarks/*.json: 1 or more",
        ),
        (
            f"tests/answers/{NAME}/bradley_terry_loss/wrong_no_guard.py",
            "_malformed",
            "_other",
            'each names its check in line 2: "# caught by: …"',
        ),
    ],
)
def test_a_part_that_is_taken_away_is_missed(command, root, path, old, new_text, needed):
    command(*new())
    chapter = Chapter(root, NAME)
    before = {(need.part, need.needed) for need in needs_of(chapter) if not need.is_met}
    text = (root / path).read_text()
    assert old in text
    (root / path).write_text(text.replace(old, new_text))
    after = {(need.part, need.needed) for need in needs_of(chapter) if not need.is_met}
    assert [found for _, found in after - before] == [needed]


def test_missing_files_are_missed(command, root):
    command(*new())
    chapter = Chapter(root, NAME)
    (chapter.checks / "rubric.md").unlink()
    shutil.rmtree(chapter.answers / "bradley_terry_loss")
    chapter.results.unlink()
    missing = {need.needed for need in needs_of(chapter) if not need.is_met}
    assert {"rubric.md", "wrong answers: 8 or more", "shaped.py", "reward_models.json"} <= missing


def test_an_easy_exercise_needs_fewer_wrong_answers(command, root):
    command(*new())
    chapter = Chapter(root, NAME)
    text = chapter.notebook.read_text("utf-8").replace("Difficulty ●●○○○", "Difficulty ●○○○○", 1)
    chapter.notebook.write_text(text, encoding="utf-8")
    needed = [need.needed for need in needs_of(chapter) if need.needed.startswith("wrong answers")]
    assert needed == ["wrong answers: 4 or more", "wrong answers: 8 or more"]


def chapters_in(toc: str) -> list[tuple[str, list[str]]]:
    parts = yaml.safe_load(toc)["parts"]
    return [(part["caption"], [entry["file"] for entry in part["chapters"]]) for part in parts]


def test_chapters_take_their_place_in_the_table_of_contents():
    toc = TOC
    for name in ("05_dpo", "01_beyond_imitation", "90_example", "03_reward_models", "07_grpo"):
        toc = with_chapter(toc, name)
    assert toc.startswith("# a comment that stays\n")
    assert chapters_in(toc) == [
        ("Foundations", ["01_beyond_imitation", "02_llm_as_policy"]),
        ("Human feedback", ["03_reward_models", "05_dpo"]),
        ("Verifiable rewards", ["07_grpo"]),
        ("Agents", ["90_example"]),
        ("Reference", ["notation"]),
    ]
    with pytest.raises(ChapterError, match="lists 05_dpo already"):
        with_chapter(toc, "05_dpo")
