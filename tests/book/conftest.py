# SPDX-License-Identifier: MIT
"""What the book's tests share: its pages, a server, a browser, and when a test may be skipped."""

import functools
import http.server
import os
import shutil
import sys
import threading
from collections.abc import Iterator
from importlib.util import find_spec
from pathlib import Path

import pytest
import yaml

ROOT = Path(__file__).resolve().parents[2]
BOOK = ROOT / "book"
HTML = ROOT / "_build" / "html"
TOC = yaml.safe_load((ROOT / "_toc.yml").read_text(encoding="utf-8"))
DOCUMENTS = [TOC["root"], *(entry["file"] for part in TOC["parts"] for entry in part["chapters"])]
PAGES = [f"{name}.html" for name in [*DOCUMENTS, "genindex", "search"]]
FLAGS = (
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
)

sys.path.insert(0, str(BOOK / "_ext"))  # as Sphinx does for local_extensions


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    if "page_path" in metafunc.fixturenames:
        metafunc.parametrize("page_path", PAGES)
    if "document" in metafunc.fixturenames:
        metafunc.parametrize("document", DOCUMENTS)


def skip(reason: str) -> None:
    """Skip, or fail where the environment promises that nothing is missing."""
    if os.environ.get("POLICYLAB_REQUIRE") == "1":
        pytest.fail(f"POLICYLAB_REQUIRE=1, but: {reason}")
    pytest.skip(reason)


@pytest.fixture(scope="session")
def html() -> Path:
    """The folder of built pages; tests build nothing themselves."""
    missing = [page for page in PAGES if not (HTML / page).is_file()]
    if missing:
        skip(f"_build/html lacks {', '.join(missing)}; run `make book`")
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


@pytest.fixture(scope="session")
def browser():
    chromium = shutil.which("chromium") or shutil.which("google-chrome")
    if chromium is None:
        skip("no Chromium; on Debian: apt-get install chromium")
    if find_spec("playwright") is None:
        skip("no playwright; it is in the extra `dev`")
    from playwright.sync_api import sync_playwright

    with sync_playwright() as playwright:
        # launch() makes a user-data directory of its own and removes it.
        running = playwright.chromium.launch(executable_path=chromium, args=list(FLAGS))
        yield running
        running.close()


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


@pytest.fixture(scope="session")
def axe_source() -> str:
    """axe-core's script, out of its package; its own import reads with the platform's encoding."""
    spec = find_spec("axe_playwright_python")
    if spec is None or spec.origin is None:
        skip("no axe-playwright-python; it is in the extra `dev`")
    return (Path(spec.origin).parent / "axe.min.js").read_text(encoding="utf-8")
