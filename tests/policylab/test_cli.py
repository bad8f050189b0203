# SPDX-License-Identifier: MIT
"""The command line: results on stdout, diagnostics on stderr, exit codes."""

import csv
import json

import pytest
import torch

from policylab import cli


@pytest.fixture(autouse=True)
def short(monkeypatch):
    """Imitation of a few steps, on the CPU."""
    monkeypatch.setenv("POLICYLAB_DEVICE", "cpu")
    monkeypatch.setattr(cli, "IMITATE_STEPS", 3)


def test_info_as_json_names_versions_device_and_threads(capsys):
    assert cli.main(["info", "--json"]) == 0
    facts = json.loads(capsys.readouterr().out)
    assert facts["torch"] == torch.__version__
    assert facts["device"] == "cpu"
    assert facts["threads"] == torch.get_num_threads()
    assert set(facts) == {"policylab", "python", "torch", "numpy", "device", "threads"}


def test_info_as_a_table(capsys):
    assert cli.main(["info"]) == 0
    out = capsys.readouterr().out
    assert torch.__version__ in out and "\x1b" not in out


def test_training_writes_metrics_as_csv_and_json_lines(tmp_path, capsys):
    out = tmp_path / "runs" / "one"
    assert cli.main(["train", "reinforce", "--steps", "2", "--out", str(out), "--json"]) == 0
    captured = capsys.readouterr()
    summary = json.loads(captured.out)
    assert summary == json.loads((out / "summary.json").read_text())
    assert summary["imitate_steps"] == 3 and summary["reinforce_steps"] == 2
    assert 0 <= summary["sampled_after"] <= 1
    with (out / "metrics.csv").open(newline="") as table:
        rows = list(csv.DictReader(table))
    lines = [json.loads(line) for line in (out / "metrics.jsonl").read_text().splitlines()]
    assert [row["step"] for row in rows] == ["1", "2"]
    assert [float(row["reward_mean"]) for row in rows] == [line["reward_mean"] for line in lines]
    assert "reinforce" in captured.err and "\x1b" not in captured.err


def test_the_same_seed_gives_the_same_run(capsys):
    def run(seed):
        assert cli.main(["train", "reinforce", "--steps", "1", "--seed", seed, "--json"]) == 0
        return capsys.readouterr().out

    assert run("4") == run("4")
    assert json.loads(run("5"))["seed"] == 5


def test_a_folder_with_a_run_is_not_overwritten(tmp_path, capsys):
    (tmp_path / "metrics.csv").write_text("old")
    assert cli.main(["train", "reinforce", "--out", str(tmp_path)]) == 2
    assert "holds a run already" in capsys.readouterr().err
    assert (tmp_path / "metrics.csv").read_text() == "old"


def test_a_folder_that_cannot_be_made_is_a_usage_error(tmp_path, capsys):
    (tmp_path / "file").write_text("")
    assert cli.main(["train", "reinforce", "--out", str(tmp_path / "file" / "run")]) == 2
    assert "cannot be made" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("arguments", "suggestion"),
    [
        (["inof"], "info"),
        (["trian"], "train"),
        (["train", "reinforc"], "reinforce"),
        (["train", "reinforce", "--setps", "3"], "--steps"),
        (["info", "--jsn"], "--json"),
    ],
)
def test_unknown_names_get_a_suggestion(arguments, suggestion, capsys):
    assert cli.main(arguments) == 2
    assert f"did you mean {suggestion!r}?" in capsys.readouterr().err


@pytest.mark.parametrize(
    "arguments",
    [[], ["train"], ["zzz"], ["train", "reinforce", "--steps", "0"], ["info", "--device", "gpu"]],
)
def test_wrong_usage_exits_with_two_and_prints_nothing_on_stdout(arguments, capsys):
    assert cli.main(arguments) == 2
    captured = capsys.readouterr()
    assert captured.out == "" and captured.err != ""


def test_a_wrong_variable_is_a_usage_error(monkeypatch, capsys):
    monkeypatch.setenv("POLICYLAB_DEVICE", "toaster")
    assert cli.main(["info"]) == 2
    assert "POLICYLAB_DEVICE must be" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("failure", "words"),
    [(FloatingPointError("loss"), "the run failed"), (KeyboardInterrupt(), "stopped")],
)
def test_a_run_that_fails_or_is_stopped_exits_with_one_and_keeps_its_metrics(
    failure, words, tmp_path, monkeypatch, capsys
):
    from policylab import trainers

    def failing(*arguments, **options):
        yield trainers.ReinforceRecord(1, 0.0, 0.0, 0.0, 0.0, 0.0)
        raise failure

    monkeypatch.setattr(trainers, "train_reinforce", failing)
    assert cli.main(["train", "reinforce", "--out", str(tmp_path)]) == 1
    assert words in capsys.readouterr().err
    assert len((tmp_path / "metrics.jsonl").read_text().splitlines()) == 1
    assert len((tmp_path / "metrics.csv").read_text().splitlines()) == 2


def test_help_shows_examples(capsys):
    assert cli.main(["--help"]) == 0
    assert "policylab train reinforce --steps 50" in capsys.readouterr().out
