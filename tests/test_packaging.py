# SPDX-License-Identifier: MIT
"""What a wheel holds: the packages and what they need at run time, and nothing that gives away."""

import shutil
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]


@pytest.fixture(scope="module")
def names(tmp_path_factory) -> list[str]:
    """Files in the wheel, built from a copy of what git keeps."""
    source = tmp_path_factory.mktemp("source")
    listed = subprocess.run(
        ["git", "ls-files", "-z"], cwd=ROOT, check=True, capture_output=True, text=True
    )
    for name in filter(None, listed.stdout.split("\0")):
        if (ROOT / name).is_file():
            (source / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(ROOT / name, source / name)
    command = [sys.executable, "-m", "build", "--wheel", "--no-isolation", "--outdir", "dist", "."]
    subprocess.run(command, cwd=source, check=True, capture_output=True)
    (wheel,) = (source / "dist").glob("*.whl")
    with zipfile.ZipFile(wheel) as archive:
        return archive.namelist()


def test_both_packages_and_the_feedback_template_are_there(names):
    for name in ("policylab/losses.py", "policylab/sandbox/jail.py", "autograder/cli.py"):
        assert name in names
    assert any(name.startswith("autograder/templates/feedback/") for name in names)


def test_no_hidden_check_answer_or_solution_is_there(names):
    tops = {name.split("/")[0] for name in names}
    assert {top for top in tops if not top.endswith(".dist-info")} == {"policylab", "autograder"}
    assert not [name for name in names if "checks/" in name or name.endswith((".ipynb", ".md"))]
