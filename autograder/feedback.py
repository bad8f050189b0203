# SPDX-License-Identifier: MIT
"""`autograder feedback`: one page per submission, for the student.

It shows scores, the checks' titles, hints and safe messages, comments, and the student's own text;
all of it as escaped text, in a page that may load nothing and run nothing.  Titles and hints are
the check author's and hold no hidden input (contract: a check's detail never gets here).
"""

from collections.abc import Sequence
from pathlib import Path

from markupsafe import Markup
from pygments import highlight  # type: ignore[import-untyped]
from pygments.formatters import HtmlFormatter  # type: ignore[import-untyped]
from pygments.lexers import PythonLexer  # type: ignore[import-untyped]

from autograder.cleaning import clean
from autograder.converters import ConversionError, convert
from autograder.course import Course, CourseError
from autograder.suggest import did_you_mean

__all__ = ["highlight_python", "make_feedback", "plain"]

MAX_TEXT = 50_000


def make_feedback(
    course: Course, assignment: str, students: Sequence[str] = ()
) -> tuple[list[Path], list[str]]:
    """Write feedback/STUDENT/`assignment`; return the pages, and what went wrong with others.

    Raises: CourseError if there is nothing to write feedback for, or an unknown student.
    """
    course.require_assignment(assignment)
    graded = sorted(
        path.parent.parent.name
        for path in course.autograded.glob(f"*/{assignment}/{assignment}.ipynb")
    )
    if not graded:
        raise CourseError(f"nothing is graded. Run: autograder grade {assignment}")
    for student in students:
        if student not in graded:
            raise CourseError(
                f"{student!r} has no grade for {assignment}{did_you_mean(student, graded)}"
            )
    pages, failures = [], []
    with course.locked():
        for student in students or graded:
            try:
                convert("GenerateFeedback", course, assignment, student=student)
            except ConversionError as error:
                failures.append(f"{student}: {error}")
            else:
                pages.append(course.feedback / student / assignment / f"{assignment}.html")
    return pages, failures


def plain(text: object) -> str:
    """Return text without control and bidi characters; the template escapes it."""
    return clean(str(text or ""), MAX_TEXT)


def highlight_python(source: object) -> Markup:
    """Return Python source as HTML, every character of it escaped, with classes for colour."""
    formatter = HtmlFormatter(nowrap=True)
    # Pygments escapes the text of each token.
    return Markup(highlight(plain(source), PythonLexer(stripnl=False), formatter))
