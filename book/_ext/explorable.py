# SPDX-License-Identifier: MIT
"""`{explorable} policy-step`: a numbered figure that the reader can change.

The figure is a custom element, defined by a plain script in `book/_static/`. What it shows is told
in `EXPLORABLES`, for readers without JavaScript and for books that are not HTML.
"""

from __future__ import annotations

import difflib
from typing import Any, ClassVar

from docutils import nodes
from docutils.parsers.rst import directives
from sphinx import addnodes
from sphinx.application import Sphinx
from sphinx.util.docutils import SphinxDirective
from svg_figure import captioned_figure

# Name of the element: what the reader would see, in one or two sentences.
EXPLORABLES = {
    "policy-step": (
        "With JavaScript, this figure has sliders for the logits and the rewards of three "
        "completions, for the temperature and for the step size. Buttons take one step of "
        "REINFORCE, and bars show the probabilities before and after it."
    ),
}


def setup(app: Sphinx) -> dict[str, Any]:
    app.add_directive("explorable", Explorable)
    return {"version": "1", "parallel_read_safe": True, "parallel_write_safe": True}


class Explorable(SphinxDirective):
    """The content's first paragraph is the caption; what follows is the legend."""

    required_arguments = 1
    has_content = True
    option_spec: ClassVar = {"name": directives.unchanged}

    def run(self) -> list[nodes.Node]:
        name = self.arguments[0]
        try:
            words = description(name)
        except ValueError as problem:
            raise self.error(str(problem)) from problem
        paragraph = nodes.paragraph("", words)
        without = f"<noscript><p>{words}</p></noscript>"
        element = nodes.raw("", f"<{name}>{without}</{name}>", format="html")
        otherwise = addnodes.only("", paragraph, expr="not html")
        # One node, since docutils' writer looks for the caption in the figure's second place.
        both = nodes.container("", element, otherwise, classes=["explorable"])
        return [captioned_figure(self, both)]


def description(name: str) -> str:
    """Say what an explorable shows. Raises: ValueError if there is none of this name."""
    if name in EXPLORABLES:
        return EXPLORABLES[name]
    close = difflib.get_close_matches(name, EXPLORABLES, n=1)
    advice = f"Did you mean {close[0]}?" if close else "A new one is added to EXPLORABLES."
    raise ValueError(f"explorable must be one of {', '.join(EXPLORABLES)}; got {name}. {advice}")
