# SPDX-License-Identifier: MIT
"""Printing: a chapter as PDF, and paper that is light whatever the screen shows."""

import importlib.util
import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
SCRIPT = ROOT / "book" / "print_pdf.py"
CHAPTER = "02_llm_as_policy"


@pytest.fixture
def print_pdf():
    spec = importlib.util.spec_from_file_location("print_pdf", SCRIPT)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.fixture(scope="module")
def pdf(html, tmp_path_factory, browser) -> bytes:
    """The printed chapter. Its texts are compressed, its names, outline and tags are not."""
    folder = tmp_path_factory.mktemp("pdf")
    # `browser` skips where there is none; the script needs a process and a browser of its own.
    command = [sys.executable, str(SCRIPT), CHAPTER, "--html", str(html), "--output", str(folder)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stderr
    assert f"{CHAPTER}.pdf" in done.stdout
    return (folder / f"{CHAPTER}.pdf").read_bytes()


def strings(pdf: bytes, name: str) -> list[str]:
    """The values of /name, which PDF writes as (text) or as <UTF-16 in hexadecimal>."""
    found = []
    pattern = rf"/{name} (?:<([0-9A-F]+)>|\(((?:\\.|[^\\)])*)\))".encode()
    for coded, plain in re.findall(pattern, pdf):
        if coded:
            found.append(bytes.fromhex(coded.decode()).decode("utf-16"))
        else:
            found.append(re.sub(rb"\\(.)", rb"\1", plain).decode("latin-1"))
    return found


@pytest.mark.browser
def test_a_chapter_has_its_pages_headings_and_formulas(pdf):
    assert pdf.startswith(b"%PDF-")
    assert 10 <= len(re.findall(rb"/Type\s*/Page\b", pdf)) <= 60
    text = (ROOT / "book" / f"{CHAPTER}.md").read_text(encoding="utf-8")
    outline = " ".join(strings(pdf, "Title"))
    headings = re.findall(
        r"^##? ([\w ]+)", re.sub(r"^```.*?^```", "", text, flags=re.M | re.S), re.M
    )
    assert len(headings) >= 8
    assert [heading for heading in headings if heading.strip() not in outline] == []
    # Formulas are drawn with MathJax's own fonts; formulas left as source would need none.
    assert b"MathJax_Math-Italic" in pdf and b"MathJax_Main-Regular" in pdf


@pytest.mark.browser
def test_a_printed_chapter_is_tagged_and_its_figures_have_their_texts(pdf, html):
    assert b"/StructTreeRoot" in pdf and b"/Lang" in pdf
    page = (html / f"{CHAPTER}.html").read_text(encoding="utf-8")
    assert len(strings(pdf, "Alt")) >= page.count('class="run-figure"') >= 3


@pytest.mark.browser
def test_a_printed_chapter_names_no_file_of_the_machine(pdf):
    assert b"file:" not in pdf
    assert str(ROOT).encode() not in pdf


@pytest.mark.browser
def test_paper_is_light_and_unfolded_and_the_screen_as_before(open_page, base):
    page = open_page("dark")
    page.goto(f"{base}{CHAPTER}.html", wait_until="networkidle")
    state = """() => [
      document.documentElement.dataset.theme,
      document.querySelectorAll("details:not(.hide):not([open])").length,
      document.querySelectorAll("details.hide[open]").length,
      getComputedStyle(document.querySelector("table.dataframe td")).color,
    ]"""
    before = page.evaluate(state)
    page.evaluate(f"addEventListener('beforeprint', () => {{ window.printed = ({state})() }})")
    page.pdf()
    theme, folded, code, ink = page.evaluate("window.printed")
    assert (theme, folded, code) == ("light", 0, 0)
    assert max(map(int, re.findall(r"\d+", ink)[:3])) < 100
    assert before[0] == "dark" and before[1] > 0
    assert page.evaluate(state) == before


@pytest.mark.browser
def test_paper_shows_the_chapter_alone(open_page, base):
    page = open_page()
    page.goto(f"{base}{CHAPTER}.html", wait_until="networkidle")
    chrome = page.locator(".bd-sidebar, .bd-header-article, .prev-next-area, .headerlink, .copybtn")
    shown = "nodes => nodes.filter(node => node.checkVisibility()).length"
    assert chrome.evaluate_all(shown) >= 5
    page.emulate_media(media="print")
    assert chrome.evaluate_all(shown) == 0
    assert page.locator(".bd-article h1").is_visible()


def test_unknown_page_is_named_and_nothing_is_written(print_pdf, tmp_path, capsys):
    rc = print_pdf.main(["99_missing", "--html", str(tmp_path), "--output", str(tmp_path / "out")])
    assert rc == 2
    message = capsys.readouterr().err
    assert "99_missing.html is not there" in message and "make book" in message
    assert not (tmp_path / "out").exists()


def test_book_that_is_not_built_is_told(print_pdf, tmp_path, capsys):
    assert print_pdf.main(["--html", str(tmp_path)]) == 2
    assert "make book" in capsys.readouterr().err


def test_missing_chromium_is_told(print_pdf, tmp_path, capsys, monkeypatch):
    (tmp_path / "03_page.html").write_text("")
    monkeypatch.setattr(print_pdf.shutil, "which", lambda name: None)
    assert print_pdf.main(["--html", str(tmp_path), "--output", str(tmp_path / "out")]) == 2
    assert "apt-get install chromium" in capsys.readouterr().err


def test_all_chapters_are_printed_where_none_is_named(print_pdf, tmp_path):
    for name in ("index", "03_b", "02_a"):
        (tmp_path / f"{name}.html").write_text("")
    assert print_pdf.chapters(tmp_path) == ["02_a", "03_b"]
