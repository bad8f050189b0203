# SPDX-License-Identifier: MIT
"""Numbers taken from a run: each one written into a page is there in the built page."""

import re
from pathlib import Path

BOOK = Path(__file__).resolve().parents[2] / "book"


def test_every_number_that_prose_asks_for_is_shown(html, document):
    """A NumPy scalar has no format that glue knows: it is dropped without a warning."""
    source = (BOOK / f"{document}.md").read_text(encoding="utf-8")
    page = (html / f"{document}.html").read_text(encoding="utf-8")
    shown = re.findall(r'<span class="pasted-text">(.*?)</span>', page)
    assert len(shown) == len(re.findall(r"\{glue:text\}`", source))
    assert "" not in shown and "nan" not in shown
