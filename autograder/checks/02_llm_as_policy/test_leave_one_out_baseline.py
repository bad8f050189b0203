# SPDX-License-Identifier: MIT
"""Checks of `leave_one_out_baseline`.  Oracle: a loop that really leaves one out."""

import math

import torch
from torch import Tensor

from autograder.checking import assert_tensor, check, raises


def slow_baseline(rewards: Tensor, group_size: int) -> Tensor:
    values, result = rewards.tolist(), []
    for i in range(len(values)):
        start = i - i % group_size
        others = [values[j] for j in range(start, start + group_size) if j != i]
        result.append(math.fsum(others) / len(others))
    return torch.tensor(result, dtype=rewards.dtype)


@check(
    cell="ex02_5_leave_one_out_baseline",
    share=2,
    title="in one group, each completion gets the mean of the others' rewards",
    hint="The completion's own reward is left out of the sum and of the count: divide by "
    "group_size - 1.",
)
def test_leave_one_out_baseline_value(student, draw, process):
    for size in draw.shuffled([2, 5]):
        rewards = 2 * draw.normal(size)
        actual = student.leave_one_out_baseline(rewards, size)
        assert_tensor(actual, slow_baseline(rewards, size), rtol=1e-4, atol=1e-5)


@check(
    cell="ex02_5_leave_one_out_baseline",
    share=2,
    title="groups are contiguous and do not mix",
    hint="Rewards 0 … G - 1 belong to the first prompt, the next G to the second: reshape to "
    "(N, G), in that order.",
    needs=("leave_one_out_baseline_value",),
)
def test_leave_one_out_baseline_groups(student, draw, process):
    for groups, size in draw.shuffled([(3, 4), (4, 3), (3, 3)]):
        rewards = 2 * draw.normal(groups * size)
        actual = student.leave_one_out_baseline(rewards, size)
        assert_tensor(actual, slow_baseline(rewards, size), rtol=1e-4, atol=1e-5)


@check(
    cell="ex02_5_leave_one_out_baseline",
    share=1,
    title="float64 rewards give a float64 baseline",
    hint="`.float()` rounds to seven digits; keep the dtype of the rewards.",
    needs=("leave_one_out_baseline_value",),
)
def test_leave_one_out_baseline_float64(student, draw, process):
    rewards = 2 * draw.normal(5, dtype=torch.float64)
    actual = student.leave_one_out_baseline(rewards, 5)
    assert_tensor(actual, slow_baseline(rewards, 5), rtol=1e-9, atol=1e-9)


@check(
    cell="ex02_5_leave_one_out_baseline",
    share=1,
    title="a group of fewer than two has no others: ValueError",
    hint="Dividing by group_size - 1 = 0 gives NaN, not an error. Raise it yourself, for every "
    "group_size below 2.",
    needs=("leave_one_out_baseline_value",),
)
def test_leave_one_out_baseline_too_small(student, draw, process):
    for size in draw.shuffled([1, 0]):
        with raises("ValueError"):
            student.leave_one_out_baseline(draw.normal(6), size)


@check(
    cell="ex02_5_leave_one_out_baseline",
    share=1,
    title="a batch that does not hold whole groups: ValueError",
    hint="Check the remainder at the door. A failing reshape raises RuntimeError, a floor "
    "division drops rewards without a word.",
    needs=("leave_one_out_baseline_value",),
)
def test_leave_one_out_baseline_whole_groups(student, draw, process):
    for count, size in draw.shuffled([(7, 3), (2, 4)]):
        with raises("ValueError"):
            student.leave_one_out_baseline(draw.normal(count), size)


@check(
    cell="ex02_5_leave_one_out_baseline",
    share=1,
    title="the rewards are left as they were",
    hint="A view shares memory with the caller's tensor, so `-=` on it writes there.",
    needs=("leave_one_out_baseline_value",),
)
def test_leave_one_out_baseline_inputs_kept(student, draw, process):
    rewards = 2 * draw.normal(5)
    actual, after = process.call_mutating("leave_one_out_baseline", rewards, 5)
    assert_tensor(actual, slow_baseline(rewards, 5), rtol=1e-4, atol=1e-5)
    assert_tensor(after[0], rewards, rtol=0, atol=0)
