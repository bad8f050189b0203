# SPDX-License-Identifier: MIT
"""What does a student's installation from the bundle take, in time and in disk?

    python benchmarks/student_install.py --torch torch==2.13.0+cpu
    python benchmarks/student_install.py --torch torch==2.13.0+cpu \\
        --output benchmarks/student_install.json

Twice a fresh environment with the bundle's requirements: once as pip resolves them, and once with
the build of PyTorch that --torch names put in first.  Time is processor time, most of it unpacking:
what the download adds depends on the network.  Needs the package index; 8 GB of disk while it runs;
about 5 minutes.
"""

import argparse
import json
import platform
import resource
import subprocess
import sys
import tempfile
import zipfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
NAME = "02_llm_as_policy"


def main(argv: Sequence[str] | None = None) -> int:
    """Measure, print the result as JSON, and write it where --output says."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("--torch", required=True, help="requirement of a CPU build of PyTorch")
    parser.add_argument("--output", type=Path, help="also write the JSON here")
    arguments = parser.parse_args(argv)
    with tempfile.TemporaryDirectory() as name:
        result = measure(Path(name), arguments.torch)
    text = json.dumps(result, indent=2) + "\n"
    print(text, end="")
    if arguments.output:
        arguments.output.write_text(text, encoding="utf-8")
    return 0


def measure(scratch: Path, cpu_torch: str) -> dict[str, Any]:
    """Make the bundle and install it both ways."""
    bundle = make_bundle(scratch)
    with zipfile.ZipFile(bundle) as archive:
        archive.extractall(scratch)
    return {
        "claim": "what a student's installation from the bundle takes",
        "system": platform.platform(),
        "python": platform.python_version(),
        "bundle_kb": round(bundle.stat().st_size / 1000),
        "as_pip_resolves": install(scratch / NAME, scratch / "default", []),
        "cpu_torch_first": install(scratch / NAME, scratch / "cpu", [cpu_torch]),
    }


def make_bundle(scratch: Path) -> Path:
    """Release from a copy of the checkout, so that the gradebook here stays as it is."""
    course = scratch / "course"
    course.mkdir()
    files = subprocess.run(
        ["git", "archive", "HEAD"], cwd=ROOT, check=True, capture_output=True
    ).stdout
    subprocess.run(["tar", "-x"], cwd=course, check=True, input=files)
    command = [sys.executable, "-c", "import autograder.cli as cli; raise SystemExit(cli.main())"]
    command += ["release", NAME, "--bundle", "--output", str(scratch)]
    subprocess.run(command, cwd=course, check=True, stdout=sys.stderr)
    return scratch / f"{NAME}.zip"


def install(bundle: Path, environment: Path, first: list[str]) -> dict[str, Any]:
    """Make a fresh environment, install `first` and then the bundle's requirements."""
    start = processor_seconds()
    subprocess.run([sys.executable, "-m", "venv", str(environment)], check=True)
    pip = [str(environment / "bin" / "pip"), "--disable-pip-version-check", "install", "--quiet"]
    if first:
        subprocess.run([*pip, *first], check=True)
    subprocess.run([*pip, "-r", "requirements.txt"], cwd=bundle, check=True)
    seconds = processor_seconds() - start
    version = subprocess.run(
        [str(environment / "bin" / "python"), "-c", "import torch; print(torch.__version__)"],
        check=True,
        capture_output=True,
        text=True,
    ).stdout.strip()
    used = sum(path.lstat().st_blocks * 512 for path in environment.rglob("*"))
    return {
        "torch": version,
        "cpu_seconds": round(seconds),
        "gigabytes": round(used / 1e9, 2),
    }


def processor_seconds() -> float:
    """Return the processor time of all finished child processes."""
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


if __name__ == "__main__":
    raise SystemExit(main())
