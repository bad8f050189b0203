# SPDX-License-Identifier: MIT
"""Sphinx extension of the book: what `_config.yml` cannot say.

* `_config.yml` and `_toc.yml` at the root are the only real ones, and `jupyter-book build .` gives
  the same pages as `jupyter-book build book`.
* MathJax is copied out of the installed package `sphinx-mathjax-offline`: a built page asks nothing
  of an outside server, and the repository holds no third-party script or font.
* The execution cache is kept apart for each state of the teaching library and of the results in
  benchmarks/ that pages read.
* Ids that sphinx-exercise gives to every exercise alike are numbered: an id stands for one thing.

Directives live in `svg_figure.py`, `exercise_notebook.py`, `explorable.py` and `quiz.py`;
`run_figure.py` puts the figures of executed cells inline.
"""

from __future__ import annotations

import hashlib
import shutil
from collections.abc import Iterable, Iterator
from importlib.resources import as_file, files
from pathlib import Path
from typing import Any

from docutils import nodes
from sphinx.application import Sphinx
from sphinx.config import Config
from sphinx.environment import BuildEnvironment

ROOT = Path(__file__).resolve().parents[2]
BOOK = ROOT / "book"
LIBRARY = ROOT / "policylab"
RESULTS = ROOT / "benchmarks"
CACHES = ROOT / "_build" / ".jupyter_cache"
CACHES_KEPT = 3  # states of the library to which one can go back without running all pages
MATHJAX = "vendor/mathjax"  # below _static
MATHJAX_PARTS = (
    "tex-chtml.js",
    "output/chtml/fonts/woff-v2",
    "input/tex/extensions",  # loaded on demand: \boldsymbol, \cancel, \bbox and others
)
SCRIPTS_FIRST = ("formulas.js", "pieces.js", "explorer.js")


def setup(app: Sphinx) -> dict[str, Any]:
    if Path(app.srcdir) == ROOT:  # `jupyter-book build .`
        app.srcdir = app.confdir = type(app.srcdir)(BOOK)
    app.setup_extension("svg_figure")
    app.setup_extension("exercise_notebook")
    app.setup_extension("explorable")
    app.setup_extension("quiz")
    app.setup_extension("run_figure")
    # Before sphinx-external-toc, which reads external_toc_path at priority 900.
    app.connect("config-inited", use_root_files, priority=100)
    app.connect("builder-inited", copy_mathjax)
    app.connect("builder-inited", forget_old_caches)
    app.connect("env-get-outdated", pages_of_changed_assets)
    app.connect("doctree-read", number_repeated_ids)
    return {"version": "1", "parallel_read_safe": True, "parallel_write_safe": True}


def use_root_files(app: Sphinx, config: Config) -> None:
    """Point every path at the root files, whichever folder the command line named."""
    static = BOOK / "_static"
    config.external_toc_path = (ROOT / "_toc.yml").as_posix()
    config.html_static_path = ["_static"]
    # jupyter-book would add what lies in the _static of the folder on the command line.
    config.html_css_files = sorted(path.name for path in static.glob("*.css"))
    config.html_js_files = scripts(static)
    config.mathjax_path = f"{MATHJAX}/tex-chtml.js"
    config.mathjax_options = {"defer": "defer"}
    inputs = [*LIBRARY.rglob("*.py"), *RESULTS.glob("*.json")]
    config.nb_execution_cache_path = str(CACHES / state_of(inputs, ROOT))


def scripts(static: Path) -> list[tuple[str, dict[str, str]]]:
    """List the book's scripts with the order in which they run: the base before what extends it.

    Deferred scripts run in this order, and after the page is parsed.
    """
    names = sorted(path.name for path in static.glob("*.js"))
    names.sort(key=lambda name: (name not in SCRIPTS_FIRST, *map(name.__ne__, SCRIPTS_FIRST)))
    return [(name, {"defer": "defer"}) for name in names]


def pages_of_changed_assets(
    app: Sphinx, env: BuildEnvironment, added: set[str], changed: set[str], removed: set[str]
) -> set[str]:
    """Name all pages if a script or style changed; Sphinx alone would keep the old copy."""
    copies = Path(app.outdir) / "_static"
    assets = [*(BOOK / "_static").glob("*.js"), *(BOOK / "_static").glob("*.css")]
    if app.builder.format != "html" or all(is_copied(path, copies) for path in assets):
        return set()
    return set(env.found_docs)


def is_copied(path: Path, folder: Path) -> bool:
    copy = folder / path.name
    return copy.is_file() and copy.read_bytes() == path.read_bytes()


def state_of(paths: Iterable[Path], root: Path) -> str:
    """Name a state of what pages import and read: jupyter-cache's own key is their code alone."""
    digest = hashlib.sha256()
    for path in sorted(paths):
        digest.update(path.relative_to(root).as_posix().encode() + b"\0")
        digest.update(path.read_bytes() + b"\0")
    return digest.hexdigest()[:12]


def forget_old_caches(app: Sphinx) -> None:
    """Remove the caches of former states, but for the newest few."""
    remove_all_but_newest(CACHES, kept=CACHES_KEPT)


def remove_all_but_newest(folder: Path, *, kept: int) -> None:
    if folder.is_dir():
        for path in sorted(folder.iterdir(), key=lambda path: path.stat().st_mtime)[:-kept]:
            shutil.rmtree(path, ignore_errors=True)


def copy_mathjax(app: Sphinx) -> None:
    """Copy the parts of MathJax that pages load; before the pages, so that checksums are right."""
    if app.builder.format != "html":
        return
    target = Path(app.outdir) / "_static" / MATHJAX
    # The package's name has hyphens, so it cannot be imported by name.
    with as_file(files("sphinx-mathjax-offline") / "static" / "mathjax") as source:
        for path in mathjax_files(source):
            copy = target / path.relative_to(source)
            if not copy.exists():
                copy.parent.mkdir(parents=True, exist_ok=True)
                shutil.copyfile(path, copy)


def mathjax_files(source: Path) -> Iterator[Path]:
    for part in MATHJAX_PARTS:
        found = [source / part] if (source / part).is_file() else sorted((source / part).rglob("*"))
        if not found:
            raise FileNotFoundError(f"sphinx-mathjax-offline has no {part}; see pyproject.toml")
        yield from (path for path in found if path.is_file())


def number_repeated_ids(app: Sphinx, doctree: nodes.document) -> None:
    """Make the ids of sphinx-exercise's inner sections unique; nothing refers to them."""
    for repeated in ("exercise-content", "solution-content"):
        found = [node for node in doctree.findall(nodes.section) if repeated in node["ids"]]
        for number, node in enumerate(found, start=1):
            node["ids"] = [f"{repeated}-{number}"]
