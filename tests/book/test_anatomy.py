# SPDX-License-Identifier: MIT
"""Each chapter has the parts that all chapters have, and agrees with its exercise notebook."""

import json
import re
from pathlib import Path
from typing import NamedTuple

import pytest

ROOT = Path(__file__).resolve().parents[2]
BOOK = ROOT / "book"
CHAPTERS = sorted(path.stem for path in BOOK.glob("[0-9][0-9]_*.md"))
QUESTION = re.compile(r"^:::\{question\}(.*?)^:::$", re.M | re.S)
CHOICE = re.compile(r"^- \[([ x])\] (.+\n)((?:\n|  .*\n)*)", re.M)


class Exercise(NamedTuple):
    """One exercise as its header in the notebook gives it."""

    number: str
    name: str
    difficulty: str
    minutes: int
    points: int


@pytest.fixture(params=CHAPTERS)
def chapter(request) -> str:
    return request.param


@pytest.fixture
def text(chapter: str) -> str:
    return (BOOK / f"{chapter}.md").read_text(encoding="utf-8")


@pytest.fixture
def exercises(chapter: str) -> list[Exercise]:
    notebook = json.loads(
        (ROOT / "solutions" / chapter / f"{chapter}.ipynb").read_text(encoding="utf-8")
    )
    markdown = "\n".join(
        "".join(cell["source"]) for cell in notebook["cells"] if cell["cell_type"] == "markdown"
    )
    headers = re.findall(
        r"^### Exercise ([\d.]+): (.+)\nDifficulty ([●○]{5}) .*?(\d+) min · (\d+) points",
        markdown,
        re.M,
    )
    return [Exercise(n, name, dots, int(m), int(p)) for n, name, dots, m, p in headers]


def questions(text: str) -> list[str]:
    return QUESTION.findall(text)


def test_there_is_a_chapter():
    assert "02_llm_as_policy" in CHAPTERS


def test_goals_stand_on_top_with_time_and_what_they_build_on(text):
    box = text[text.index("{admonition} You will be able to") :]
    box = box[: box.index("\n:::")]
    assert 3 <= len(re.findall(r"^- ", box, re.M)) <= 5
    assert "**Builds on**" in box
    assert int(re.search(r"Reading: about (\d+) minutes", box)[1]) <= 45
    assert text.index("{admonition} You will be able to") < text.index("\n## ")


def test_minutes_of_the_goals_are_those_of_the_notebook(text, exercises):
    told = int(re.search(r"Exercises: about (\d+) minutes", text)[1])
    assert told == sum(exercise.minutes for exercise in exercises)


def test_table_of_exercises_agrees_with_the_notebook(text, exercises):
    rows = re.findall(r"^\| (\d+\.\d+) \| (.+?) \| ([●○]{5}) \| (\d+) \| (\d+) \|$", text, re.M)
    assert len(exercises) >= 5
    assert [(n, dots, int(m), int(p)) for n, _, dots, m, p in rows] == [
        (e.number, e.difficulty, e.minutes, e.points) for e in exercises
    ]
    for (_, told, *_), exercise in zip(rows, exercises, strict=True):
        assert told.startswith(exercise.name.removeprefix("the ")) or told.startswith(exercise.name)


def test_parts_come_in_the_order_of_all_chapters(text, chapter):
    parts = [
        f"{{exercise-notebook}} {chapter}",
        "{svg-figure} ",
        ":::{explorable} ",
        "\n## Pitfalls\n",
        "\n## In production\n",
        "::::{quiz}",
        "\n## Recap\n",
    ]
    assert [text.count(part) >= 1 for part in parts] == [True] * len(parts)
    places = [text.index(part) for part in parts]
    assert places == sorted(places)


def test_recap_links_the_glossary_and_names_sources(text):
    recap = text[text.index("\n## Recap\n") :]
    assert len(re.findall(r"\{term\}`", recap)) >= 5
    assert "{cite:" in recap


def test_quiz_has_four_to_six_questions(text):
    assert 4 <= len(questions(text)) <= 6


def test_each_question_has_one_right_choice_and_explains_every_choice(text):
    for question in questions(text):
        choices = CHOICE.findall(question)
        assert len(choices) >= 3, question
        assert [mark for mark, _, _ in choices].count("x") == 1, question
        assert [line for _, line, why in choices if len(why.split()) < 8] == []


def test_right_choices_do_not_stand_at_one_place(text):
    places = [
        [mark for mark, _, _ in CHOICE.findall(question)].index("x") for question in questions(text)
    ]
    assert len(set(places)) >= 2


def test_figures_say_in_words_what_they_show(text):
    """Each figure of a run ends with `show`, whose alt text is made from the run's numbers."""
    cells = re.findall(r"^```\{code-cell\} python\n(.*?)^```", text, re.M | re.S)
    for cell in (cell for cell in cells if "plt.subplots" in cell):
        alt = cell[cell.index("show(") :]
        assert "alt=" in alt and re.search(r"\{.*:\.\df\}", alt), cell


def test_no_chapter_links_to_a_chapter_that_is_not_there(text):
    assert set(re.findall(r"\]\((\d\d_\w+)\.md\)", text)) <= set(CHAPTERS)
