# SPDX-License-Identifier: MIT
import re
from html.parser import HTMLParser

import pytest

from autograder.converters import convert
from autograder.course import CourseError
from autograder.feedback import highlight_python, make_feedback, plain
from autograder.grade import grade_assignment

TOY = "03_toy"
VOID = {"meta", "link", "img", "br", "hr", "input"}

pytestmark = pytest.mark.usefixtures("pretend_checks")


class Page(HTMLParser):
    """Collects tags and text, and the tags that are not closed."""

    def __init__(self, html):
        super().__init__()
        self.tags, self.open, self.texts = [], [], []
        self.feed(html)
        self.text = re.sub(r"\s+", " ", "".join(self.texts))

    def handle_starttag(self, tag, attributes):
        self.tags.append((tag, dict(attributes)))
        if tag not in VOID:
            self.open.append(tag)

    def handle_endtag(self, tag):
        if tag in VOID:
            return
        assert self.open.pop() == tag

    def handle_data(self, data):
        self.texts.append(data)


@pytest.fixture
def page_of(released_course, hand_in, answering):
    """Grade one submission and return its feedback page, as text and parsed."""

    def make(edit, student="ada"):
        hand_in(student, edit)
        grade_assignment(released_course, TOY)
        pages, failures = make_feedback(released_course, TOY, [student])
        assert failures == []
        html = pages[0].read_text(encoding="utf-8")
        return html, Page(html)

    return make


def test_each_check_shows_title_points_status_and_hint(page_of, answering):
    _, page = page_of(answering(toy_1_scale_answer="# error"))
    assert "multiplies each number" in page.text
    assert "0 / 1" in page.text
    assert "Hint: use *" in page.text
    assert "ValueError in <b>your</b> line" in page.text  # shown as text


def test_passed_checks_show_no_hint(page_of, answering):
    _, page = page_of(answering(toy_1_scale_answer="# passed", toy_3_why="Since."))
    assert "Hint:" not in page.text
    assert "7 of 9 points so far" in page.text
    assert "to be graded by hand" in page.text


def test_nothing_for_instructors_is_shown(page_of, answering):
    html, _ = page_of(answering(toy_1_scale_answer="# error"))
    assert "hidden value" not in html
    assert "42" not in re.sub(r"<style>.*?</style>", "", html, flags=re.DOTALL)


HOSTILE = [
    "<script>alert(1)</script>",
    "<img src=x onerror=alert(1)>",
    "</pre></div></section><iframe src='https://example.org'></iframe>",
    "[link](javascript:alert(1)) ![](https://example.org/pixel.png)",
    "{{ resources }} {% raw %} ${7*7}",
    "$\\href{javascript:alert(1)}{x}$",
    "<style>* { display: none }</style><link rel=stylesheet href=//example.org>",
]


@pytest.mark.parametrize("text", HOSTILE)
def test_text_of_the_student_is_never_markup(page_of, answering, text):
    html, page = page_of(
        answering(toy_3_why=text, toy_1_scale_answer=f"# {text}\nx = '''{text}'''")
    )
    allowed = "html head meta title style body header main section nav table thead tbody tr th td"
    allowed += " h1 h2 p ul li a span strong code pre div footer details summary"
    assert {tag for tag, _ in page.tags} <= set(allowed.split())
    assert page.open == []
    for tag, attributes in page.tags:
        assert not any(name.startswith("on") for name in attributes)
        assert tag != "a" or attributes["href"].startswith("#")
    assert re.sub(r"\s+", " ", text) in page.text


def test_the_page_may_load_and_run_nothing(page_of, answering):
    html, page = page_of(answering(toy_1_scale_answer="# error"))
    policies = [
        attributes["content"]
        for tag, attributes in page.tags
        if attributes.get("http-equiv") == "Content-Security-Policy"
    ]
    assert policies == [
        "default-src 'none'; style-src 'unsafe-inline'; base-uri 'none'; form-action 'none'"
    ]
    assert "://" not in html
    assert "url(" not in html
    assert not any("src" in attributes for _, attributes in page.tags)


def test_control_and_bidi_characters_are_shown_as_replaced(page_of, answering):
    html, _ = page_of(
        answering(toy_3_why="\x1b[31mred\u202eevil\u2066", toy_1_scale_answer="x = '\u202e'")
    )
    assert not re.search("[\x1b\u202e\u2066]", html)
    assert "\ufffd" in html


def test_saved_outputs_and_attachments_are_not_shown(page_of, answering):
    def edit(notebook):
        notebook["cells"][1]["outputs"] = [
            {"output_type": "stream", "name": "stdout", "text": "saved-canary"}
        ]
        notebook["cells"][6]["attachments"] = {"a.png": {"image/png": "attached-canary"}}

    html, _ = page_of(edit)
    assert "canary" not in html


