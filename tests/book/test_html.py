# SPDX-License-Identifier: MIT
"""The built pages as files, without a browser: links, headings, titles, figures, addresses."""

import re
from collections import Counter
from functools import cache
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote, urlsplit

VOID = frozenset("area base br col embed hr img input link meta source track wbr".split())


class Page(HTMLParser):
    """What a built page holds: ids, links, headings and figures of its article, its title."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.ids: list[str] = []
        self.links: list[str] = []
        self.headings: list[tuple[int, str]] = []
        self.figures: list[dict[str, str]] = []
        self.title = ""
        self.open: list[str] = []  # enclosing elements; "article" where the page's own text is
        self.feed(text)

    def handle_starttag(self, tag: str, attributes: list[tuple[str, str | None]]) -> None:
        values = {name: value or "" for name, value in attributes}
        self.ids += [values["id"]] if "id" in values else []
        self.links += [values["href"]] if tag == "a" and "href" in values else []
        if tag not in VOID:
            self.open.append(tag)
        if "article" not in self.open:
            return
        if re.fullmatch("h[1-6]", tag):
            self.headings.append((int(tag[1]), ""))
        if tag == "figure":
            self.figures.append({"id": values.get("id", ""), "caption": "", "number": ""})
        if self.figures and "figure" in self.open:
            if values.get("class") == "caption-number":
                self.open[-1] = "caption-number"
            if values.get("class") == "run-figure":
                self.figures[-1]["alt"] = values.get("aria-label", "")
            if tag == "img":
                self.figures[-1]["image"] = values.get("src", "")

    def handle_startendtag(self, tag: str, attributes: list[tuple[str, str | None]]) -> None:
        self.handle_starttag(tag, attributes)
        if tag not in VOID:
            self.open.pop()

    def handle_endtag(self, tag: str) -> None:
        if self.open and tag not in VOID:
            self.open.pop()

    def handle_data(self, data: str) -> None:
        if self.open[-1:] == ["title"] and not self.title:
            self.title = data.strip()
        if "article" in self.open and any(re.fullmatch("h[1-6]", tag) for tag in self.open):
            level, text = self.headings[-1]
            self.headings[-1] = (level, text + data)
        if "figure" in self.open and "figcaption" in self.open:
            kind = "number" if "caption-number" in self.open else "caption"
            self.figures[-1][kind] += data


@cache
def read(path: Path) -> Page:
    return Page(path.read_text(encoding="utf-8"))


def test_links_within_the_book_lead_somewhere(html, page_path):
    broken = []
    for link in read(html / page_path).links:
        parts = urlsplit(link)
        if parts.scheme:
            continue
        target = html / unquote(parts.path) if parts.path else html / page_path
        if not target.is_file():
            broken.append(f"{link}: no such file")
        elif parts.fragment and target.suffix == ".html":
            if unquote(parts.fragment) not in read(target).ids:
                broken.append(f"{link}: no such place on the page")
    assert broken == []


def test_an_id_stands_for_one_thing(html, page_path):
    counts = Counter(read(html / page_path).ids)
    assert [name for name, count in counts.items() if count > 1] == []


def test_headings_go_down_by_one_level_at_a_time(html, document):
    levels = [level for level, _ in read(html / f"{document}.html").headings]
    assert levels[0] == 1 and levels.count(1) == 1
    steps = list(zip(levels, levels[1:], strict=False))
    assert [step for step in steps if step[1] > step[0] + 1] == []


def test_title_is_the_first_heading_and_the_book(html, document):
    page = read(html / f"{document}.html")
    heading = page.headings[0][1].removesuffix("#").strip()
    assert len(heading) > 4
    assert page.title.startswith(heading) and page.title.endswith("Policy Lab")


def test_figures_are_numbered_and_say_what_they_show(html, document):
    for figure in read(html / f"{document}.html").figures:
        assert figure["id"], figure
        assert re.fullmatch(r"Fig\. \d+ ?", figure["number"]), figure
        assert len(figure["caption"].split()) >= 8, figure


def test_numbers_of_figures_run_through_the_book(html):
    pages = [read(path) for path in sorted(html.glob("*.html"))]
    numbers = [
        int(re.search(r"\d+", figure["number"])[0]) for page in pages for figure in page.figures
    ]
    assert len(numbers) >= 5 and sorted(numbers) == list(range(1, len(numbers) + 1))


def test_figures_of_runs_are_inline_and_state_their_finding(html, document):
    """As files they would not follow the colour mode; their texts hold the run's numbers."""
    figures = read(html / f"{document}.html").figures
    assert [figure for figure in figures if "image" in figure] == []
    for figure in (figure for figure in figures if "alt" in figure):
        assert len(figure["alt"]) > 80 and re.search(r"\d", figure["alt"]), figure


def test_chapter_2_has_figures_of_runs(html):
    figures = read(html / "02_llm_as_policy.html").figures
    assert sum("alt" in figure for figure in figures) >= 3


def test_markup_loads_nothing_from_outside(html, page_path):
    text = (html / page_path).read_text(encoding="utf-8")
    tags = re.findall(r"<(?:script|img|iframe|source|video|audio|link)\b[^>]*>", text)
    loading = [tag for tag in tags if 'rel="canonical"' not in tag]
    assert [tag for tag in loading if re.search(r'(?:src|href)="(?:https?:)?//', tag)] == []


def test_pages_name_no_folder_of_the_machine_that_built_them(html, page_path):
    assert str(html) not in (html / page_path).read_text(encoding="utf-8")
