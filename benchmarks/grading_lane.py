# SPDX-License-Identifier: MIT
"""How long a warm lane takes for one submission: an assignment's solution, again and again.

    python benchmarks/grading_lane.py 02_llm_as_policy --backend namespaces --runs 20

Prints JSON: seconds per submission (median, least), seconds per check, and the start of the lane.
"""

import argparse
import json
import os
import statistics
import sys
import tempfile
import time
from pathlib import Path

from autograder.assignment import load_assignment
from autograder.checker import Lane
from autograder.results import PASSED
from autograder.submission import runnable_cells
from autograder.view import build_view
from policylab.sandbox import choose_backend

ROOT = Path(__file__).resolve().parents[1]


def measure(name: str, backend: str, runs: int) -> dict[str, object]:
    """Grade the solution `runs` times in one lane."""
    assignment = load_assignment(name, ROOT)
    notebook = json.loads(assignment.notebook.read_text("utf-8"))
    for cell in notebook["cells"]:
        cell["source"] = "".join(cell["source"])
    cells = runnable_cells(notebook)
    scratch = tempfile.TemporaryDirectory()
    lane = Lane(assignment, build_view(assignment, Path(scratch.name)), b"s" * 32, backend)
    try:
        started = time.perf_counter()
        lane.start()
        start_s = time.perf_counter() - started
        seconds, checks = [], []
        for _ in range(runs):
            started = time.perf_counter()
            result = lane.grade(cells, "benchmark")
            seconds.append(time.perf_counter() - started)
            checks.append(statistics.median(check.seconds for check in result.checks))
    finally:
        lane.close()
        scratch.cleanup()
    return {
        "assignment": name,
        "backend": backend,
        "checks": len(result.checks),
        "passed": sum(check.status == PASSED for check in result.checks),
        "runs": runs,
        "start_s": round(start_s, 2),
        "submission_s_median": round(statistics.median(seconds), 3),
        "submission_s_least": round(min(seconds), 3),
        "check_s_median": round(statistics.median(checks), 4),
        "load_average": round(os.getloadavg()[0], 1),
    }


def main(argv: list[str] | None = None) -> int:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("assignment")
    parser.add_argument("--backend", default=None)
    parser.add_argument("--runs", type=int, default=20)
    options = parser.parse_args(argv)
    backend = options.backend or choose_backend()
    print(json.dumps(measure(options.assignment, backend, options.runs), indent=1))
    return 0


if __name__ == "__main__":
    sys.exit(main())
