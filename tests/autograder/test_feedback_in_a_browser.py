# SPDX-License-Identifier: MIT
"""The feedback page in Chromium: nothing runs, nothing is fetched, everyone can read it."""

import pytest

from autograder.feedback import make_feedback
from autograder.grade import grade_assignment

TOY = "03_toy"
HOSTILE = "<script>document.title='owned'</script><img src='http://127.0.0.1:9/x'>"

pytestmark = [pytest.mark.browser, pytest.mark.usefixtures("pretend_checks")]


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_the_page_is_inert_and_accessible(
    released_course, hand_in, answering, browser, axe_source, scheme
):
    def edit(notebook):
        answering(toy_1_scale_answer=f"# error\nx = '''{HOSTILE}'''", toy_3_why=HOSTILE)(notebook)
        del notebook["cells"][3]

    hand_in("ada", edit)
    grade_assignment(released_course, TOY)
    (path,), _ = make_feedback(released_course, TOY)
    context = browser.new_context(
        color_scheme=scheme, viewport={"width": 420, "height": 800}, bypass_csp=True
    )
    page = context.new_page()
    requests, errors = [], []
    page.on("request", lambda request: requests.append(request.url))
    page.on("console", lambda message: errors.append(message.text))
    page.goto(path.as_uri())
    assert page.title() == f"Feedback: {TOY}"
    assert (requests, errors) == ([path.as_uri()], [])
    width = page.evaluate("[document.documentElement.scrollWidth, window.innerWidth]")
    assert width[0] <= width[1]
    page.evaluate("document.querySelectorAll('details').forEach(item => item.open = true)")
    page.evaluate(axe_source)
    result = page.evaluate("axe.run(document, {preload: false})")
    broken = [(item["id"], item["nodes"][0]["html"]) for item in result["violations"]]
    assert broken == []
