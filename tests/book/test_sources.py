# SPDX-License-Identifier: MIT
"""The book's sources: one table of contents, rules of the settings, no answer given away."""

import ast
import importlib
import json
import pkgutil
import re
import textwrap
from pathlib import Path
from xml.etree import ElementTree

import pytest
import yaml

import policylab

ROOT = Path(__file__).resolve().parents[2]
BOOK = ROOT / "book"
CONFIG = yaml.safe_load((ROOT / "_config.yml").read_text(encoding="utf-8"))
CHAPTERS = sorted(path.stem for path in BOOK.glob("[0-9][0-9]_*.md"))
EXECUTED = sorted(
    path.stem
    for path in BOOK.glob("*.md")
    if re.search(r"^```\{code-cell\}", path.read_text(encoding="utf-8"), re.M)
)


def test_stub_agrees_with_the_table_of_contents():
    stub = yaml.safe_load((BOOK / "_toc.yml").read_text(encoding="utf-8"))
    real = yaml.safe_load((ROOT / "_toc.yml").read_text(encoding="utf-8"))
    assert stub == {"format": real["format"], "root": real["root"]}


def test_every_page_is_in_the_table_of_contents_and_exists(document):
    assert (BOOK / f"{document}.md").is_file()


def test_no_page_is_left_out():
    toc = (ROOT / "_toc.yml").read_text(encoding="utf-8")
    listed = set(re.findall(r"(?:file|root): (\S+)", toc))
    assert {path.stem for path in BOOK.glob("*.md")} == listed


def test_settings_keep_outside_services_out():
    sphinx = CONFIG["sphinx"]["config"]
    assert "sphinx_thebe" not in sphinx["extensions"]
    assert CONFIG["launch_buttons"]["thebe"] is False
    assert sphinx["nb_ipywidgets_js"] == {}
    assert sphinx["mathjax3_config"]["options"]["enableMenu"] is False


def test_a_broken_cell_breaks_the_build():
    assert CONFIG["execute"]["raise_on_error"] is True
    assert CONFIG["execute"]["allow_errors"] is False
    assert CONFIG["sphinx"]["config"]["nb_execution_raise_on_error"] is True


def test_no_third_party_script_or_font_is_in_the_sources():
    found = {path.suffix for path in BOOK.rglob("*") if path.is_file()}
    found -= {".pyc"}
    assert found <= {".md", ".py", ".svg", ".css", ".js", ".bib", ".yml"}
    assert all(path.stat().st_size < 20_000 for path in (BOOK / "_static").iterdir())


def test_own_scripts_and_styles_name_no_address():
    for path in (BOOK / "_static").glob("*.[cj]s*"):
        assert "//" not in re.sub(r"^\s*//.*$", "", path.read_text(encoding="utf-8"), flags=re.M)


def test_pictures_of_the_readme_stand_on_their_own_background():
    root = ElementTree.parse(BOOK / "_static" / "pipeline.svg").getroot()
    svg = "{http://www.w3.org/2000/svg}"
    assert root.find(f"{svg}title") is not None and root.find(f"{svg}desc") is not None
    _, _, width, height = map(float, root.get("viewBox").split())
    card = root.find(f"{svg}rect")  # the first shape, so everything else is on top of it
    assert card.get("fill") == "#ffffff"
    assert float(card.get("width")) >= width - 2 and float(card.get("height")) >= height - 2
    assert min(float(text.get("font-size")) for text in root.iter(f"{svg}text")) >= 14


def graded_functions():
    """Every function of the library that an assignment grades."""
    for module in pkgutil.walk_packages(policylab.__path__, "policylab."):
        path = Path(importlib.util.find_spec(module.name).origin)
        source = path.read_text(encoding="utf-8")
        for node in ast.walk(ast.parse(source)):
            if isinstance(node, ast.FunctionDef) and "@exercise(" in "".join(
                f"@{ast.unparse(decorator)}" for decorator in node.decorator_list
            ):
                yield node.name, source, node


