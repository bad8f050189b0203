# SPDX-License-Identifier: MIT
"""The command `policylab`: what is installed here, and training runs from a terminal."""

import argparse
import csv
import dataclasses
import difflib
import json
import platform
import re
import sys
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any, NoReturn, TypeVar

Record = TypeVar("Record")

EXAMPLES = """\
examples:
  policylab info
  policylab info --json
  policylab train reinforce
  policylab train reinforce --steps 50 --seed 3 --out runs/seed3
  policylab train reinforce --device cuda

exit codes: 0 done; 1 the run failed or was stopped; 2 wrong usage
"""
START, NOISE, IMITATE_STEPS = 0.28, 0.3, 2000


class UsageError(Exception):
    """Something the caller has to change: an option's value or a folder."""


class _Parser(argparse.ArgumentParser):
    """A parser that suggests the nearest name for one it does not know."""

    names: Sequence[str] = ()

    def error(self, message: str) -> NoReturn:
        """Print the usage and the message with a suggestion; exit with 2."""
        found = re.search(r"invalid choice: '?([^' ]+)|unrecognized arguments: (\S+)", message)
        if found:
            word = (found[1] or found[2]).partition("=")[0]
            near = difflib.get_close_matches(word, self.names, n=1)
            message += f"; did you mean {near[0]!r}?" if near else ""
        super().error(message)


def build_parser() -> argparse.ArgumentParser:
    """Describe the commands and their options."""
    raw = argparse.RawDescriptionHelpFormatter
    parser = _Parser(
        prog="policylab",
        description="Policy Lab's teaching library on the command line.",
        epilog=EXAMPLES,
        formatter_class=raw,
        allow_abbrev=False,
    )
    _Parser.names = ("info", "train", "reinforce", "--help", "--json")
    _Parser.names += ("--steps", "--seed", "--device", "--out")
    commands = parser.add_subparsers(dest="command", required=True, metavar="COMMAND")
    info = commands.add_parser("info", help="versions, device and threads", allow_abbrev=False)
    train = commands.add_parser("train", help="train a small model", allow_abbrev=False)
    methods = train.add_subparsers(dest="method", required=True, metavar="METHOD")
    reinforce = methods.add_parser(
        "reinforce",
        help="imitate a noisy demonstrator, then REINFORCE on a verifier, on two-digit addition",
        epilog=EXAMPLES,
        formatter_class=raw,
        allow_abbrev=False,
    )
    reinforce.add_argument("--steps", type=_positive, default=150, help="updates (default 150)")
    reinforce.add_argument("--seed", type=int, default=0, help="seed of every draw (default 0)")
    reinforce.add_argument("--out", type=Path, metavar="DIR", help="write the metrics here")
    for command in (info, reinforce):
        command.add_argument("--device", help="cpu, cuda, cuda:N or mps (default: the best here)")
        command.add_argument("--json", action="store_true", help="print the result as JSON")
    return parser


def _positive(text: str) -> int:
    number = int(text)
    if number < 1:
        raise argparse.ArgumentTypeError(f"must be at least 1, got {number}")
    return number


