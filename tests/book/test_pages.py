# SPDX-License-Identifier: MIT
"""Opens the built book in Chromium: errors, requests, formulas, accessibility, colours, phone."""

import pytest

pytestmark = pytest.mark.browser

THEME_NOISE = "Got invalid theme mode"  # the theme logs it once, at a first visit


def watch(page, home: str) -> list[str]:
    """Collect whatever a page complains about or asks of others."""
    problems: list[str] = []

    def console(message):
        if message.type == "error" and THEME_NOISE not in message.text:
            problems.append(f"console: {message.text}")

    def request(sent):
        if not sent.url.startswith((home, "data:", "blob:")):
            problems.append(f"outside request: {sent.url}")

    def response(got):
        if got.status >= 400:
            problems.append(f"{got.status}: {got.url}")

    page.on("pageerror", lambda error: problems.append(f"error: {error}"))
    page.on("console", console)
    page.on("request", request)
    page.on("requestfailed", lambda sent: problems.append(f"failed: {sent.url}"))
    page.on("response", response)
    return problems


def wait_for_math(page) -> None:
    """Wait until every formula is drawn; then none may have an error or lack its MathML."""
    if page.locator(".math").count() == 0:
        return
    page.wait_for_function("window.MathJax && MathJax.startup && MathJax.startup.promise")
    page.evaluate("MathJax.startup.promise.then(() => true)")
    page.wait_for_function(
        "document.querySelectorAll('.math mjx-container').length"
        " === document.querySelectorAll('.math').length"
    )
    assert page.locator("mjx-merror, [data-mjx-error]").count() == 0
    drawn = page.locator(".math mjx-container").count()
    assert page.locator("mjx-assistive-mml math").count() == drawn


# Two visits a page: most of the time goes into waiting for a page to be still. The first is light,
# over http, on a desk and then on a phone; the second is dark and from disk.


def test_page_is_sound_over_http_in_light_and_fits_a_phone(open_page, base, violations, page_path):
    page = open_page("light")
    problems = watch(page, base)
    page.goto(base + page_path, wait_until="networkidle")
    wait_for_math(page)
    page.wait_for_timeout(300)  # what the theme animates would be measured half way through
    assert problems == []
    assert violations(page) == []
    page.set_viewport_size({"width": 390, "height": 844})
    page.wait_for_timeout(100)
    assert page.evaluate("document.documentElement.scrollWidth") <= 390
    assert problems == []


def test_page_is_sound_from_disk_in_dark(open_page, html, violations, page_path):
    page = open_page("dark")
    problems = watch(page, html.as_uri())
    page.goto(f"{html.as_uri()}/{page_path}", wait_until="networkidle")
    wait_for_math(page)
    page.wait_for_timeout(300)  # what the theme animates would be measured half way through
    assert problems == []
    assert page.evaluate("document.documentElement.dataset.theme") == "dark"
    assert violations(page) == []
    assert problems == []


COLOURS_OF_DRAWINGS = """() => {
  const style = (selector, name) =>
    [...document.querySelectorAll(selector)].map(node => getComputedStyle(node)[name]);
  return {
    page: style("body", "backgroundColor"),
    diagrams: style(".course-diagram text", "fill"),
    texts: style(".run-figure text", "fill"),
    lines: style(".run-figure path[stroke^=var]", "stroke"),
    areas: style(".run-figure path[fill^=var]", "fill"),
  };
}"""


@pytest.mark.parametrize("name", ["index", "02_llm_as_policy"])
def test_drawings_follow_the_switch(open_page, base, name):
    page = open_page("light")
    page.goto(f"{base}{name}.html", wait_until="networkidle")
    light = page.evaluate(COLOURS_OF_DRAWINGS)
    page.evaluate("document.documentElement.dataset.theme = 'dark'")
    page.wait_for_timeout(300)
    dark = page.evaluate(COLOURS_OF_DRAWINGS)
    assert len(light["diagrams"]) > 0
    assert (len(light["lines"]) > 0) == (name != "index")
    for kind, before in light.items():
        assert all(one != other for one, other in zip(before, dark[kind], strict=True)), kind
    # tests/book/test_run_figures.py computes contrasts with these.
    assert (light["page"], dark["page"]) == (["rgb(255, 255, 255)"], ["rgb(18, 18, 18)"])


def test_long_names_in_tables_break_between_words_and_stay_whole(open_page, base):
    page = open_page()
    page.goto(base + "02_llm_as_policy.html", wait_until="networkidle")
    name = page.locator("table.names code .pre", has_text="actor_rollout_ref.rollout.n").first
    # After each of _ _ . . and at the end.
    assert name.locator("wbr").count() == 5
    assert name.text_content() == "actor_rollout_ref.rollout.n"
    table = page.locator("table.names")
    assert table.evaluate("node => node.scrollWidth <= node.parentElement.clientWidth")
