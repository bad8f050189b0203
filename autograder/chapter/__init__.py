# SPDX-License-Identifier: MIT
"""`autograder chapter`: lay out the files of a new chapter, and say what a chapter still lacks.

For people who write the course.  What they must fill in is marked by one word, FILL; a test fails
while a chapter has such a mark.  Nothing that exists is ever overwritten.
"""

from autograder.chapter.layout import lay_out, plan
from autograder.chapter.needs import Need, needs_of
from autograder.chapter.places import Chapter, ChapterError, Mark, chapter_at, chapters

__all__ = [
    "Chapter",
    "ChapterError",
    "Mark",
    "Need",
    "chapter_at",
    "chapters",
    "lay_out",
    "needs_of",
    "plan",
]
