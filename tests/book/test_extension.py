# SPDX-License-Identifier: MIT
"""The book's Sphinx extension: paths, MathJax, cache names, inline diagrams, the notebook's box."""

import json
import os
import re
from importlib.resources import as_file, files
from pathlib import Path
from types import SimpleNamespace

import exercise_notebook
import policylab_book
import pytest
import svg_figure
from docutils import nodes

DIAGRAMS = sorted(policylab_book.BOOK.glob("diagrams/*.svg"))


class FakeApp(SimpleNamespace):
    """Records what an extension asks of Sphinx."""

    def __init__(self, srcdir: Path) -> None:
        super().__init__(srcdir=srcdir, confdir=srcdir, extensions=[], events={})

    def setup_extension(self, name):
        self.extensions.append(name)

    def connect(self, event, callback, priority=500):
        self.events[event] = (callback, priority)


@pytest.mark.parametrize("named", [policylab_book.ROOT, policylab_book.BOOK])
def test_both_commands_read_the_same_folder(named):
    app = FakeApp(named)
    policylab_book.setup(app)
    assert app.srcdir == app.confdir == policylab_book.BOOK
    assert app.extensions == ["svg_figure", "exercise_notebook", "explorable", "quiz", "run_figure"]


def test_root_files_are_named_before_the_table_of_contents_is_read():
    app = FakeApp(policylab_book.BOOK)
    policylab_book.setup(app)
    callback, priority = app.events["config-inited"]
    assert priority < 900  # sphinx-external-toc's
    config = SimpleNamespace()
    callback(app, config)
    assert Path(config.external_toc_path) == policylab_book.ROOT / "_toc.yml"
    static = policylab_book.BOOK / "_static"
    assert config.html_css_files == sorted(path.name for path in static.glob("*.css"))
    assert "policylab.css" in config.html_css_files
    names = [name for name, _ in config.html_js_files]
    assert names[:3] == ["formulas.js", "pieces.js", "explorer.js"]
    assert sorted(names) == sorted(path.name for path in static.glob("*.js"))
    assert "//" not in config.mathjax_path


def test_scripts_run_in_their_order_whatever_their_names(tmp_path):
    for name in ("a.js", "pieces.js", "z.js", "explorer.js", "formulas.js", "notes.css"):
        write(tmp_path / name, "")
    found = policylab_book.scripts(tmp_path)
    assert [name for name, _ in found] == [
        *("formulas.js", "pieces.js", "explorer.js", "a.js", "z.js"),
    ]
    assert {options["defer"] for _, options in found} == {"defer"}


def test_a_changed_script_or_style_builds_every_page_again(tmp_path):
    static = policylab_book.BOOK / "_static"
    app = SimpleNamespace(outdir=tmp_path, builder=SimpleNamespace(format="html"))
    environment = SimpleNamespace(found_docs={"index", "notation"})

    def outdated():
        return policylab_book.pages_of_changed_assets(app, environment, set(), set(), set())

    assert outdated() == {"index", "notation"}
    for path in [*static.glob("*.js"), *static.glob("*.css")]:
        write(tmp_path / "_static" / path.name, path.read_text(encoding="utf-8"))
    assert outdated() == set()
    write(tmp_path / "_static" / "quiz.js", "older")
    assert outdated() == {"index", "notation"}
    app.builder.format = "latex"  # which copies none
    assert outdated() == set()


def write(path: Path, text: str) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text, encoding="utf-8")
    return path


def test_cache_name_follows_what_pages_import_and_read(tmp_path):
    code = write(tmp_path / "a.py", "x = 1")
    result = write(tmp_path / "sub" / "b.json", "{}")

    def name(*paths):
        return policylab_book.state_of(paths, tmp_path)

    names = {name(code, result)}
    assert name(result, code) in names
    write(result, "[]")
    names.add(name(code, result))
    names.add(name(code))
    names.add(name(code.rename(tmp_path / "c.py"), result))
    assert len(names) == 4


def test_cache_covers_the_library_and_the_results(monkeypatch):
    seen = []
    monkeypatch.setattr(policylab_book, "state_of", lambda paths, root: seen.extend(paths) or "x")
    policylab_book.use_root_files(None, SimpleNamespace())
    assert policylab_book.LIBRARY / "sampling.py" in seen
    assert policylab_book.LIBRARY / "tasks" / "addition.py" in seen
    assert policylab_book.RESULTS / "seed_post.json" in seen


def test_only_the_newest_caches_stay(tmp_path):
    for age, name in enumerate(["newest", "newer", "old", "oldest"]):
        os.utime(write(tmp_path / name / "x", "").parent, (1000 - age, 1000 - age))
    policylab_book.remove_all_but_newest(tmp_path, kept=2)
    assert {path.name for path in tmp_path.iterdir()} == {"newest", "newer"}
    policylab_book.remove_all_but_newest(tmp_path / "absent", kept=2)


def test_mathjax_parts_are_in_the_package():
    with as_file(files("sphinx-mathjax-offline") / "static" / "mathjax") as source:
        names = {p.relative_to(source).as_posix() for p in policylab_book.mathjax_files(source)}
    assert "tex-chtml.js" in names
    assert any(name.endswith(".woff") for name in names)
    assert "input/tex/extensions/boldsymbol.js" in names


def test_missing_mathjax_part_is_named(tmp_path):
    with pytest.raises(FileNotFoundError, match="tex-chtml.js"):
        list(policylab_book.mathjax_files(tmp_path))


