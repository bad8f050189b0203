# SPDX-License-Identifier: MIT
"""Opens the built book in Chromium: errors, requests, formulas, accessibility, colours, phone."""

import re

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


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_page_is_sound_and_accessible(open_page, base, violations, page_path, scheme):
    page = open_page(scheme)
    problems = watch(page, base)
    page.goto(base + page_path, wait_until="networkidle")
    wait_for_math(page)
    # What the theme animates would be measured half way through.
    page.wait_for_timeout(300)
    assert problems == []
    ids = page.evaluate("[...document.querySelectorAll('[id]')].map(node => node.id)")
    assert sorted({name for name in ids if ids.count(name) > 1}) == []
    assert violations(page) == []


def test_page_fits_a_phone(open_page, base, page_path):
    page = open_page(width=390, height=844)
    page.goto(base + page_path, wait_until="networkidle")
    wait_for_math(page)
    assert page.evaluate("document.documentElement.scrollWidth") <= 390


def test_page_works_from_disk(open_page, html, document):
    page = open_page()
    problems = watch(page, html.as_uri())
    page.goto(f"{html.as_uri()}/{document}.html", wait_until="networkidle")
    wait_for_math(page)
    assert problems == []


@pytest.mark.parametrize("name", ["index", "02_llm_as_policy"])
def test_diagrams_follow_the_colour_mode(open_page, base, name):
    colours = []
    for scheme in ("light", "dark"):
        page = open_page(scheme)
        page.goto(f"{base}{name}.html", wait_until="networkidle")
        diagrams = page.locator(".course-diagram text")
        assert diagrams.count() > 0
        colours.append(diagrams.evaluate_all("nodes => nodes.map(n => getComputedStyle(n).fill)"))
    assert all(light != dark for light, dark in zip(*colours, strict=True))


def test_diagram_follows_the_switch(open_page, base):
    page = open_page("light")
    page.goto(base + "index.html", wait_until="networkidle")
    text = page.locator(".course-diagram text").first
    before = text.evaluate("node => getComputedStyle(node).fill")
    page.evaluate("document.documentElement.dataset.theme = 'dark'")
    assert text.evaluate("node => getComputedStyle(node).fill") != before


def test_figures_have_alternative_text(open_page, base):
    page = open_page()
    page.goto(base + "02_llm_as_policy.html", wait_until="networkidle")
    texts = page.locator("figure img").evaluate_all("nodes => nodes.map(node => node.alt)")
    assert len(texts) >= 3
    assert all(len(text) > 80 and "png" not in text for text in texts)


def test_markup_loads_nothing_from_outside(html, page_path):
    text = (html / page_path).read_text(encoding="utf-8")
    tags = re.findall(r"<(?:script|img|iframe|source|video|audio|link)\b[^>]*>", text)
    loading = [tag for tag in tags if 'rel="canonical"' not in tag]
    assert [tag for tag in loading if re.search(r'(?:src|href)="(?:https?:)?//', tag)] == []
