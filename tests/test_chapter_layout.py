# SPDX-License-Identifier: MIT
"""A chapter that is laid out and filled in passes all that is asked of a chapter.

It is made in a copy of the checkout.  What a maintainer would write into it, a chapter about sums
over a mask, is in tests/fixtures/chapter_fill.
"""

import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import nbformat
import pytest

from autograder.chapter import Chapter, needs_of

ROOT = Path(__file__).resolve().parents[1]
FILL = ROOT / "tests" / "fixtures" / "chapter_fill"
NAME = "90_example"
GLOSSARY = """\
# Glossary

:::{glossary}
policy
reward
completion
mask
baseline
  Words of other chapters.
:::
"""
BUILD = "import sys; from jupyter_book.cli.main import main; sys.argv[0] = 'jupyter-book'; main()"


class Checkout:
    """A copy of the checkout; commands in it use the copy's packages, not the installed ones."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self.chapter = Chapter(root, NAME)

    def run(
        self, *arguments: str, status: int | None = 0, cwd: Path | None = None
    ) -> subprocess.CompletedProcess:
        """Run `python -m ...` and compare its status."""
        environment = os.environ | {"PYTHONPATH": str(self.root), "OMP_NUM_THREADS": "1"}
        environment.pop("PYTEST_ADDOPTS", None)
        # The copy has no built book; what needs one skips there and is tested in the checkout.
        environment.pop("POLICYLAB_REQUIRE", None)
        found = subprocess.run(
            [sys.executable, "-m", *arguments],
            cwd=cwd or self.root,
            env=environment,
            capture_output=True,
            text=True,
        )
        assert status in (None, found.returncode), found.stdout[-6000:] + found.stderr[-6000:]
        return found

    def test(self, *arguments: str) -> str:
        """Run tests of the copy that are about the chapter; at least one must run."""
        found = self.run("pytest", "-q", "-p", "no:cacheprovider", *arguments)
        assert re.search(r"\d+ passed", found.stdout) and "failed" not in found.stdout
        return found.stdout


def copy_checkout(target: Path) -> Checkout:
    """Copy what git keeps, and what it would keep."""
    listed = subprocess.run(
        ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"],
        cwd=ROOT,
        check=True,
        capture_output=True,
        text=True,
    )
    for name in filter(None, listed.stdout.split("\0")):
        if (ROOT / name).is_file():
            (target / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(ROOT / name, target / name)
    return Checkout(target)


def blocks(text: str) -> dict[str, list[tuple[str, str]]]:
    """Read the replacements (old, new) of each file, in order."""
    found: dict[str, list[tuple[str, str]]] = {}
    for part in re.split(r"^=== ", text, flags=re.M)[1:]:
        name, _, body = part.partition("\n")
        runs = re.findall(r"((?:^-.*\n)+)((?:^\+.*\n)+)", body, re.M)
        found[name] = [
            tuple("\n".join(line[1:] for line in run.splitlines()) for run in pair)  # type: ignore[misc]
            for pair in runs
        ]
    return found


def replaced(text: str, changes: list[tuple[str, str]]) -> str:
    """Make each replacement below the one before it."""
    done = ""
    for old, new in changes:
        before, found, text = text.partition(old)
        assert found, f"not below the last replacement: {old!r}"
        done += before + new
    return done + text


def fill(checkout: Checkout) -> None:
    for name, changes in blocks((FILL / "fill.txt").read_text("utf-8")).items():
        path = checkout.root / name
        if path.suffix != ".ipynb":
            path.write_text(replaced(path.read_text("utf-8"), changes), encoding="utf-8")
            continue
        notebook, border = nbformat.read(path, as_version=4), "\n\x00\n"
        sources = replaced(border.join(cell.source for cell in notebook.cells), changes)
        for cell, source in zip(notebook.cells, sources.split(border), strict=True):
            cell.source = source
        path.write_text(nbformat.writes(notebook) + "\n", encoding="utf-8")


@pytest.fixture(scope="module")
def filled(tmp_path_factory) -> Checkout:
    """A checkout with the library's function, the chapter laid out, filled in and released."""
    checkout = copy_checkout(tmp_path_factory.mktemp("checkout"))
    shutil.copy(FILL / "totals.py", checkout.root / "policylab" / "totals.py")
    where = "import policylab, autograder; print(policylab.__file__, autograder.__file__)"
    script = checkout.root / "where.py"
    script.write_text(where)
    assert checkout.run("where").stdout.count(str(checkout.root)) == 2
    script.unlink()
    options = ["--title", "Totals of rows", "--functions", "masked_total"]
    checkout.run("autograder.cli", "chapter", NAME, *options)
    assert len(checkout.chapter.marks()) > 50
    fill(checkout)
    checkout.run("example", "--output", "example.json", cwd=checkout.root / "benchmarks")
    checkout.run("autograder.cli", "release", NAME)
    return checkout