def test_mathjax_is_copied_once_and_for_html_only(tmp_path):
    app = SimpleNamespace(builder=SimpleNamespace(format="latex"), outdir=tmp_path)
    policylab_book.copy_mathjax(app)
    assert list(tmp_path.iterdir()) == []
    app.builder.format = "html"
    policylab_book.copy_mathjax(app)
    script = tmp_path / "_static" / policylab_book.MATHJAX / "tex-chtml.js"
    before = script.stat().st_mtime_ns
    policylab_book.copy_mathjax(app)
    assert script.stat().st_mtime_ns == before


@pytest.mark.parametrize("path", DIAGRAMS, ids=lambda path: path.stem)
def test_diagrams_keep_the_rules(path):
    text = svg_figure.inline_svg(path, prefix="p")
    assert 'aria-labelledby="p-title p-desc"' in text
    assert 'role="img"' in text and 'id="head"' not in text


GOOD = """<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 9 9"><title>A line</title>
<defs><marker id="m"><path fill="currentColor" d="M0 0"/></marker></defs>
<path stroke="var(--pst-color-primary)" fill="none" d="M0 0H9" marker-end="url(#m)"/></svg>"""


def test_ids_are_made_unique_to_the_drawing(tmp_path):
    text = svg_figure.inline_svg(write(tmp_path / "two words.svg", GOOD), prefix="line")
    assert 'id="line-m"' in text and "url(#line-m)" in text
    assert 'aria-labelledby="line-title"' in text


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        (' viewBox="0 0 9 9"', "", "viewBox"),
        ("<title>A line</title>", "", "title"),
        ("<title>A line</title>", "<title> </title>", "title"),
        ('fill="none"', 'fill="#000"', "colour mode"),
        ('fill="none"', 'fill="black"', "colour mode"),
        ('fill="none"', 'fill="url(http:x)"', "url"),
        ('fill="none"', 'filter="URL(http:x)"', "URL"),
        ('fill="none"', 'ONCLICK="x()"', "ONCLICK"),
        ("<defs>", "<SCRIPT>x()</SCRIPT><defs>", "SCRIPT"),
        ("<defs>", '<use href="http:x#a"/><defs>', "href"),
        ("<defs>", '<use xmlns:x="http://www.w3.org/1999/xlink" x:href="y.svg"/><defs>', "href"),
        ('fill="none"', 'style="fill: red"', "style"),
        ('fill="none"', 'onclick="x()"', "onclick"),
        ("<defs>", "<script>x()</script><defs>", "script"),
        ("<defs>", "<style>*{fill:red}</style><defs>", "style"),
        ("<defs>", '<image href="x.png"/><defs>', "image"),
    ],
)
def test_unfit_drawings_are_refused(tmp_path, old, new, message):
    assert old in GOOD
    path = write(tmp_path / "bad.svg", GOOD.replace(old, new))
    with pytest.raises(ValueError, match=message):
        svg_figure.inline_svg(path, prefix="bad")


def test_a_drawing_may_stand_on_a_page_twice(tmp_path, sphinx_build):
    write(tmp_path / "line.svg", GOOD)
    figure = ":::{svg-figure} line.svg\n\nA caption.\n:::\n"
    write(tmp_path / "index.md", f"# Page\n\n{figure}\n{figure}")
    done = sphinx_build(tmp_path, tmp_path / "_out", "html", "-W")
    assert done.returncode == 0, done.stderr
    text = (tmp_path / "_out" / "index.html").read_text(encoding="utf-8")
    ids = re.findall(r' id="(drawing-[^"]*)"', text)
    assert sorted(ids) == ["drawing-1-m", "drawing-1-title", "drawing-2-m", "drawing-2-title"]
    assert set(re.findall(r"url\(#([^)]*)\)", text)) == {"drawing-1-m", "drawing-2-m"}


def test_ids_of_exercises_are_numbered():
    page = nodes.document(None, None)
    page += [nodes.section(ids=["exercise-content"]) for _ in range(2)]
    page += nodes.section(ids=["recap"])
    policylab_book.number_repeated_ids(None, page)
    assert [node["ids"] for node in page] == [
        ["exercise-content-1"],
        ["exercise-content-2"],
        ["recap"],
    ]


def cell(kind: str, source: str, **nbgrader: object) -> dict:
    metadata = {"nbgrader": nbgrader} if nbgrader else {}
    return {"cell_type": kind, "source": source, "metadata": metadata}


def test_box_counts_points_and_minutes():
    notebook = {
        "cells": [
            cell("markdown", "### Exercise 2.1\nDifficulty ●●○○○ · Importance ●●●●○ · 15 min\n"),
            cell("code", "# hidden", grade=True, points=4),
            cell("markdown", "### Exercise 2.2\nDifficulty ●○○○○ · Importance ●●●●○ · 10 min\n"),
            cell("code", "# hidden", grade=True, points=6.5),
            cell("code", "x = 1", grade=False, locked=True),
            cell("markdown", "Why?", grade=True, points=2),
        ]
    }
    summary = exercise_notebook.summarise(json.loads(json.dumps(notebook)))
    assert summary == exercise_notebook.Summary(3, 10.5, 2.0, 25)
    assert summary.sentence == (
        "3 exercises, 10.5 points graded automatically and 2 by a person, about 25 minutes."
    )


def test_box_without_manual_points_or_minutes_leaves_them_out():
    summary = exercise_notebook.Summary(2, 8.0, 0.0, 0)
    assert summary.sentence == "2 exercises, 8 points graded automatically."
