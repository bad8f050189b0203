# SPDX-License-Identifier: MIT
"""What a baseline does to a transformer's gradient: the measurement is right, the claim holds."""

import json
from pathlib import Path

import baseline_learning
import baseline_variance
import pytest
import torch

BENCHMARKS = Path(__file__).resolve().parents[2] / "benchmarks"


def committed(name):
    return json.loads((BENCHMARKS / f"{name}.json").read_text(encoding="utf-8"))


def filled(prompts, size=5, seed=0):
    """Moments of random gradients, and the gradients."""
    generator = torch.Generator().manual_seed(seed)
    moments, samples = baseline_variance.Moments(size), []
    for _ in range(prompts):
        rewards = torch.bernoulli(torch.full((16,), 0.4), generator=generator)
        gradients = torch.randn(16, size, generator=generator) + 0.3
        moments.add(rewards, gradients)
        samples.append((rewards.double(), gradients.double()))
    return moments, samples


def test_the_variance_is_that_of_the_estimates_where_groups_are_whole_prompts():
    moments, samples = filled(prompts=40)
    for name, shift in (("shift 0", 0.0), ("shift 1", 1.0)):
        estimates = torch.stack([((r + shift)[:, None] * g).mean(dim=0) for r, g in samples])
        # 64 completions are four prompts' worth: a quarter of one estimate's variance.
        expected = estimates.var(dim=0).sum().item() / 4
        estimator = baseline_variance.estimators(16)[name]
        assert moments.variance(estimator, 16) == pytest.approx(expected, rel=1e-6)


def test_leave_one_out_by_a_slow_loop():
    moments, samples = filled(prompts=40)
    estimates = []
    for rewards, gradients in samples:
        weighted = [
            (rewards[i] - (rewards.sum() - rewards[i]) / 15) * gradients[i] for i in range(16)
        ]
        estimates.append(sum(weighted) / 16)
    expected = torch.stack(estimates).var(dim=0).sum().item() / 4
    estimator = baseline_variance.estimators(16)["leave one out"]
    assert moments.variance(estimator, 16) == pytest.approx(expected, rel=1e-6)


def test_smaller_groups_of_independent_completions_average_the_same():
    # Here a prompt's completions are independent, so 64 of them have one variance, however grouped.
    moments, _ = filled(prompts=600)
    variances = [
        moments.variance(baseline_variance.estimators(size)["shift 0"], size)
        for size in baseline_variance.GROUP_SIZES
    ]
    assert max(variances) < 1.25 * min(variances)


def test_the_group_mean_only_shrinks_leave_one_out():
    moments, _ = filled(prompts=10)
    for size in baseline_variance.GROUP_SIZES:
        named = baseline_variance.estimators(size)
        ratio = moments.variance(named["group mean"], size) / moments.variance(
            named["leave one out"], size
        )
        assert ratio == pytest.approx(((size - 1) / size) ** 2)


def test_the_best_constant_by_hand():
    # Right answers with |u|² = 1 and 3, a wrong one with 12: (1 + 3) / 16.
    rewards, squares = torch.tensor([1.0, 1.0, 0.0]), torch.tensor([1.0, 3.0, 12.0])
    assert baseline_variance.best_constant(rewards, squares) == 0.25


def test_where_zero_lies_decides_without_a_baseline_and_not_with_one():
    """The claim on one policy, in short: about 10 % right answers, 50 prompts."""
    (model,) = baseline_variance.imitators(0, (0.1,))
    measured = baseline_variance.measure_variance(model, seed=0, prompts=50)
    of_four = measured["variance"]["4"]
    others = of_four["leave one out"]
    # Two seeds at 10 %: 25 and 15 for shift 1, .66 and .54 for shift 0; the committed runs at 40 %
    # have 3.7 and .71.
    assert of_four["shift 1"] > 5 * others
    assert of_four["shift 0"] < 0.9 * others
    # Why: wrong completions have the longer gradients, so the best constant is below the mean.
    assert measured["squared_length_wrong"] > 1.5 * measured["squared_length_right"]
    assert measured["best_constant"] < measured["mean_reward"]


def test_the_committed_variances_say_so_at_every_policy():
    result = committed("baseline_variance")
    for policies in result["policies"].values():
        assert len(policies) == result["settings"]["seeds"] == 5
        for policy in policies:
            assert policy["best_constant"] < policy["mean_reward"]
            for size in ("2", "4", "8"):
                named = policy["variance"][size]
                assert named["shift 0"] < named["leave one out"] < named["shift 1"]


def test_the_committed_curves_start_alike_and_end_in_the_order_of_the_variances():
    result = committed("baseline_learning")
    for optimizer in ("SGD", "AdamW"):
        ends = {name: row["held_out"]["mean"] for name, row in result["summary"][optimizer].items()}
        assert ends["leave one out"] > ends["none, rewards 0 and -1"]
        assert ends["none, rewards 1 and 0"] > ends["none, rewards 2 and 1"]


def test_a_run_learns_with_each_optimizer_and_reports_its_blocks(monkeypatch, capsys):
    tiny = baseline_learning.Settings(seeds=2, success=0.02, steps=4, block=2)
    monkeypatch.setattr(baseline_learning, "QUICK", tiny)
    assert baseline_learning.main(["--quick", "--json"]) == 0
    result = json.loads(capsys.readouterr().out)
    assert len(result["runs"]) == 2 * 2 * 4
    assert all(len(run["success"]) == 2 for run in result["runs"])
    lead = result["summary"]["SGD"]["leave one out"]["lead"]
    assert lead == {"mean": 0.0, "half_width": 0.0}