def test_nothing_is_missing_but_what_takes_more_functions(filled):
    """An assignment needs 25 checks and 5 exercises; this one has a single function."""
    missing = [need for need in needs_of(filled.chapter) if not need.is_met]
    assert [(need.needed, need.there) for need in missing] == [
        ("checks: 25 or more", "6"),
        ("8 rows of the table of exercises: 5 or more", "2"),
    ]
    assert filled.chapter.marks() == []


def test_the_notebook_passes_the_tests_of_solutions_and_releases(filled):
    filled.test("tests/test_solutions.py", "-k", NAME)
    made = "exercises_are_what_the_solutions_give or no_solution_is_released"
    filled.test("tests/autograder/test_release.py", "-k", f"{NAME} and ({made})")


def test_every_wrong_answer_is_caught_and_every_right_one_passes(filled):
    filled.test("tests/autograder/test_kill_matrix.py", "-k", NAME)


def test_the_page_and_the_drawing_pass_their_tests(filled):
    """An assignment of one function has fewer exercises than the test of the anatomy asks for."""
    filled.test("tests/book/test_sources.py", "-k", f"{NAME} or contents or page_is or body")
    filled.test("tests/book/test_anatomy.py", "-k", f"{NAME} and not table_of_exercises")
    filled.test("tests/book/test_extension.py", "-k", "diagrams and example")


def test_the_files_pass_the_linter(filled):
    python = ["policylab/totals.py", "benchmarks/example.py", f"autograder/checks/{NAME}"]
    filled.run("ruff", "check", *python, f"solutions/{NAME}", f"exercises/{NAME}")
    filled.run("ruff", "format", "--check", *python)


def test_the_solution_earns_every_automatic_point(filled, lacking):
    folder = filled.root / "submitted" / "right" / NAME
    folder.mkdir(parents=True)
    shutil.copy(filled.chapter.notebook, folder)
    if filled.run("autograder.cli", "doctor", "--json", status=None).returncode:
        lacking("no safe sandbox here")
    found = filled.run("autograder.cli", "grade", NAME, "--lanes", "1", "--json")
    (row,) = json.loads(found.stdout)["submissions"]
    assert (row["automatic"], row["max_automatic"]) == (4, 4)


def test_the_page_builds_without_a_warning_and_so_does_one_not_yet_filled_in(filled):
    """Alone, with a glossary of one line: the other pages are built by `make book`."""
    blank = Chapter(filled.root, "91_blank")
    options = ["--title", "Blank", "--functions", "first_part,second_part", "--module", "blank"]
    filled.run("autograder.cli", "chapter", blank.name, *options)
    for path in filled.chapter.page.parent.glob("*.md"):
        if path not in (filled.chapter.page, blank.page):
            path.unlink()
    glossary, bibliography = blank.page.with_stem("glossary"), blank.page.with_stem("bibliography")
    glossary.write_text(GLOSSARY)
    bibliography.write_text("# Bibliography\n\n```{bibliography}\n```\n")
    head = f"format: jb-book\nroot: {NAME}\n"
    others = "".join(f"  - file: {name}\n" for name in (blank.name, "glossary", "bibliography"))
    (filled.root / "book" / "_toc.yml").write_text(head)
    (filled.root / "_toc.yml").write_text(f"{head}chapters:\n{others}")
    (filled.root / "build_book.py").write_text(BUILD)
    filled.run("build_book", "build", "book", "-W", "-n", "--keep-going", "--quiet")
    html = filled.root / "_build" / "html"
    page, unfilled = ((html / f"{name}.html").read_text("utf-8") for name in (NAME, blank.name))
    assert "2 exercises, 4 points graded automatically and 4 by a person, about 25 min" in page
    for text in (page, unfilled):
        assert text.count("<policy-step") == 1 and text.count("<choice-quiz") == 1
    assert "FILL" not in page and "FILL the mechanism" in unfilled
