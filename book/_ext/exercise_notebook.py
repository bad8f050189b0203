# SPDX-License-Identifier: MIT
"""`{exercise-notebook} 02_llm_as_policy`: a box with the released notebook to download.

Points and minutes are read from the notebook itself, so that the page cannot disagree with it.
Before a notebook has been released the box says so.
"""

from __future__ import annotations

import json
import re
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from docutils import nodes
from sphinx import addnodes
from sphinx.application import Sphinx
from sphinx.util.docutils import SphinxDirective

EXERCISES = Path(__file__).resolve().parents[2] / "exercises"
MINUTES = re.compile(r"^Difficulty .*?(\d+) min\b", re.MULTILINE)


def setup(app: Sphinx) -> dict[str, Any]:
    app.add_directive("exercise-notebook", ExerciseNotebook)
    return {"version": "1", "parallel_read_safe": True, "parallel_write_safe": True}


@dataclass(frozen=True)
class Summary:
    """What a reader wants to know before the download."""

    exercises: int
    automatic_points: float
    manual_points: float
    minutes: int

    @property
    def sentence(self) -> str:
        text = f"{self.exercises} exercises, {self.automatic_points:g} points graded automatically"
        if self.manual_points:
            text += f" and {self.manual_points:g} by a person"
        return text + (f", about {self.minutes} minutes." if self.minutes else ".")


class ExerciseNotebook(SphinxDirective):
    required_arguments = 1

    def run(self) -> list[nodes.Node]:
        name = self.arguments[0]
        path = EXERCISES / name / f"{name}.ipynb"
        self.env.note_dependency(str(path))
        box = nodes.admonition("", nodes.title("", "The exercise notebook"), classes=["note"])
        if not path.is_file():
            words = nodes.Text(f"The notebook of {name} has not been released yet: run ")
            box += nodes.paragraph("", "", words, nodes.literal("", "make exercises"))
            return [box]
        source = Path(self.env.doc2path(self.env.docname)).parent
        target = Path(*[".."] * len(source.relative_to(EXERCISES.parent).parts), "exercises")
        link = addnodes.download_reference(
            "",
            "",
            nodes.literal("", path.name),
            reftarget=(target / name / path.name).as_posix(),
            refdoc=self.env.docname,
        )
        sentence = summarise(json.loads(path.read_text(encoding="utf-8"))).sentence
        box += nodes.paragraph("", "", nodes.Text("Download "), link, nodes.Text(f": {sentence}"))
        return [box]


def summarise(notebook: dict[str, Any]) -> Summary:
    """Count graded cells, their points, and the minutes that the exercises' headers give."""
    points = {"code": 0.0, "markdown": 0.0}
    exercises = minutes = 0
    for cell in notebook["cells"]:
        source = "".join(cell["source"])
        if cell["cell_type"] == "markdown":
            minutes += sum(int(found) for found in MINUTES.findall(source))
        grading = cell["metadata"].get("nbgrader", {})
        if grading.get("grade"):
            exercises += 1
            points[cell["cell_type"]] += grading["points"]
    return Summary(exercises, points["code"], points["markdown"], minutes)
