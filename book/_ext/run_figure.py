# SPDX-License-Identifier: MIT
"""Figures that an executed cell made: the SVG of `policylab.plots.show`, put inline.

Inline, a figure follows the page's colour mode: each colour of the house style becomes a CSS
variable, which book/_static/figures.css gives a value for light and one for dark. Builders other
than HTML keep the picture as a file.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any, ClassVar
from xml.etree import ElementTree

from docutils import nodes
from sphinx.application import Sphinx
from sphinx.transforms.post_transforms import SphinxPostTransform
from sphinx.util import logging
from svg_figure import SVG

LOGGER = logging.getLogger(__name__)

# The colours of policylab/plots.py, which is not imported here: it would load matplotlib in every
# build. tests/book/test_run_figures.py compares the two.
COLOURS = {
    "#0072b2": "var(--figure-1)",
    "#d55e00": "var(--figure-2)",
    "#007a5a": "var(--figure-3)",
    "#6a3d9a": "var(--figure-4)",
    "#333333": "var(--figure-5)",
    "#8a8a8a": "var(--figure-single-run)",
    "#d9d9d9": "var(--figure-grid)",
    "#ffffff": "var(--figure-background)",
    "#000000": "currentColor",
    "none": "none",
}
# What matplotlib writes as `style`, and SVG knows as attributes as well.
ATTRIBUTES = frozenset(
    """fill fill-opacity fill-rule stroke stroke-width stroke-opacity stroke-linecap
    stroke-linejoin stroke-dasharray stroke-dashoffset stroke-miterlimit opacity
    font-family font-size font-style font-weight text-anchor""".split()
)
REFERENCE = re.compile(r"url\(#([\w-]+)\)")
HREF = "{http://www.w3.org/1999/xlink}href"
PIXELS_PER_POINT = 4 / 3


def setup(app: Sphinx) -> dict[str, Any]:
    app.add_post_transform(InlineRunFigures)
    return {"version": "1", "parallel_read_safe": True, "parallel_write_safe": True}


class InlineRunFigures(SphinxPostTransform):
    """Replace each SVG that a cell wrote by its inline form."""

    default_priority = 5  # before Sphinx copies what is left as an image
    formats: ClassVar = ("html",)

    def run(self, **kwargs: Any) -> None:
        made = [
            node
            for node in self.document.findall(nodes.image)
            if node["uri"].endswith(".svg") and "jupyter_execute" in node["uri"]
        ]
        for number, node in enumerate(made, start=1):
            text = (Path(self.env.srcdir) / node["uri"]).read_text(encoding="utf-8")
            try:
                drawing = inline_figure(text, prefix=f"run-figure-{number}")
            except ValueError as problem:
                LOGGER.warning("figure %d of this page: %s", number, problem, location=node)
            else:
                node.replace_self(nodes.raw("", drawing, format="html"))


def inline_figure(text: str, *, prefix: str) -> str:
    """Rewrite a figure's SVG for use inside a page.

    Args:
        text: the SVG that `policylab.plots.show` made; its title is the alternative text.
        prefix: makes ids unique in the page.
    Returns: an <svg> whose colours are CSS variables and whose name is the alternative text.
    Raises: ValueError if it has no title, or a colour or style that would not follow the mode.
    """
    root = ElementTree.fromstring(text)
    title = root.find(f"{{{SVG}}}title")
    if title is None or not (title.text or "").strip():
        raise ValueError(
            "it has no alternative text. End the cell with show(fig, alt=...) of policylab.plots."
        )
    root.remove(title)  # as an element it would pop up wherever the pointer rests
    for parent in list(root.iter()):
        for child in list(parent):
            if child.tag == f"{{{SVG}}}style":  # one rule for all; the root's attributes say it
                parent.remove(child)
    used = _referenced(root)
    for node in root.iter():
        _move_style(node)
        _rename(node, used, prefix)
    width = root.attrib.pop("width", "")
    root.attrib.pop("height", None)
    if width.endswith("pt"):
        root.set("width", f"{float(width[:-2]) * PIXELS_PER_POINT:.0f}")
    root.attrib |= {
        "role": "img",
        "class": "run-figure",
        "aria-label": " ".join((title.text or "").split()),
        "fill": "currentColor",  # matplotlib leaves black out, which is SVG's own default
        "stroke-linejoin": "round",
        "stroke-linecap": "butt",
    }
    return re.sub(r">\s+<", "><", ElementTree.tostring(root, encoding="unicode"))


def _referenced(root: ElementTree.Element) -> set[str]:
    """The ids that something in the drawing refers to; matplotlib writes many more."""
    found = set()
    for node in root.iter():
        found |= {node.attrib[HREF].removeprefix("#")} if HREF in node.attrib else set()
        found |= {name for value in node.attrib.values() for name in REFERENCE.findall(value)}
    return found


def _move_style(node: ElementTree.Element) -> None:
    """Turn a `style` into attributes, with colours that follow the mode."""
    for declaration in filter(str.strip, node.attrib.pop("style", "").split(";")):
        name, _, value = (part.strip() for part in declaration.partition(":"))
        if name not in ATTRIBUTES:
            raise ValueError(f"its style {name!r} has no attribute of the same meaning in SVG")
        if name in ("fill", "stroke") and not REFERENCE.fullmatch(value):
            if value not in COLOURS:
                known = ", ".join(COLOURS)
                raise ValueError(
                    f"its colour {value} has no value for dark pages. Take colours from "
                    f"policylab.plots; those are {known}."
                )
            value = COLOURS[value]
        node.set(name, value)


def _rename(node: ElementTree.Element, used: set[str], prefix: str) -> None:
    """Keep the ids that are referred to, made unique by the prefix; drop the others."""
    name = node.attrib.pop("id", None)
    if name in used:
        node.set("id", f"{prefix}-{name}")
    if HREF in node.attrib:
        node.set("href", f"#{prefix}-{node.attrib.pop(HREF).removeprefix('#')}")
    for key, value in node.attrib.items():
        node.set(key, REFERENCE.sub(rf"url(#{prefix}-\1)", value))