def main(argv: Sequence[str] | None = None) -> int:
    """Run one command and return its exit code."""
    try:
        arguments = build_parser().parse_args(argv)
    except SystemExit as stop:
        return int(stop.code or 0)
    try:
        if arguments.command == "info":
            return _info(arguments)
        return _train_reinforce(arguments)
    except UsageError as error:
        print(f"policylab: {error}", file=sys.stderr)
        return 2
    except FloatingPointError as error:
        print(f"policylab: the run failed: {error}", file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        print("policylab: stopped; the metrics so far are kept", file=sys.stderr)
        return 1


def _device(name: str | None) -> Any:
    from policylab.device import device

    try:
        return device(name)
    except ValueError as error:
        raise UsageError(str(error)) from None


def _info(arguments: argparse.Namespace) -> int:
    import numpy
    import torch

    from policylab import __version__

    facts = {
        "policylab": __version__,
        "python": platform.python_version(),
        "torch": str(torch.__version__),
        "numpy": numpy.__version__,
        "device": str(_device(arguments.device)),
        "threads": torch.get_num_threads(),
    }
    _print_result(facts, arguments.json)
    return 0


def _train_reinforce(arguments: argparse.Namespace) -> int:
    import torch

    from policylab.model import GPT, GPTConfig
    from policylab.rollout import success_rate
    from policylab.tasks import Addition
    from policylab.tokenizer import CharTokenizer
    from policylab.trainers import ImitateConfig, ReinforceConfig, imitate_until, train_reinforce

    where = _device(arguments.device)
    if where.type == "cpu":
        # For tensors this small, threads wait for each other longer than they compute.
        torch.set_num_threads(1)
    if arguments.out is not None:
        _claim(arguments.out)
    task, tokenizer = Addition(noise=NOISE), CharTokenizer()
    config = ReinforceConfig(steps=arguments.steps)
    policy = GPT(GPTConfig(), generator=torch.Generator().manual_seed(arguments.seed)).to(where)
    generator = torch.Generator(where).manual_seed(arguments.seed)

    def held_out(temperature: float) -> float:
        tokens = config.max_new_tokens
        return success_rate(policy, task, tokenizer, max_new_tokens=tokens, temperature=temperature)

    start = imitate_until(
        policy, task, tokenizer, ImitateConfig(IMITATE_STEPS), success=START, generator=generator
    )
    imitated = sum(1 for _ in _progress(start, "imitate", None))
    summary: dict[str, Any] = {"seed": arguments.seed, "device": str(where)}
    summary |= {"imitate_steps": imitated, "reinforce_steps": arguments.steps}
    summary |= {"sampled_before": held_out(1.0), "greedy_before": held_out(1e-4)}
    steps = train_reinforce(policy, task, tokenizer, config, generator=generator)
    for _ in _recorded(_progress(steps, "reinforce", arguments.steps), arguments.out):
        pass
    summary |= {"sampled_after": held_out(1.0), "greedy_after": held_out(1e-4)}
    if arguments.out is not None:
        (arguments.out / "summary.json").write_text(json.dumps(summary, indent=2) + "\n")
    _print_result(summary, arguments.json)
    return 0


def _claim(folder: Path) -> None:
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise UsageError(f"--out {folder} cannot be made: {error.strerror}.") from None
    if (folder / "metrics.csv").exists():
        raise UsageError(f"--out {folder} holds a run already; choose another folder.")


def _progress(records: Iterable[Record], name: str, total: int | None) -> Iterator[Record]:
    """Pass the records on; show a bar on stderr if that is a terminal."""
    from rich.console import Console
    from rich.progress import track

    console = Console(stderr=True)
    if console.is_terminal:
        yield from track(records, description=name, total=total, console=console)
        return
    print(f"policylab: {name} ...", file=sys.stderr)
    yield from records


def _recorded(records: Iterable[Any], folder: Path | None) -> Iterator[Any]:
    """Pass the records on; write each as a row of metrics.csv and a line of metrics.jsonl."""
    if folder is None:
        yield from records
        return
    with (
        (folder / "metrics.csv").open("w", newline="", encoding="utf-8") as table,
        (folder / "metrics.jsonl").open("w", encoding="utf-8") as lines,
    ):
        writer = None
        for record in records:
            row = dataclasses.asdict(record)
            if writer is None:
                writer = csv.DictWriter(table, list(row))
                writer.writeheader()
            writer.writerow(row)
            print(json.dumps(row), file=lines, flush=True)
            yield record


def _print_result(facts: dict[str, Any], as_json: bool) -> None:
    if as_json:
        print(json.dumps(facts))
        return
    from rich.console import Console
    from rich.table import Table

    table = Table(show_header=False)
    for name, value in facts.items():
        shown = f"{value:.3f}" if isinstance(value, float) else str(value)
        table.add_row(name.replace("_", " "), shown)
    Console().print(table)
