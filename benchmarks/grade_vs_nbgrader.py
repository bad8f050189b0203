# SPDX-License-Identifier: MIT
"""What does grading one submission cost, against stock `nbgrader autograde`?

    python benchmarks/grade_vs_nbgrader.py
    python benchmarks/grade_vs_nbgrader.py --rounds 7 --class-size 12 --output result.json

The notebook is the released one with the solution's answers in it; each submission differs in a
comment, so that no result is replayed.  Three commands take turns:

stock      `nbgrader autograde` as installed, one submission: a kernel runs every cell; the graded
           cells hold the notebook's own visible asserts
lean       the same, without the explorations (plots, training), which our grader does not run
ours       `autograder grade` on a class: all hidden checks in the jail, and the gradebook

Of ours, the cost per submission of the whole command, and of one more submission in a class: the
difference between two classes, divided by that of their sizes.  Criterion: whole command per
submission ≤ 1/10 of stock.
"""

import argparse
import json
import os
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
NAME = "02_llm_as_policy"
STOCK_CONFIG = """\
c = get_config()
c.CourseDirectory.course_id = "stock"
c.CourseDirectory.source_directory = "solutions"
c.CourseDirectory.release_directory = "exercises"
c.ExecutePreprocessor.timeout = 600
"""

Notebook = dict[str, Any]


def solution(*, keep_explorations: bool = True, is_stock: bool = False) -> Notebook:
    """Return the solution notebook; for stock, with visible asserts in the graded cells."""
    notebook: Notebook = json.loads((ROOT / "solutions" / NAME / f"{NAME}.ipynb").read_text())
    visible = {_name(cell): cell["source"] for cell in notebook["cells"]}
    kept = []
    for cell in notebook["cells"]:
        name = _name(cell)
        if name.endswith("_explore") and not keep_explorations:
            continue
        if is_stock and name.endswith("_visible"):
            continue
        if is_stock and f"{name}_visible" in visible:
            cell["source"] = visible[f"{name}_visible"]
        kept.append(cell)
    return notebook | {"cells": kept}


def submissions(root: Path, notebook: Notebook, count: int, round_: int) -> None:
    """Hand in `count` copies that no grader has seen."""
    shutil.rmtree(root / "submitted", ignore_errors=True)
    for number in range(count):
        copy = json.loads(json.dumps(notebook))
        answer = next(cell for cell in copy["cells"] if _name(cell).endswith("_answer"))
        answer["source"] = [f"# copy {number} of round {round_}\n", *answer["source"]]
        folder = root / "submitted" / f"student{number}" / NAME
        folder.mkdir(parents=True)
        (folder / f"{NAME}.ipynb").write_text(json.dumps(copy))


def course(root: Path, notebook: Notebook, config: str) -> Path:
    """Make a course root and release its assignment."""
    (root / "solutions" / NAME).mkdir(parents=True)
    (root / "solutions" / NAME / f"{NAME}.ipynb").write_text(json.dumps(notebook))
    (root / "nbgrader_config.py").write_text(config)
    run(root, "nbgrader", "generate_assignment", NAME)
    return root


def run(root: Path, *command: str) -> float:
    """Run a command of this environment and return the seconds it took."""
    scripts = Path(sys.executable).parent
    environment = dict(os.environ, PATH=f"{scripts}{os.pathsep}{os.environ['PATH']}")
    environment |= {"OMP_NUM_THREADS": "1"}
    start = time.perf_counter()
    done = subprocess.run(
        [str(scripts / command[0]), *command[1:]],
        cwd=root,
        env=environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )
    seconds = time.perf_counter() - start
    if done.returncode:
        sys.exit(f"{' '.join(command)} failed:\n{done.stdout[-4000:]}")
    return seconds


def stock_round(root: Path, notebook: Notebook, round_: int) -> float:
    """Return the seconds of stock nbgrader for one submission."""
    submissions(root, notebook, 1, round_)
    return run(root, "nbgrader", "autograde", NAME, "--force")


