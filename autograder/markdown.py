# SPDX-License-Identifier: MIT
"""Markdown of students as HTML, for formgrader: the page that has the instructor's rights.

nbgrader's template puts Markdown's own HTML, and so a student's script, into that page.  Here all
of it is text; links keep http and mail only, and an image is its description, since a submission's
attachments are dropped and nothing may be loaded.
"""

from html import escape
from typing import Any

from nbconvert.filters.markdown_mistune import IPythonRenderer, MarkdownWithMath

from autograder.cleaning import clean

__all__ = ["render_markdown"]

MAX_TEXT = 1_000_000


class _TextOnly(IPythonRenderer):
    """nbconvert's renderer, which knows mathematics, without what passes markup on."""

    def block_mermaidjs(self, code: str) -> str:
        return f"<pre>{escape(code)}</pre>"

    def image(self, text: str, url: str, title: str | None = None) -> str:
        return f"[image: {escape(text)}]"


def render_markdown(source: Any) -> str:
    """Return the source as HTML that runs and loads nothing; a filter of nbconvert's templates."""
    renderer = _TextOnly(escape=True, allow_harmful_protocols=False)
    return str(MarkdownWithMath(renderer=renderer).render(clean(str(source or ""), MAX_TEXT)))
