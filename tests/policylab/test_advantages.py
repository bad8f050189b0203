# SPDX-License-Identifier: MIT
"""leave_one_out_baseline: value, and that it leaves the expected gradient as it is."""

from itertools import product

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from policylab.advantages import leave_one_out_baseline
from policylab.losses import reinforce_loss

REWARDS = torch.tensor([1.0, 0.0, 0.3], dtype=torch.float64)
LOGITS = torch.tensor([0.2, -0.5, 1.0], dtype=torch.float64)


def test_a_hand_worked_batch_of_two_groups():
    rewards = torch.tensor([1.0, 2.0, 6.0, 0.0, 0.0, 3.0])
    # (2 + 6) / 2, (1 + 6) / 2, (1 + 2) / 2; (0 + 3) / 2, (0 + 3) / 2, 0
    expected = torch.tensor([4.0, 3.5, 1.5, 1.5, 1.5, 0.0])
    assert torch.equal(leave_one_out_baseline(rewards, 3), expected)


@given(
    st.integers(1, 4),
    st.integers(2, 5),
    st.integers(0, 10_000),
)
def test_agrees_with_a_slow_loop(groups, size, seed):
    generator = torch.Generator().manual_seed(seed)
    rewards = torch.randn(groups * size, generator=generator, dtype=torch.float64)
    expected = []
    for i in range(groups * size):
        first = i // size * size
        others = [rewards[j].item() for j in range(first, first + size) if j != i]
        expected.append(sum(others) / len(others))
    torch.testing.assert_close(
        leave_one_out_baseline(rewards, size), torch.tensor(expected, dtype=torch.float64)
    )


def test_a_completions_own_reward_does_not_move_its_baseline():
    rewards = torch.tensor([1.0, 2.0, 4.0, 8.0], dtype=torch.float64)
    changed = rewards.clone()
    changed[1] = -7.0
    before, after = (leave_one_out_baseline(r, 2) for r in (rewards, changed))
    assert before[1] == after[1]
    assert before[0] != after[0]
    assert torch.equal(before[2:], after[2:])


def expected_gradient(baseline):
    """The mean of the loss's gradient over all pairs of samples, weighted by probability."""
    total = torch.zeros(3, dtype=torch.float64)
    for actions in product(range(3), repeat=2):
        logits = LOGITS.clone().requires_grad_()
        logprobs = torch.log_softmax(logits, dim=0)
        index = torch.tensor(actions)
        rewards = REWARDS[index]
        loss = reinforce_loss(
            logprobs[index][:, None], torch.ones(2, 1), rewards, baseline(rewards)
        )
        (gradient,) = torch.autograd.grad(loss, logits)
        total += logprobs.detach()[index].sum().exp() * gradient
    return total


def true_gradient():
    logits = LOGITS.clone().requires_grad_()
    return torch.autograd.grad(-(torch.softmax(logits, dim=0) * REWARDS).sum(), logits)[0]


def test_leave_one_out_keeps_the_expected_gradient():
    gradient = expected_gradient(lambda rewards: leave_one_out_baseline(rewards, 2))
    torch.testing.assert_close(gradient, true_gradient())


def test_a_group_mean_that_holds_the_own_reward_shrinks_the_expected_gradient():
    # The contrast: with G = 2 the own reward makes up half of the mean, and 1 - 1/2 is left.
    gradient = expected_gradient(lambda rewards: rewards.mean().expand(2))
    torch.testing.assert_close(gradient, true_gradient() / 2)


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_dtype_and_shape_are_kept_and_the_input_too(dtype):
    rewards = torch.arange(4, dtype=dtype)
    copy = rewards.clone()
    result = leave_one_out_baseline(rewards, 2)
    assert result.dtype == dtype and result.shape == (4,)
    assert torch.equal(rewards, copy)


@pytest.mark.parametrize(
    ("shape", "group_size", "name"),
    [((4,), 1, "group_size"), ((4,), 0, "group_size"), ((5,), 2, "B=5"), ((2, 2), 2, "rewards")],
)
def test_groups_that_do_not_fit_raise_value_error(shape, group_size, name):
    with pytest.raises(ValueError, match=name):
        leave_one_out_baseline(torch.zeros(shape), group_size)
