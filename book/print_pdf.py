# SPDX-License-Identifier: MIT
"""Print pages of the built book to PDF, by Chromium: `make pdf PAGE=02_llm_as_policy`.

Reads _build/html, writes _build/pdf/PAGE.pdf: tagged for screen readers, with an outline, formulas
and figures drawn, solutions unfolded (_static/print.css and print.js). Asks nothing of any server.
"""

from __future__ import annotations

import argparse
import shutil
import sys
from collections.abc import Iterator
from importlib.util import find_spec
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
HTML = ROOT / "_build" / "html"
PDF = ROOT / "_build" / "pdf"
MARGIN = {"top": "16mm", "right": "16mm", "bottom": "18mm", "left": "16mm"}
CHROMIUM_FLAGS = ("--no-sandbox", "--disable-gpu", "--no-first-run", "--disable-sync")
SMALL = "font-size: 8px; font-family: sans-serif; width: 100%; margin: 0 16mm; color: #4d4d4d;"
FOOTER = (
    f'<div style="{SMALL} display: flex; justify-content: space-between;">'
    '<span class="title"></span>'
    '<span><span class="pageNumber"></span> / <span class="totalPages"></span></span></div>'
)
# A page that is printed too early shows the source of its formulas. And a link to another page of
# the book would lead to a file of the machine that printed; those within the page and to the web
# stay.
MAKE_READY = """async () => {
  if (window.MathJax) await MathJax.startup.promise;
  for (const link of document.querySelectorAll("a[href]")) {
    const elsewhere = link.pathname !== location.pathname;
    if (link.protocol === location.protocol && elsewhere) link.removeAttribute("href");
  }
}"""


class PrintError(Exception):
    """A page cannot be printed; the message says what to do."""


def print_pages(names: list[str], *, html: Path, output: Path) -> Iterator[Path]:
    """Print each page; yield the path of its PDF as soon as it is written.

    Args:
        names: pages without ending, as in _toc.yml.
        html: the built book.
        output: folder for the PDFs; made if missing.
    Raises: PrintError if a page, Chromium or playwright is missing, before anything is written.
    """
    for name in names:
        if not (html / f"{name}.html").is_file():
            raise PrintError(
                f"{html / name}.html is not there. Run `make book`; pages are named in _toc.yml."
            )
    chromium = shutil.which("chromium") or shutil.which("google-chrome")
    if chromium is None:
        raise PrintError("No Chromium found. On Debian: apt-get install chromium")
    if find_spec("playwright") is None:
        raise PrintError("No playwright found. It is in the extra `dev`: pip install -e '.[dev]'")
    from playwright.sync_api import sync_playwright

    output.mkdir(parents=True, exist_ok=True)
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=chromium, args=list(CHROMIUM_FLAGS))
        for name in names:
            path = output / f"{name}.pdf"
            print_page(browser, (html / f"{name}.html").as_uri(), path)
            yield path
        browser.close()


def print_page(browser: Any, address: str, path: Path) -> None:
    page = browser.new_page(color_scheme="light")
    page.goto(address, wait_until="networkidle")
    page.evaluate(MAKE_READY)
    page.pdf(
        path=str(path),
        format="A4",
        margin=MARGIN,
        print_background=True,
        display_header_footer=True,
        header_template="<span></span>",
        footer_template=FOOTER,
        tagged=True,
        outline=True,
    )
    page.close()


def chapters(html: Path) -> list[str]:
    """The numbered pages of the built book."""
    return sorted(path.stem for path in html.glob("[0-9][0-9]_*.html"))


def main(argv: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(
        description="Print pages of the built book to PDF.",
        epilog="Example: python book/print_pdf.py 02_llm_as_policy notation",
    )
    parser.add_argument("page", nargs="*", help="page as in _toc.yml; without one, all chapters")
    parser.add_argument("--html", type=Path, default=HTML, help="the built book (%(default)s)")
    parser.add_argument("--output", type=Path, default=PDF, help="where to write (%(default)s)")
    arguments = parser.parse_args(argv)
    try:
        names = arguments.page or chapters(arguments.html)
        if not names:
            raise PrintError(f"{arguments.html} holds no chapter. Run `make book` first.")
        for path in print_pages(names, html=arguments.html, output=arguments.output):
            print(f"{path} ({path.stat().st_size / 1000:.0f} kB)")
    except PrintError as problem:
        print(problem, file=sys.stderr)
        return 2
    return 0


if __name__ == "__main__":
    sys.exit(main())
