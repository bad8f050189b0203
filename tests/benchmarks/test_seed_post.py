# SPDX-License-Identifier: MIT
"""The post the course grew out of: its printed numbers, and what the errata page says of them."""

import json
from pathlib import Path

import numpy as np
import preference_bandit
import pytest
import seed_post
from scipy.special import ndtr

COMMITTED = Path(__file__).resolve().parents[2] / "benchmarks" / "seed_post.json"


@pytest.fixture(scope="module")
def committed():
    return json.loads(COMMITTED.read_text(encoding="utf-8"))


def test_the_posts_numbers_come_out_as_printed_there():
    sources = preference_bandit.posts_sources()
    bandit = preference_bandit.NumpyBandit(sources.pulls)
    comparisons = preference_bandit.collect_comparisons(bandit, sources.arms)
    model = preference_bandit.fit_reward_model(comparisons)
    assert len(comparisons) == 80
    assert f"{preference_bandit.accuracy(model, comparisons):.1%}" == "100.0%"

    # As in the post, scikit-learn's own predict_proba pays the policy.
    def score(pull):
        return float(model.predict_proba([[pull - np.mean(bandit.true_rewards)]])[0, 1])

    *_, last = preference_bandit.train_policy(sources, bandit, score)
    assert last.episode == 300
    assert f"{last.best_arm_prob:.1%}" == "82.0%"


def test_the_fast_score_is_scikit_learns():
    sources = preference_bandit.posts_sources()
    bandit = preference_bandit.NumpyBandit(sources.pulls)
    model = preference_bandit.fit_reward_model(
        preference_bandit.collect_comparisons(bandit, sources.arms)
    )
    for reference in (0.0, 0.5725, 1.0):
        score = preference_bandit.scorer(model, reference)
        for pull in np.linspace(0, 1, 11):
            expected = model.predict_proba([[pull - reference]])[0, 1]
            assert score(pull) == pytest.approx(expected, abs=1e-12)


def test_the_label_is_the_sign_of_the_feature():
    sources = preference_bandit.fresh_sources(0)
    bandit = preference_bandit.NumpyBandit(sources.pulls)
    table = preference_bandit.collect_comparisons(bandit, sources.arms, 500)
    off_zero = table[table["gap"] != 0]  # a gap below 0.0005 is rounded to 0
    assert ((off_zero["gap"] > 0) == (off_zero["first_preferred"] == 1)).all()
    assert (table["first_arm"] != table["second_arm"]).all()


def test_the_expected_share_of_wrong_labels_by_hand():
    # Two pulls differ by a normal with deviation 0.05 * sqrt(2). Six pairs of arms are equally
    # likely; their gaps are .25 .52 .72 .27 .47 .20, and all but three are out of reach.
    by_hand = sum(ndtr(-gap / (0.05 * 2**0.5)) for gap in (0.20, 0.25, 0.27)) / 6
    assert seed_post.expected_disagreement() == pytest.approx(by_hand, rel=1e-3)


def test_annotators_who_disagree_follow_bradley_terry():
    annotate = preference_bandit.bradley_terry(np.random.default_rng(0), temperature=0.2)
    share = np.mean([annotate(0.7, 0.5) for _ in range(20_000)])
    # sigmoid(0.2 / 0.2) = 0.7311, standard error 0.0031
    assert share == pytest.approx(0.7311, abs=4 * 0.0031)


def test_with_disagreement_no_model_reaches_the_posts_accuracy():
    measured = seed_post.accuracies(seed=0, temperature=0.2)
    # 1,000 held-out pairs: a standard error of about 0.011.
    assert measured["sign_of_gap"] == pytest.approx(measured["ceiling"], abs=0.045)
    assert measured["held_out"] < 0.9
    assert seed_post.accuracies(seed=0, temperature=None)["sign_of_gap"] == 1.0


def test_a_seed_gives_the_committed_curve(committed):
    """The committed file is of this code: one of its seeds, run again to episode 300."""
    sources = preference_bandit.fresh_sources(3)
    bandit = preference_bandit.NumpyBandit(sources.pulls)
    model = preference_bandit.fit_reward_model(
        preference_bandit.collect_comparisons(bandit, sources.arms)
    )
    again = seed_post.curve(
        preference_bandit.train_policy(sources, bandit, preference_bandit.scorer(model))
    )
    assert again == pytest.approx(committed["curves"][3][: len(again)], abs=1e-3)


def test_the_committed_file_says_what_the_errata_page_says(committed):
    post, summary = committed["post"], committed["summary"]
    assert committed["settings"]["seeds"] == len(committed["curves"]) == 20
    assert f"{post['training_accuracy']:.1%} {post['best_arm_prob']:.1%}" == "100.0% 82.0%"
    assert post["labels_against_true_order"] == 0
    short, long = summary["best_arm_prob"]["300"], summary["best_arm_prob"]["3000"]
    assert post["best_arm_prob"] > short["max"]  # the post's run is a lucky one
    assert short["max"] < 0.85 and long["min"] > 0.97  # not converged, then nearly so
    raw = summary["raw_reward"]["300"]
    assert raw["mean"] - raw["half_width"] > short["mean"] + short["half_width"]
    reference = summary["reference"]
    assert reference["0"]["max"] < reference["0.5725"]["min"]


def test_the_command_prints_json_and_saves_it(monkeypatch, tmp_path, capsys):
    monkeypatch.setattr(seed_post, "MORE_EPISODES", 300)
    monkeypatch.setattr(seed_post, "HELD_OUT_PAIRS", 20)
    path = tmp_path / "result.json"
    assert seed_post.main(["--seeds", "2", "--json", "--output", str(path)]) == 0
    assert json.loads(capsys.readouterr().out) == json.loads(path.read_text())


def test_one_seed_has_no_interval(capsys):
    with pytest.raises(SystemExit, match="2"):
        seed_post.main(["--seeds", "1"])
    assert "--seeds" in capsys.readouterr().err
