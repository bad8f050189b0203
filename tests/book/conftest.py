# SPDX-License-Identifier: MIT
"""What the book's tests share: its pages, a server of them, and pages open in the browser."""

import functools
import http.server
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
import yaml

ROOT = Path(__file__).resolve().parents[2]
BOOK = ROOT / "book"
HTML = ROOT / "_build" / "html"
TOC = yaml.safe_load((ROOT / "_toc.yml").read_text(encoding="utf-8"))
DOCUMENTS = [TOC["root"], *(entry["file"] for part in TOC["parts"] for entry in part["chapters"])]
PAGES = [f"{name}.html" for name in [*DOCUMENTS, "genindex", "search"]]
SAMPLE = ROOT / "tests" / "fixtures" / "interactive"
WCAG = ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa"]
# The theme's buttons: their tooltip differs from their visible label.
SKIPPED_RULES = {"label-content-name-mismatch": {"enabled": False}}
sys.path.insert(0, str(BOOK / "_ext"))  # as Sphinx does for local_extensions


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    if "page_path" in metafunc.fixturenames:
        metafunc.parametrize("page_path", PAGES)
    if "document" in metafunc.fixturenames:
        metafunc.parametrize("document", DOCUMENTS)


@pytest.fixture(scope="session")
def html(lacking) -> Path:
    """The folder of built pages; tests build nothing themselves."""
    missing = [page for page in PAGES if not (HTML / page).is_file()]
    if missing:
        lacking(f"_build/html lacks {', '.join(missing)}; run `make book`")
    return HTML


@pytest.fixture(scope="session")
def base(html: Path) -> Iterator[str]:
    """Address of a server of the built pages."""

    class Quiet(http.server.SimpleHTTPRequestHandler):
        def log_message(self, *args: object) -> None:
            pass

    handler = functools.partial(Quiet, directory=str(html))
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        thread = threading.Thread(target=server.serve_forever, daemon=True)
        thread.start()
        yield f"http://127.0.0.1:{server.server_port}/"
        server.shutdown()
        thread.join()


@pytest.fixture
def open_page(browser):
    """Make a page of a given colour scheme and width; closed after the test."""
    contexts = []

    def open_one(scheme: str = "light", width: int = 1280, height: int = 900):
        context = browser.new_context(
            color_scheme=scheme, viewport={"width": width, "height": height}
        )
        context.set_default_timeout(120_000)  # ms; cores may be shared with other tests
        contexts.append(context)
        return context.new_page()

    yield open_one
    for context in contexts:
        context.close()


@pytest.fixture
def violations(axe_source):
    """What axe-core finds wrong with a page as it stands: rule and elements."""

    def run(page) -> list[tuple[str, list]]:
        page.evaluate(axe_source)
        # preload: axe would fetch the style sheets again and log a 404.
        options = {"runOnly": WCAG, "rules": SKIPPED_RULES, "preload": False}
        result = page.evaluate("options => axe.run(document, options)", options)
        return [
            (rule["id"], [node["target"] for node in rule["nodes"]])
            for rule in result["violations"]
        ]

    return run


@pytest.fixture(scope="session")
def sphinx_build() -> Callable[..., subprocess.CompletedProcess]:
    """Build a folder of pages with the interactive parts of the book, and nothing that is slow."""

    def build(source: Path, target: Path, builder: str = "html", *flags: str):
        command = [sys.executable, "-m", "sphinx", "-q", "-E", "-n", "--keep-going", *flags]
        command += ["-c", str(SAMPLE), "-b", builder, str(source), str(target)]
        return subprocess.run(command, capture_output=True, text=True, timeout=120)

    return build


@pytest.fixture(scope="session")
def sample(tmp_path_factory, sphinx_build) -> str:
    """Address, on disk, of a page with a <policy-step> and a quiz."""
    target = tmp_path_factory.mktemp("sample")
    done = sphinx_build(SAMPLE, target, "html", "-W")
    assert done.returncode == 0, done.stderr
    return (target / "index.html").as_uri()
