# SPDX-License-Identifier: MIT
"""Checks of `reinforce_loss`.  Oracle: a loop over completions and tokens with Python's math."""

import math

import torch
from torch import Tensor

from autograder.checking import Draw, assert_gradient, assert_tensor, check

B, T = 4, 6  # unequal: (B,) does not broadcast against (B, T) by accident


def inputs(draw: Draw) -> tuple[Tensor, Tensor, Tensor]:
    """Log-probabilities (B, T), a mask of unequal lengths, and rewards of either sign (B,)."""
    signs = torch.tensor([1.0, -1.0, 1.0, 1.0])[draw.permutation(B)]
    rewards = signs * draw.uniform(B, low=0.5, high=2.0)
    return draw.logprobs(B, T), draw.prefix_mask(B, T), rewards


def everything() -> Tensor:
    return torch.ones(B, T, dtype=torch.bool)


def rows(value: float | Tensor) -> list[float]:
    return value.tolist() if isinstance(value, Tensor) else [value] * B


def slow_loss(logprobs: Tensor, mask: Tensor, rewards: Tensor, baseline=0.0) -> Tensor:
    total = 0.0
    for b, (reward, expected) in enumerate(zip(rows(rewards), rows(baseline), strict=True)):
        kept = [x for x, keep in zip(logprobs[b].tolist(), mask[b].tolist(), strict=True) if keep]
        total -= (reward - expected) * math.fsum(kept) / B
    return torch.tensor(total, dtype=logprobs.dtype)


def slow_gradient(mask: Tensor, rewards: Tensor, baseline=0.0) -> Tensor:
    """Minus advantage / B at each kept token, 0 elsewhere."""
    result = torch.zeros(B, T, dtype=rewards.dtype)
    for b, (reward, expected) in enumerate(zip(rows(rewards), rows(baseline), strict=True)):
        for t in range(T):
            result[b, t] = -(reward - expected) / B if mask[b, t] else 0.0
    return result


@check(
    cell="ex02_4_reinforce_loss",
    share=2,
    title="minus the mean over completions of reward times summed log-probabilities",
    hint="Sum over a completion's tokens, mean over completions, and a minus sign, because an "
    "optimizer goes downhill.",
)
def test_reinforce_loss_value(student, draw, process):
    logprobs, _, rewards = inputs(draw)
    actual = student.reinforce_loss(logprobs, everything(), rewards)
    assert_tensor(actual, slow_loss(logprobs, everything(), rewards), rtol=1e-4, atol=1e-5)


@check(
    cell="ex02_4_reinforce_loss",
    share=1,
    title="masked tokens do not count",
    hint="Apply the mask before the sum over tokens. The divisor stays B, whatever the lengths.",
    needs=("reinforce_loss_value",),
)
def test_reinforce_loss_mask(student, draw, process):
    logprobs, mask, rewards = inputs(draw)
    actual = student.reinforce_loss(logprobs, mask, rewards)
    assert_tensor(actual, slow_loss(logprobs, mask, rewards), rtol=1e-4, atol=1e-5)


@check(
    cell="ex02_4_reinforce_loss",
    share=0.5,
    title="the mask may also be given as the numbers 0 and 1",
    hint="On whole numbers `~` flips bits and `[...]` picks rows by number: make it bool first.",
    needs=("reinforce_loss_mask",),
)
def test_reinforce_loss_mask_numbers(student, draw, process):
    logprobs, mask, rewards = inputs(draw)
    expected = slow_loss(logprobs, mask, rewards)
    for dtype in draw.shuffled([torch.int64, torch.float32]):
        actual = student.reinforce_loss(logprobs, mask.to(dtype), rewards)
        assert_tensor(actual, expected, rtol=1e-4, atol=1e-5)


@check(
    cell="ex02_4_reinforce_loss",
    share=1,
    title="NaN or infinity at masked places reaches neither loss nor gradient",
    hint="NaN * 0 is NaN. Choose with torch.where instead of multiplying by the mask.",
    needs=("reinforce_loss_mask", "reinforce_loss_gradient"),
)
def test_reinforce_loss_masked_nan(student, draw, process):
    logprobs, mask, rewards = inputs(draw)
    fill = draw.shuffled([math.nan, -math.inf] * (B * T))[: int((~mask).sum())]
    leaf = logprobs.clone()
    leaf[~mask] = torch.tensor(fill)
    leaf.requires_grad_()
    actual = student.reinforce_loss(leaf, mask, rewards)
    assert_tensor(actual, slow_loss(logprobs, mask, rewards), rtol=1e-4, atol=1e-5)
    assert_gradient(actual, leaf, slow_gradient(mask, rewards), rtol=1e-4, atol=1e-6)


