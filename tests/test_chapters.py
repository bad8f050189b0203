# SPDX-License-Identifier: MIT
"""Each chapter has all its parts, and nothing in it is still to be written.

`autograder chapter NN_slug --check` prints the same list.  How to write what is missing stands in
CONTRIBUTING.md.
"""

from pathlib import Path

import pytest

from autograder.chapter import Chapter, chapters, needs_of

ROOT = Path(__file__).resolve().parents[1]
CHAPTERS = chapters(ROOT)

pytestmark = pytest.mark.parametrize("chapter", CHAPTERS, ids=[c.name for c in CHAPTERS])


def test_the_chapter_has_every_part(chapter: Chapter):
    unmet = [need for need in needs_of(chapter) if not need.is_met and need.part != "everywhere"]
    missing = [f"{need.part} {need.needed}; there: {need.there}" for need in unmet]
    assert missing == [], f"run: autograder chapter {chapter.name} --check"


def test_nothing_is_still_to_be_filled_in(chapter: Chapter):
    assert [str(mark) for mark in chapter.marks()] == []
