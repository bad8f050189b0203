# SPDX-License-Identifier: MIT
"""Checks of `softmax_policy_gradient`.  Oracle: differences of advantage * log π(action)."""

import math

import torch
from torch import Tensor

from autograder.checking import Draw, assert_tensor, check


def log_prob(logits: list[float], action: int) -> float:
    top = max(logits)
    return logits[action] - top - math.log(math.fsum(math.exp(x - top) for x in logits))


def slow_gradient(logits: Tensor, action: int, advantage: float, step: float = 1e-5) -> Tensor:
    """Move one logit at a time up and down (in float64) and watch the log-probability."""
    point = [float(x) for x in logits.tolist()]
    result = []
    for k in range(len(point)):
        up = [x + step * (i == k) for i, x in enumerate(point)]
        down = [x - step * (i == k) for i, x in enumerate(point)]
        result.append(advantage * (log_prob(up, action) - log_prob(down, action)) / (2 * step))
    return torch.tensor(result, dtype=torch.float64).to(logits.dtype)


def advantage_of(draw: Draw) -> float:
    """Some number between 1.5 and 3: neither 1 nor below 0."""
    return draw.uniform(low=1.5, high=3.0).item()


@check(
    cell="ex02_3_softmax_policy_gradient",
    share=2,
    title="with advantage 1 the result is the gradient of log π(action), uphill",
    hint="One-hot of the action minus the softmax. The direction is that of ascent: add it, and "
    "the action becomes likelier.",
)
def test_softmax_policy_gradient_value(student, draw, process):
    logits = 1.5 * draw.normal(4)
    for action in draw.shuffled(range(4)):
        actual = student.softmax_policy_gradient(logits, action, 1.0)
        assert_tensor(actual, slow_gradient(logits, action, 1.0), rtol=1e-4, atol=1e-5)


@check(
    cell="ex02_3_softmax_policy_gradient",
    share=2,
    title="the gradient scales with the advantage, sign included",
    hint="The advantage multiplies the whole vector, every entry; a negative one pushes the "
    "action down, and 0 moves nothing.",
    needs=("softmax_policy_gradient_value",),
)
def test_softmax_policy_gradient_advantage(student, draw, process):
    logits, size = 1.5 * draw.normal(4), advantage_of(draw)
    for advantage in draw.shuffled([size, -size, 0.0, 0.1 * size]):
        action = draw.integer(0, 4)
        actual = student.softmax_policy_gradient(logits, action, advantage)
        expected = slow_gradient(logits, action, advantage)
        assert_tensor(actual, expected, rtol=1e-4, atol=1e-5)


@check(
    cell="ex02_3_softmax_policy_gradient",
    share=0.5,
    title="any number of actions will do",
    hint="Take the number of actions from the shape of the logits.",
    needs=("softmax_policy_gradient_value",),
)
def test_softmax_policy_gradient_sizes(student, draw, process):
    for size in draw.shuffled([2, 3, 7]):
        logits, action = 1.5 * draw.normal(size), draw.integer(0, size)
        actual = student.softmax_policy_gradient(logits, action, 1.0)
        assert_tensor(actual, slow_gradient(logits, action, 1.0), rtol=1e-4, atol=1e-5)


@check(
    cell="ex02_3_softmax_policy_gradient",
    share=0.5,
    title="very large and very negative logits give a finite, right gradient",
    hint="exp overflows: use torch.softmax, or subtract the maximum first.",
    needs=("softmax_policy_gradient_value",),
)
def test_softmax_policy_gradient_stable(student, draw, process):
    near = draw.normal(4)
    far = torch.tensor([1000.0, -1000.0, 0.0, 300.0])[draw.permutation(4)]
    for logits in (near + 990, near - 990, far):
        action = draw.integer(0, 4)
        actual = student.softmax_policy_gradient(logits, action, 1.0)
        assert_tensor(actual, slow_gradient(logits, action, 1.0), rtol=1e-3, atol=1e-4)


@check(
    cell="ex02_3_softmax_policy_gradient",
    share=0.5,
    title="float64 logits give a float64 gradient",
    hint="A one-hot vector made as float32, or `.float()`, rounds: make it like the logits.",
    needs=("softmax_policy_gradient_value",),
)
def test_softmax_policy_gradient_float64(student, draw, process):
    logits, action = 1.5 * draw.normal(4, dtype=torch.float64), draw.integer(0, 4)
    actual = student.softmax_policy_gradient(logits, action, 1.0)
    # Central differences in float64 are good to about 1e-10, float32 to 1e-7.
    assert_tensor(actual, slow_gradient(logits, action, 1.0), rtol=0, atol=5e-10)


@check(
    cell="ex02_3_softmax_policy_gradient",
    share=0.5,
    title="the logits are left as they were",
    hint="`-=` on a tensor writes into the caller's tensor; make a new one.",
    needs=("softmax_policy_gradient_value",),
)
def test_softmax_policy_gradient_inputs_kept(student, draw, process):
    logits, action, size = 1.5 * draw.normal(4), draw.integer(0, 4), 1.0
    actual, after = process.call_mutating("softmax_policy_gradient", logits, action, size)
    assert_tensor(actual, slow_gradient(logits, action, size), rtol=1e-4, atol=1e-5)
    assert_tensor(after[0], logits, rtol=0, atol=0)
