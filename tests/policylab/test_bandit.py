# SPDX-License-Identifier: MIT
"""The softmax gradient, the bandit and its training loop."""

import numpy
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from policylab.bandit import FourArmedBandit, softmax_policy_gradient, train_softmax_policy


def generator(seed=0):
    return torch.Generator().manual_seed(seed)


def test_a_hand_worked_gradient():
    # softmax(0, 0) = (1/2, 1/2): 2 * ((1, 0) - (1/2, 1/2))
    assert softmax_policy_gradient(torch.zeros(2), 0, 2.0).tolist() == [1.0, -1.0]


@given(
    st.lists(st.floats(-5, 5), min_size=2, max_size=6),
    st.integers(0, 1),
    st.floats(-3, 3),
)
def test_agrees_with_autograd(numbers, action, advantage):
    logits = torch.tensor(numbers, dtype=torch.float64, requires_grad=True)
    (advantage * torch.log_softmax(logits, dim=0)[action]).backward()
    result = softmax_policy_gradient(logits.detach(), action, advantage)
    torch.testing.assert_close(result, logits.grad)
    assert abs(result.sum().item()) < 1e-12


def test_the_gradient_points_uphill():
    logits = torch.tensor([0.3, -1.0, 2.0], dtype=torch.float64)
    for advantage in (1.5, -1.5):
        moved = logits + 0.1 * softmax_policy_gradient(logits, 1, advantage)
        gain = torch.softmax(moved, 0)[1] - torch.softmax(logits, 0)[1]
        assert gain * advantage > 0


def test_the_expected_direction_is_the_gradient_of_the_expected_reward_with_any_baseline():
    rewards = torch.tensor([0.2, 0.45, 0.72, 0.92], dtype=torch.float64)
    logits = torch.tensor([0.1, -0.4, 0.7, 0.0], dtype=torch.float64, requires_grad=True)
    probs = torch.softmax(logits, dim=0)
    (true,) = torch.autograd.grad((probs * rewards).sum(), logits)
    for baseline in (0.0, 0.5, -3.0):
        mean = sum(
            probs[a].item() * softmax_policy_gradient(logits.detach(), a, rewards[a] - baseline)
            for a in range(4)
        )
        torch.testing.assert_close(mean, true)


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_large_logits_stay_finite_and_dtype_and_input_are_kept(dtype):
    logits = torch.tensor([1000.0, -1000.0], dtype=dtype)
    copy = logits.clone()
    result = softmax_policy_gradient(logits, 1, 1.0)
    assert result.dtype == dtype
    assert result.tolist() == [-1.0, 1.0]
    assert torch.equal(logits, copy)


@pytest.mark.parametrize(("shape", "action"), [((3,), 3), ((3,), -1), ((1, 3), 0), ((), 0)])
def test_unknown_actions_and_shapes_raise_value_error(shape, action):
    with pytest.raises(ValueError, match="action|logits"):
        softmax_policy_gradient(torch.zeros(shape), action, 1.0)


def test_pulls_scatter_around_the_true_reward_and_stay_in_range():
    bandit, source = FourArmedBandit(noise=0.05), generator()
    for arm, mean in enumerate(bandit.true_rewards[:3]):
        pulls = [bandit.pull(arm, source) for _ in range(2000)]
        assert abs(sum(pulls) / 2000 - mean) < 5 * 0.05 / 2000**0.5
    loud = [FourArmedBandit(noise=1.0).pull(3, source) for _ in range(200)]
    assert min(loud) == 0.0 and max(loud) == 1.0


def test_the_first_episode_by_hand():
    bandit = FourArmedBandit(noise=0.0)
    record = next(
        train_softmax_policy(bandit, lr=1.0, generator=generator(), choose=lambda probs, g: 3)
    )
    # Advantage 0.92 - 0.5 = 0.42; logits 0.42 * (-1/4, -1/4, -1/4, 3/4); a gap of 0.42 to the rest.
    assert record.episode == 1 and record.arm == 3 and record.reward == 0.92
    assert record.baseline == pytest.approx(0.5 + 0.05 * 0.42)
    assert record.best_arm_prob == pytest.approx(numpy.exp(0.42) / (numpy.exp(0.42) + 3))
    assert sum(record.probs) == pytest.approx(1.0)


def test_twenty_seeds_find_the_best_arm_and_none_has_converged():
    finals = []
    for seed in range(20):
        *_, last = train_softmax_policy(FourArmedBandit(), generator=generator(seed))
        assert max(range(4), key=lambda arm: last.probs[arm]) == 3
        finals.append(last.best_arm_prob)
    assert 0.7 < min(finals) and max(finals) < 0.9


def test_the_gradient_that_is_passed_in_is_the_one_that_is_used():
    def downhill(logits, action, advantage):
        return -softmax_policy_gradient(logits, action, advantage)

    *_, last = train_softmax_policy(FourArmedBandit(), generator=generator(), gradient=downhill)
    assert last.best_arm_prob < 0.25