def our_round(root: Path, notebook: Notebook, size: int, lanes: int, round_: int) -> float:
    """Return the seconds of `autograder grade` for a class; every submission gets full points."""
    submissions(root, notebook, size, round_)
    return run(root, "autograder", "grade", NAME, "--lanes", str(lanes))


def measure(options: argparse.Namespace, scratch: Path) -> dict[str, list[float]]:
    """Return seconds per submission by kind, one entry a round."""
    ours = solution()
    roots = {"ours": course(scratch / "ours", ours, (ROOT / "nbgrader_config.py").read_text())}
    stock = {
        "stock": solution(is_stock=True),
        "lean": solution(is_stock=True, keep_explorations=False),
    }
    for name, notebook in stock.items():
        roots[name] = course(scratch / name, notebook, STOCK_CONFIG)
    size, small, lanes = options.class_size, 1, options.lanes
    seen = 0

    def our_class() -> dict[str, float]:
        nonlocal seen
        seen += 2
        one = our_round(roots["ours"], ours, small, lanes, seen)
        whole = our_round(roots["ours"], ours, size, lanes, seen + 1)
        return {"ours": whole / size, "one more": (whole - one) / (size - small)}

    turns: list[Callable[[int], dict[str, float]]] = [
        lambda number: {"stock": stock_round(roots["stock"], stock["stock"], number)},
        lambda number: {"lean": stock_round(roots["lean"], stock["lean"], number)},
        lambda number: our_class(),
    ]
    seconds: dict[str, list[float]] = {}
    for number in range(options.rounds):
        for turn in turns[number % 3 :] + turns[: number % 3]:
            for name, value in turn(number).items():
                seconds.setdefault(name, []).append(value)
        last = "  ".join(f"{name} {values[-1]:.2f} s" for name, values in seconds.items())
        print(f"round {number + 1}: {last}", file=sys.stderr, flush=True)
    return seconds


def ratios(seconds: dict[str, list[float]], of: str, to: str) -> list[float]:
    """Return the ratio of two kinds in each round."""
    return [a / b for a, b in zip(seconds[of], seconds[to], strict=True)]


def spread(values: Sequence[float], form: str) -> str:
    """Return median, smallest and largest."""
    low, middle, high = min(values), statistics.median(values), max(values)
    return f"{middle:{form}} ({low:{form}} to {high:{form}})"


def main() -> int:
    """Measure, print, and return 0 if the criterion holds."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--class-size", type=int, default=12)
    parser.add_argument("--lanes", type=int, default=os.cpu_count() or 1)
    parser.add_argument("--output", type=Path, help="also write the seconds as JSON")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="grade-benchmark-") as scratch:
        seconds = measure(options, Path(scratch))
    print(f"seconds per submission, median of {options.rounds} rounds; class of", end=" ")
    print(f"{options.class_size}, {options.lanes} lanes")
    for name, values in seconds.items():
        print(f"  {name:<9} {spread(values, '.2f')}")
    print("stock over ours")
    for of, to in (
        ("stock", "ours"),
        ("stock", "one more"),
        ("lean", "ours"),
        ("lean", "one more"),
    ):
        print(f"  {of} / {to:<9} {spread(ratios(seconds, of, to), '.1f')}")
    if options.output:
        record = {"class_size": options.class_size, "lanes": options.lanes, "seconds": seconds}
        options.output.write_text(json.dumps(record, indent=1) + "\n", encoding="utf-8")
    holds = statistics.median(ratios(seconds, "stock", "ours")) >= 10
    print(f"criterion, 10 times cheaper than stock: {'holds' if holds else 'does NOT hold'}")
    return 0 if holds else 1


def _name(cell: Notebook) -> str:
    return str(cell["metadata"].get("nbgrader", {}).get("grade_id", ""))


if __name__ == "__main__":
    sys.exit(main())
