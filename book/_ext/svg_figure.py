# SPDX-License-Identifier: MIT
"""`{svg-figure} path`: a numbered figure whose drawing is a hand-written SVG, put inline.

An SVG in an <img> is a document of its own: `currentColor` is black there, and its colours follow
the system, not the page's switch. Inline, it follows the page's colour mode. So a drawing may use
no fixed colour, and needs a title (and may have a description) for those who cannot see it.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any, ClassVar
from xml.etree import ElementTree

from docutils import nodes
from docutils.parsers.rst import directives
from sphinx.application import Sphinx
from sphinx.util.docutils import SphinxDirective

SVG = "http://www.w3.org/2000/svg"
FORBIDDEN = frozenset({"script", "style", "image", "foreignobject", "a", "animate", "set"})
FOLLOWS_MODE = re.compile(r"none|currentColor|var\(--[\w-]+\)|url\(#[\w-]+\)")
LOCAL_REFERENCE = re.compile(r"url\(#|^#")
FOREIGN_URL = re.compile(r"url\((?!#)", re.IGNORECASE)

ElementTree.register_namespace("", SVG)


def setup(app: Sphinx) -> dict[str, Any]:
    app.add_directive("svg-figure", SvgFigure)
    return {"version": "1", "parallel_read_safe": True, "parallel_write_safe": True}


class SvgFigure(SphinxDirective):
    """The content's first paragraph is the caption; what follows is the legend."""

    required_arguments = 1
    final_argument_whitespace = True
    has_content = True
    option_spec: ClassVar = {"name": directives.unchanged}

    def run(self) -> list[nodes.Node]:
        relative, absolute = self.env.relfn2path(self.arguments[0])
        self.env.note_dependency(relative)
        try:
            number = self.env.new_serialno("svg-figure") + 1
            drawing = inline_svg(Path(absolute), prefix=f"drawing-{number}")
        except (OSError, ValueError, ElementTree.ParseError) as problem:
            raise self.error(f"svg-figure {relative}: {problem}") from problem
        return [captioned_figure(self, nodes.raw("", drawing, format="html"))]


def captioned_figure(directive: SphinxDirective, picture: nodes.Node) -> nodes.figure:
    """Make a numbered figure of a picture, with the directive's content as caption and legend."""
    content = nodes.Element()
    directive.state.nested_parse(directive.content, directive.content_offset, content)
    if not content.children or not isinstance(content[0], nodes.paragraph):
        subject = f"{directive.name} {directive.arguments[0]}"
        raise directive.error(f"{subject} must have a caption; got none. Write it as the content.")
    figure = nodes.figure("", picture)
    figure += nodes.caption(content[0].rawsource, "", *content[0].children)
    if content.children[1:]:
        figure += nodes.legend("", *content.children[1:])
    directive.set_source_info(figure)
    directive.add_name(figure)
    return figure


def inline_svg(path: Path, *, prefix: str) -> str:
    """Read an SVG file and check it.

    Args:
        path: the file.
        prefix: makes ids unique in the page, where the same drawing may stand twice.
    Raises: ValueError if the drawing has no viewBox or title, would not follow the colour mode, or
        loads something.
    """
    root = ElementTree.parse(path).getroot()
    title, desc = root.find(f"{{{SVG}}}title"), root.find(f"{{{SVG}}}desc")
    if root.tag != f"{{{SVG}}}svg" or "viewBox" not in root.attrib:
        raise ValueError("an <svg> with a viewBox is needed")
    if title is None or not (title.text or "").strip():
        raise ValueError("a <title> is needed: it is the drawing's name for screen readers")
    names = {"title": title} if desc is None else {"title": title, "desc": desc}
    for name, node in names.items():
        node.set("id", name)
    for node in root.iter():
        _check_and_rename(node, prefix=prefix)
    root.set("role", "img")
    root.set("class", "course-diagram")
    root.set("aria-labelledby", " ".join(f"{prefix}-{name}" for name in names))
    return ElementTree.tostring(root, encoding="unicode")


def _check_and_rename(node: ElementTree.Element, *, prefix: str) -> None:
    tag = node.tag.rpartition("}")[2]
    if tag.lower() in FORBIDDEN:  # inline, HTML reads it, where case means nothing
        raise ValueError(f"<{tag}> is not allowed")
    for key, value in list(node.attrib.items()):
        name = key.rpartition("}")[2].lower()
        leaves = name == "href" and not value.startswith("#")
        if name == "style" or name.startswith("on") or leaves or FOREIGN_URL.search(value):
            raise ValueError(f'the attribute {key}="{value}" is not allowed')
        if key in ("fill", "stroke") and not FOLLOWS_MODE.fullmatch(value):
            raise ValueError(f'{key}="{value}" does not follow the colour mode')
        if key == "id":
            value = f"{prefix}-{value}"
        node.set(key, LOCAL_REFERENCE.sub(lambda found: f"{found[0]}{prefix}-", value))
