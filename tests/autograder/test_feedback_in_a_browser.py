# SPDX-License-Identifier: MIT
"""The feedback page in Chromium: nothing runs, nothing is fetched, everyone can read it."""

import os
import shutil
from importlib.util import find_spec
from pathlib import Path

import pytest

from autograder.feedback import make_feedback
from autograder.grade import grade_assignment

TOY = "03_toy"
HOSTILE = "<script>document.title='owned'</script><img src='http://127.0.0.1:9/x'>"

pytestmark = [pytest.mark.browser, pytest.mark.usefixtures("pretend_checks")]


def skip(reason):
    """Skip, or fail where the environment promises that nothing is missing."""
    if os.environ.get("POLICYLAB_REQUIRE") == "1":
        pytest.fail(f"POLICYLAB_REQUIRE=1, but: {reason}")
    pytest.skip(reason)


@pytest.fixture
def chromium():
    path = shutil.which("chromium") or shutil.which("google-chrome")
    if path is None or find_spec("playwright") is None:
        skip("no Chromium, or no playwright (extra `dev`)")
    from playwright.sync_api import sync_playwright

    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(
            executable_path=path, args=["--no-sandbox", "--disable-gpu"]
        )
        yield browser
        browser.close()


@pytest.fixture
def axe():
    spec = find_spec("axe_playwright_python")
    if spec is None or spec.origin is None:
        skip("no axe-playwright-python (extra `dev`)")
    return (Path(spec.origin).parent / "axe.min.js").read_text(encoding="utf-8")


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_the_page_is_inert_and_accessible(
    released_course, hand_in, answering, chromium, axe, scheme
):
    def edit(notebook):
        answering(toy_1_scale_answer=f"# error\nx = '''{HOSTILE}'''", toy_3_why=HOSTILE)(notebook)
        del notebook["cells"][3]

    hand_in("ada", edit)
    grade_assignment(released_course, TOY)
    (path,), _ = make_feedback(released_course, TOY)
    context = chromium.new_context(
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
    page.evaluate(axe)
    result = page.evaluate("axe.run(document, {preload: false})")
    broken = [(item["id"], item["nodes"][0]["html"]) for item in result["violations"]]
    assert broken == []
