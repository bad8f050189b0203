# SPDX-License-Identifier: MIT
"""A clone of demonstrators who err: as good as they are when sampled, better when greedy."""

import json
from itertools import islice
from pathlib import Path

import noisy_demonstrator
import pytest
import torch

COMMITTED = Path(__file__).resolve().parents[2] / "benchmarks" / "noisy_demonstrator.json"


def test_the_demonstrators_share_is_what_they_show():
    generator = torch.Generator().manual_seed(0)
    task = noisy_demonstrator.TASK
    problems = task.problems("train", generator)
    drawn = islice(problems, 4000)
    right = [task.verify(problem, task.demonstrate(problem, generator)) for problem in drawn]
    # Three digits, each right with 2/3 + 1/30 = 0.7: 0.343, standard error 0.0075.
    assert noisy_demonstrator.demonstrators_share() == pytest.approx(0.7**3)
    assert sum(right) / 4000 == pytest.approx(0.343, abs=4 * 0.0075)


def test_the_committed_clones_are_better_greedily_and_not_when_sampled():
    result = json.loads(COMMITTED.read_text(encoding="utf-8"))
    assert len(result["runs"]) == 5
    for run in result["runs"]:
        assert run["sampled"] < result["demonstrators"] + 0.05
        assert run["greedy"] > 0.9
