# SPDX-License-Identifier: MIT
"""What the benchmarks of claims share: intervals over seeds, the command line, the result file."""

import argparse
import json
import platform
from collections.abc import Callable, Iterator, Sequence
from importlib.metadata import version
from pathlib import Path
from typing import Any

import torch
from rich.console import Console
from rich.table import Table

from policylab.plots import mean_interval

Result = dict[str, Any]


def interval(values: Sequence[float], *, with_range: bool = False) -> dict[str, float]:
    """Mean over seeds, half-width of its 95 % t-interval; smallest and largest where asked."""
    mean, half_width = mean_interval(values)
    numbers = {"mean": float(mean), "half_width": float(half_width)}
    if with_range:
        numbers |= {"min": min(values), "max": max(values)}
    return {name: round(number, 5) for name, number in numbers.items()}


def versions(*packages: str) -> dict[str, str]:
    """Name the versions a result was made with."""
    return {"python": platform.python_version()} | {name: version(name) for name in packages}


def parser(doc: str) -> argparse.ArgumentParser:
    """Make a command line whose help is the script's docstring."""
    result = argparse.ArgumentParser(
        description=doc, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    result.add_argument("--json", action="store_true", help="print JSON instead of tables")
    result.add_argument("--output", type=Path, help="save the JSON in this file, too")
    return result


def publish(
    options: argparse.Namespace,
    measure: Callable[[], Result],
    tables: Callable[[Result], Iterator[Table]],
) -> int:
    """Measure on one thread; print as tables or JSON; save where asked."""
    torch.set_num_threads(1)
    result = measure()
    # One line for each entry, so that a change shows where it is.
    lines = (f"{json.dumps(name)}: {json.dumps(value)}" for name, value in result.items())
    text = "{\n" + ",\n".join(lines) + "\n}"
    if options.output:
        options.output.write_text(text + "\n", encoding="utf-8")
    if options.json:
        print(text)
    else:
        for table in tables(result):
            Console().print(table)
    return 0