def test_an_unreadable_file_is_explained(page_of):
    _, page = page_of(lambda notebook: "<<<<<<< HEAD\n")
    assert "Your notebook could not be read" in page.text
    assert "merge conflict markers" in page.text


def test_repairs_and_faults_are_explained(page_of, answering):
    def edit(notebook):
        answering(toy_1_scale_answer="# grader_fault")(notebook)
        del notebook["cells"][3]

    _, page = page_of(edit)
    assert "toy_1_scale was missing and is back as it was released" in page.text
    assert "A person will grade it" in page.text


def test_a_comment_is_text_too(page_of, answering, released_course):
    page_of(answering(toy_1_scale_answer="# passed"))
    from nbgrader.api import Gradebook

    with Gradebook(released_course.db_url) as gradebook:
        comment = gradebook.find_comment("toy_1_scale_answer", TOY, TOY, "ada")
        comment.manual_comment = "Well done <i>really</i>"
        gradebook.db.commit()
    pages, _ = make_feedback(released_course, TOY)
    assert "Well done &lt;i&gt;really" in pages[0].read_text(encoding="utf-8")


def test_nbgrader_itself_makes_the_same_page(page_of, answering, released_course):
    html, _ = page_of(answering(toy_1_scale_answer="# error"))
    page = released_course.feedback / "ada" / TOY / f"{TOY}.html"
    page.unlink()
    convert("GenerateFeedback", released_course, TOY, student="*")
    assert page.read_text(encoding="utf-8") == html


def test_feedback_holds_nothing_but_the_page(page_of, answering, released_course):
    page_of(answering(toy_1_scale_answer="# passed"))
    folder = released_course.feedback / "ada" / TOY
    assert [path.name for path in folder.iterdir()] == [f"{TOY}.html"]


def page_of_formgrader(course):
    """Grade the toy assignment; return formgrader's page of the submission by ada.

    The course's settings go over formgrader's own, as FormgradeExtension.initialize has it.
    """
    from nbconvert.exporters import HTMLExporter
    from nbgrader.server_extensions.formgrader.formgrader import FormgradeExtension

    grade_assignment(course, TOY)
    config = FormgradeExtension().build_extra_config()
    config.merge(course.config())
    notebook = course.autograded / "ada" / TOY / f"{TOY}.ipynb"
    resources = {"base_url": "", "submission_id": "1", "index": 0, "total": 1}
    resources |= {"assignment_id": TOY, "notebook_id": TOY, "student": "ada"}
    resources |= {"first_name": "", "last_name": "", "notebook_path": ""}
    html, _ = HTMLExporter(config=config).from_filename(str(notebook), resources=resources)
    return html


def test_formgrader_has_a_field_for_the_mark_of_each_cell(released_course, hand_in, answering):
    hand_in("ada", answering(toy_3_why="Because."))
    html = page_of_formgrader(released_course)
    fields = re.findall(r'<input class="score[^>]* id="([^"]*)"', html)
    assert "toy_3_why" in fields


@pytest.mark.parametrize(
    "text",
    [
        "<script>alert(1)</script>",
        "so <img src=x onerror=alert(1)> it is",
        "```mermaid\n<img src=x onerror=alert(1)>\n```",
        "```x<img src=x onerror=alert(1)>\n<img src=x onerror=alert(1)>\n```",
        "[link](javascript:alert(1)) ![shot](attachment:pasted.png) ![a](http://x.test/y.png)",
        "# <img src=x onerror=alert(1)>\n\n$$<img src=x onerror=alert(1)>$$",
        '[a](http://x.test/"onclick="alert(1) "\\" onclick=\\"alert(1)")',
    ],
)
def test_text_of_the_student_is_no_markup_in_formgrader(released_course, hand_in, answering, text):
    hand_in("ada", answering(toy_3_why=f"Since 1 < 2:\n\n{text}"))
    html = page_of_formgrader(released_course)
    answer = Page(re.search(r"<p>Since 1 &lt; 2:.*?(?=</div>)", html, re.DOTALL).group())
    assert not {tag for tag, _ in answer.tags} & {"img", "script"}
    for _, attributes in answer.tags:
        assert not any(name.startswith("on") for name in attributes)
        assert not attributes.get("href", "").startswith(("javascript:", "data:"))


def test_what_is_missing_is_named(released_course, hand_in):
    with pytest.raises(CourseError, match="nothing is graded"):
        make_feedback(released_course, TOY)
    hand_in("ada")
    grade_assignment(released_course, TOY)
    with pytest.raises(CourseError, match="Did you mean 'ada'"):
        make_feedback(released_course, TOY, ["adda"])


def test_highlighting_escapes_everything():
    html = str(highlight_python("x = '<b>' # </pre> & \x1b"))
    assert "<b>" not in html and "</pre>" not in html and "&amp;" in html
    assert plain(None) == ""