@check(
    cell="ex02_4_reinforce_loss",
    share=0.5,
    title="a completion without tokens adds 0 and still counts in the mean",
    hint="The mean is over all B completions, also over one whose tokens are all masked.",
    needs=("reinforce_loss_mask",),
)
def test_reinforce_loss_empty_row(student, draw, process):
    logprobs, mask, rewards = inputs(draw)
    mask[draw.integer(0, B)] = False
    actual = student.reinforce_loss(logprobs, mask, rewards)
    assert_tensor(actual, slow_loss(logprobs, mask, rewards), rtol=1e-4, atol=1e-5)


@check(
    cell="ex02_4_reinforce_loss",
    share=1,
    title="a baseline that is one number is subtracted from every reward",
    hint="(reward - baseline) multiplies the summed log-probabilities; the baseline is no separate "
    "term of the loss.",
    needs=("reinforce_loss_value",),
)
def test_reinforce_loss_baseline(student, draw, process):
    logprobs, _, rewards = inputs(draw)
    for baseline in draw.shuffled([0.7, -1.3]):
        actual = student.reinforce_loss(logprobs, everything(), rewards, baseline)
        expected = slow_loss(logprobs, everything(), rewards, baseline)
        assert_tensor(actual, expected, rtol=1e-4, atol=1e-5)


@check(
    cell="ex02_4_reinforce_loss",
    share=1,
    title="a baseline may also be one number for each completion",
    hint="A (B,) baseline is subtracted row by row, not averaged first.",
    needs=("reinforce_loss_baseline",),
)
def test_reinforce_loss_baseline_rows(student, draw, process):
    logprobs, _, rewards = inputs(draw)
    baseline = draw.normal(B)
    actual = student.reinforce_loss(logprobs, everything(), rewards, baseline)
    expected = slow_loss(logprobs, everything(), rewards, baseline)
    assert_tensor(actual, expected, rtol=1e-4, atol=1e-5)


@check(
    cell="ex02_4_reinforce_loss",
    share=1,
    title="each token's gradient is minus its completion's advantage, divided by B",
    hint="The log-probabilities must keep their graph: only rewards and baseline are detached.",
    needs=("reinforce_loss_value",),
)
def test_reinforce_loss_gradient(student, draw, process):
    logprobs, _, rewards = inputs(draw)
    leaf = logprobs.requires_grad_()
    actual = student.reinforce_loss(leaf, everything(), rewards)
    assert_gradient(actual, leaf, slow_gradient(everything(), rewards), rtol=1e-4, atol=1e-6)


@check(
    cell="ex02_4_reinforce_loss",
    share=1,
    title="no gradient flows into rewards or baseline",
    hint="A learned reward or value would be trained by this loss: detach the advantage.",
    needs=("reinforce_loss_gradient", "reinforce_loss_baseline_rows"),
)
def test_reinforce_loss_detached(student, draw, process):
    logprobs, _, rewards = inputs(draw)
    baseline = draw.normal(B)
    leaves = [logprobs.requires_grad_(), rewards.requires_grad_(), baseline.requires_grad_()]
    actual = student.reinforce_loss(leaves[0], everything(), *leaves[1:])
    expected = slow_gradient(everything(), rewards, baseline)
    zero = torch.zeros(B)
    assert_gradient(actual, leaves, [expected, zero, zero], rtol=1e-4, atol=1e-6)


@check(
    cell="ex02_4_reinforce_loss",
    share=0.5,
    title="float64 log-probabilities give a float64 loss",
    hint="`.float()` rounds to seven digits; keep the dtype of the log-probabilities.",
    needs=("reinforce_loss_value",),
)
def test_reinforce_loss_float64(student, draw, process):
    logprobs, rewards = draw.logprobs(B, T, dtype=torch.float64), draw.normal(B).double()
    actual = student.reinforce_loss(logprobs, everything(), rewards)
    assert_tensor(actual, slow_loss(logprobs, everything(), rewards), rtol=1e-9, atol=1e-9)


@check(
    cell="ex02_4_reinforce_loss",
    share=0.5,
    title="the arguments are left as they were",
    hint="`.detach()` shares memory with its source, so `-=` on it writes into the caller's "
    "rewards.",
    needs=("reinforce_loss_mask", "reinforce_loss_baseline_rows"),
)
def test_reinforce_loss_inputs_kept(student, draw, process):
    logprobs, mask, rewards = inputs(draw)
    before = (logprobs, mask, rewards, draw.normal(B))
    actual, after = process.call_mutating("reinforce_loss", *before)
    assert_tensor(actual, slow_loss(*before), rtol=1e-4, atol=1e-5)
    for now, then in zip(after, before, strict=True):
        assert_tensor(now, then, rtol=0, atol=0)
