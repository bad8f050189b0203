# SPDX-License-Identifier: MIT
"""What several folders of tests share: a browser, axe-core, and what to do where one is lacking."""

import os
import shutil
from collections.abc import Callable
from importlib.util import find_spec
from pathlib import Path

import pytest

CHROMIUM_FLAGS = (
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
)


@pytest.fixture(scope="session")
def lacking() -> Callable[[str], None]:
    """Skip with a reason; with POLICYLAB_REQUIRE=1, which promises that all is there, fail."""

    def skip_or_fail(reason: str) -> None:
        if os.environ.get("POLICYLAB_REQUIRE") == "1":
            pytest.fail(f"POLICYLAB_REQUIRE=1, but: {reason}")
        pytest.skip(reason)

    return skip_or_fail


@pytest.fixture(scope="module")
def browser(lacking):
    """A running Chromium.

    One a module, not one a session: while it runs, its event loop counts as running in this thread,
    and nothing else of the kind can be started.
    """
    chromium = shutil.which("chromium") or shutil.which("google-chrome")
    if chromium is None:
        lacking("no Chromium; on Debian: apt-get install chromium")
    if find_spec("playwright") is None:
        lacking("no playwright; it is in the extra `dev`")
    from playwright.sync_api import sync_playwright

    with sync_playwright() as playwright:
        # launch() makes a user-data directory of its own and removes it.
        running = playwright.chromium.launch(executable_path=chromium, args=list(CHROMIUM_FLAGS))
        yield running
        running.close()


@pytest.fixture(scope="session")
def axe_source(lacking) -> str:
    """axe-core's script, out of its package; its own import reads with the platform's encoding."""
    spec = find_spec("axe_playwright_python")
    if spec is None or spec.origin is None:
        lacking("no axe-playwright-python; it is in the extra `dev`")
    return (Path(spec.origin).parent / "axe.min.js").read_text(encoding="utf-8")
