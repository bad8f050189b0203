# SPDX-License-Identifier: MIT
"""reinforce_loss: value, gradient, mask."""

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from policylab.losses import reinforce_loss


def batch(seed, B=4, T=5, dtype=torch.float64):
    generator = torch.Generator().manual_seed(seed)
    logprobs = -torch.rand(B, T, generator=generator, dtype=dtype) * 3
    lengths = torch.randint(0, T + 1, (B, 1), generator=generator)
    rewards = torch.randn(B, generator=generator, dtype=dtype)
    return logprobs, torch.arange(T) < lengths, rewards


def test_a_hand_worked_batch():
    logprobs = torch.tensor([[-1.0, -2.0], [-3.0, -9.0]])
    mask = torch.tensor([[True, True], [True, False]])
    # -((1 - 0.5) * -3 + (0 - 0.5) * -3) / 2 = 0; with baseline 0: -(1 * -3 + 0) / 2 = 1.5
    rewards = torch.tensor([1.0, 0.0])
    assert reinforce_loss(logprobs, mask, rewards, 0.5).item() == 0.0
    assert reinforce_loss(logprobs, mask, rewards).item() == 1.5


@pytest.mark.parametrize("seed", range(3))
def test_agrees_with_a_slow_loop(seed):
    logprobs, mask, rewards = batch(seed)
    baseline = torch.arange(4, dtype=torch.float64)
    total = 0.0
    for b in range(4):
        row = sum(logprobs[b, t].item() for t in range(5) if mask[b, t])
        total -= (rewards[b].item() - b) * row
    result = reinforce_loss(logprobs, mask, rewards, baseline)
    torch.testing.assert_close(result, torch.tensor(total / 4, dtype=torch.float64))


def test_gradient_is_minus_advantage_over_batch_on_kept_tokens():
    logprobs, mask, rewards = batch(1)
    logprobs.requires_grad_()
    reinforce_loss(logprobs, mask, rewards, 0.25).backward()
    expected = torch.where(mask, -(rewards - 0.25)[:, None] / 4, 0.0)
    torch.testing.assert_close(logprobs.grad, expected)


@given(st.integers(0, 10_000), st.sampled_from([float("nan"), float("inf"), -float("inf")]))
def test_masked_places_reach_neither_value_nor_gradient(seed, poison):
    logprobs, mask, rewards = batch(seed)
    poisoned = torch.where(mask, logprobs, poison).requires_grad_()
    result = reinforce_loss(poisoned, mask, rewards)
    result.backward()
    assert torch.equal(result, reinforce_loss(logprobs, mask, rewards))
    assert torch.isfinite(poisoned.grad).all()
    assert (poisoned.grad[~mask] == 0).all()


def test_no_gradient_reaches_rewards_or_baseline():
    logprobs, mask, rewards = batch(2)
    logprobs.requires_grad_()
    rewards.requires_grad_()
    baseline = torch.zeros(4, dtype=torch.float64, requires_grad=True)
    reinforce_loss(logprobs, mask, rewards, baseline).backward()
    assert rewards.grad is None and baseline.grad is None and logprobs.grad is not None


def test_a_step_downhill_makes_the_rewarded_completion_likelier():
    logits = torch.zeros(2, requires_grad=True)
    logprobs = torch.log_softmax(logits, dim=0)[:, None]
    reinforce_loss(logprobs, torch.ones(2, 1), torch.tensor([1.0, 0.0]), 0.5).backward()
    assert (-logits.grad)[0] > 0 > (-logits.grad)[1]


def test_an_empty_row_adds_nothing_but_counts_in_the_mean():
    logprobs = torch.tensor([[-2.0], [-5.0]])
    mask = torch.tensor([[True], [False]])
    # -(1 * -2 + 1 * 0) / 2
    assert reinforce_loss(logprobs, mask, torch.ones(2)).item() == 1.0


def test_baseline_as_number_0_dim_tensor_or_vector_gives_the_same():
    logprobs, mask, rewards = batch(3)
    number = reinforce_loss(logprobs, mask, rewards, 0.3)
    for baseline in (torch.tensor(0.3, dtype=torch.float64), torch.full((4,), 0.3).double()):
        torch.testing.assert_close(reinforce_loss(logprobs, mask, rewards, baseline), number)


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_the_loss_is_a_scalar_of_the_log_probabilities_dtype(dtype):
    logprobs, mask, rewards = batch(4, dtype=dtype)
    result = reinforce_loss(logprobs.requires_grad_(), mask.long(), rewards.double(), 0.5)
    assert result.dtype == dtype and result.shape == () and result.requires_grad


@pytest.mark.parametrize(
    ("logprobs", "mask", "rewards", "baseline", "name"),
    [
        ((3,), (3, 3), (3,), 0.0, "logprobs"),
        ((3, 3), (3,), (3,), 0.0, "completion_mask"),
        ((3, 3), (3, 2), (3,), 0.0, "completion_mask"),
        ((3, 3), (3, 3), (3, 3), 0.0, "rewards"),
        ((3, 3), (3, 3), (3, 1), 0.0, "rewards"),
        ((3, 3), (3, 3), (3,), torch.zeros(3, 1), "baseline"),
        ((3, 3), (3, 3), (3,), torch.zeros(1), "baseline"),
    ],
)
def test_shapes_that_would_broadcast_raise_value_error(logprobs, mask, rewards, baseline, name):
    with pytest.raises(ValueError, match=name):
        reinforce_loss(torch.zeros(logprobs), torch.ones(mask), torch.zeros(rewards), baseline)