def telling_lines(source: str, node: ast.FunctionDef) -> set[str]:
    """The lines of a body that give the answer: no docstring, no check of shapes, nothing short."""
    first = node.body[1] if isinstance(node.body[0], ast.Expr) else node.body[0]
    body = source.splitlines()[first.lineno - 1 : node.end_lineno]
    lines = {line.strip() for line in textwrap.dedent("\n".join(body)).splitlines()}
    return {line for line in lines if len(line) > 30 and "check_" not in line and "#" not in line}


def test_no_page_prints_the_body_of_a_graded_function():
    pages = {path.name: path.read_text(encoding="utf-8") for path in BOOK.glob("*.md")}
    functions = list(graded_functions())
    assert len(functions) >= 5
    told = [
        (page, name, line)
        for name, source, node in functions
        for line in telling_lines(source, node)
        for page, text in pages.items()
        if line in text
    ]
    assert told == []


@pytest.mark.parametrize("chapter", CHAPTERS)
def test_chapter_names_every_function_it_grades(chapter):
    text = (BOOK / f"{chapter}.md").read_text(encoding="utf-8")
    graded = [
        name
        for name, _, node in graded_functions()
        if any(chapter in ast.unparse(mark) for mark in node.decorator_list)
    ]
    assert len(graded) >= 1
    assert [name for name in graded if f"`{name}`" not in text] == []


def test_citations_and_bibliography_agree():
    entries = set(re.findall(r"^@\w+\{(\w+),", (BOOK / "references.bib").read_text(), re.M))
    text = "".join(path.read_text(encoding="utf-8") for path in BOOK.glob("*.md"))
    cited = {
        key for keys in re.findall(r"\{cite:[pt]\}`([\w,]+)`", text) for key in keys.split(",")
    }
    assert cited == entries


def test_the_chapters_are_executed():
    assert set(CHAPTERS) <= set(EXECUTED)


@pytest.mark.parametrize("name", EXECUTED)
def test_numbers_of_a_page_come_from_its_run(name):
    """Every glued name is used, and every used name is glued."""
    text = (BOOK / f"{name}.md").read_text(encoding="utf-8")
    used = set(re.findall(r"\{glue:text\}`([\w-]+)", text))
    glued = re.findall(r'glue\(f?"([^"]+)"', text)
    patterns = [re.sub(r"\{\w+\}", r"\\w+", name) for name in glued]
    assert [name for name in used if not any(re.fullmatch(p, name) for p in patterns)] == []
    assert [p for p in patterns if not any(re.fullmatch(p, name) for name in used)] == []


@pytest.mark.parametrize("name", EXECUTED)
def test_executed_page_has_the_header_that_says_so(name):
    text = (BOOK / f"{name}.md").read_text(encoding="utf-8")
    header = yaml.safe_load(text.split("---")[1])
    assert header["jupytext"]["text_representation"]["format_name"] == "myst"
    assert header["kernelspec"]["name"] == "python3"


@pytest.mark.parametrize("name", CHAPTERS)
def test_released_notebook_can_be_downloaded(html, name):
    """Where the exercise is released, the built chapter hands it out unchanged."""
    released = ROOT / "exercises" / name / f"{name}.ipynb"
    page = (html / f"{name}.html").read_text(encoding="utf-8")
    found = re.search(r'href="(_downloads/[^"]+\.ipynb)"', page)
    if not released.is_file():
        assert "has not been released yet" in page and found is None
        return
    assert found is not None, "the book is older than the release; run `make book`"
    copy = json.loads((html / found[1]).read_text(encoding="utf-8"))
    assert copy == json.loads(released.read_text(encoding="utf-8"))


@pytest.mark.parametrize("name", EXECUTED)
def test_pages_keep_code_within_the_column(name):
    text = (BOOK / f"{name}.md").read_text(encoding="utf-8")
    cells = re.findall(r"^```\{code-cell\} python\n(.*?)^```", text, re.M | re.S)
    shown = [cell for cell in cells if "remove-cell" not in cell and "hide-input" not in cell]
    assert [line for cell in shown for line in cell.splitlines() if len(line) > 72] == []
