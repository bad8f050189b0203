# SPDX-License-Identifier: MIT
"""Checks of `completion_logprobs`.  Oracle: a loop over rows and tokens with Python's math."""

import math

import torch
from torch import Tensor

from autograder.checking import Draw, assert_gradient, assert_tensor, check

B, P, T, V = 4, 3, 5, 6
L = P + T


def inputs(draw: Draw) -> tuple[Tensor, Tensor]:
    """Logits (B, L, V) and ids (B, L); no two positions look alike, so a shift shows."""
    return 2 * draw.normal(B, L, V), draw.integers(0, V, (B, L))


def everything() -> Tensor:
    return torch.ones(B, T, dtype=torch.bool)


def slow_logprobs(
    logits: Tensor, ids: Tensor, mask: Tensor, temperature: float = 1.0, dtype=torch.float32
) -> Tensor:
    result = torch.zeros(mask.shape, dtype=torch.float64)
    for b, t in mask.nonzero().tolist():
        position = logits.shape[1] - mask.shape[1] + t
        scores = [x / temperature for x in logits[b, position - 1].tolist()]
        top = max(scores)
        log_total = top + math.log(math.fsum(math.exp(x - top) for x in scores))
        result[b, t] = scores[ids[b, position]] - log_total
    return result.to(dtype)


def slow_gradient(logits: Tensor, ids: Tensor, mask: Tensor, weights: Tensor) -> Tensor:
    """Gradient of sum(weights * logprobs): weight * (one-hot - softmax) one position earlier."""
    result = torch.zeros(logits.shape, dtype=torch.float64)
    for b, t in mask.nonzero().tolist():
        position = logits.shape[1] - mask.shape[1] + t
        exps = [math.exp(x) for x in logits[b, position - 1].tolist()]
        total, token, weight = math.fsum(exps), int(ids[b, position]), float(weights[b, t])
        row = [weight * ((v == token) - x / total) for v, x in enumerate(exps)]
        result[b, position - 1] = torch.tensor(row, dtype=torch.float64)
    return result.to(logits.dtype)


def spoiled(draw: Draw, logits: Tensor, mask: Tensor) -> Tensor:
    """Put NaN and infinities where only masked tokens would be scored."""
    result = logits.clone()
    for b, t in (~mask).nonzero().tolist():
        result[b, L - T + t - 1] = draw.choice([math.nan, math.inf, -math.inf])
    return result


@check(
    cell="ex02_1_completion_logprobs",
    share=2,
    title="each completion token is scored by the logits one position before it",
    hint="The output at position t - 1 predicts the token at position t, and the completion is the "
    "last T of the L positions.",
)
def test_completion_logprobs_value(student, draw, process):
    logits, ids = inputs(draw)
    actual = student.completion_logprobs(logits, ids, everything())
    assert_tensor(actual, slow_logprobs(logits, ids, everything()), rtol=1e-4, atol=1e-5)


@check(
    cell="ex02_1_completion_logprobs",
    share=1,
    title="the score is that of the distribution at the sampling temperature",
    hint="Divide the logits by the temperature before the log-softmax, not its result after.",
    needs=("completion_logprobs_value",),
)
def test_completion_logprobs_temperature(student, draw, process):
    logits, ids = inputs(draw)
    for temperature in draw.shuffled([0.6, 1.7]):
        actual = student.completion_logprobs(logits, ids, everything(), temperature=temperature)
        expected = slow_logprobs(logits, ids, everything(), temperature)
        assert_tensor(actual, expected, rtol=1e-4, atol=1e-5)


@check(
    cell="ex02_1_completion_logprobs",
    share=1,
    title="masked places hold exactly 0, the others are unchanged",
    hint="Is the mask used? It belongs to the T completion tokens, not to the L positions.",
    needs=("completion_logprobs_value",),
)
def test_completion_logprobs_mask(student, draw, process):
    logits, ids = inputs(draw)
    mask = draw.prefix_mask(B, T)
    actual = student.completion_logprobs(logits, ids, mask)
    assert_tensor(actual, slow_logprobs(logits, ids, mask), rtol=1e-4, atol=1e-5)
    assert_tensor(actual[~mask], torch.zeros(int((~mask).sum())), rtol=0, atol=0)


@check(
    cell="ex02_1_completion_logprobs",
    share=0.5,
    title="the mask may also be given as the numbers 0 and 1",
    hint="On whole numbers `~` flips bits and `[...]` picks rows by number: make it bool first.",
    needs=("completion_logprobs_mask",),
)
def test_completion_logprobs_mask_numbers(student, draw, process):
    logits, ids = inputs(draw)
    mask = draw.prefix_mask(B, T)
    expected = slow_logprobs(logits, ids, mask)
    for dtype in draw.shuffled([torch.int64, torch.float32]):
        actual = student.completion_logprobs(logits, ids, mask.to(dtype))
        assert_tensor(actual, expected, rtol=1e-4, atol=1e-5)


@check(
    cell="ex02_1_completion_logprobs",
    share=1,
    title="NaN or infinity at masked places does not reach the result",
    hint="NaN * 0 is NaN. Choose with torch.where instead of multiplying by the mask.",
    needs=("completion_logprobs_mask",),
)
def test_completion_logprobs_masked_nan(student, draw, process):
    logits, ids = inputs(draw)
    mask = draw.prefix_mask(B, T)
    actual = student.completion_logprobs(spoiled(draw, logits, mask), ids, mask)
    assert_tensor(actual, slow_logprobs(logits, ids, mask), rtol=1e-4, atol=1e-5)


@check(
    cell="ex02_1_completion_logprobs",
    share=1,
    title="NaN or infinity at masked places does not reach the gradient",
    hint="A torch.where after the log-softmax hides NaN from the result, but the backward pass "
    "still multiplies it by 0. Replace the masked logits before the log-softmax.",
    needs=("completion_logprobs_masked_nan", "completion_logprobs_gradient"),
)
def test_completion_logprobs_masked_gradient(student, draw, process):
    logits, ids = inputs(draw)
    mask, weights = draw.prefix_mask(B, T), 1 + draw.uniform(B, T)
    leaf = spoiled(draw, logits, mask).requires_grad_()
    actual = student.completion_logprobs(leaf, ids, mask)
    expected = slow_gradient(logits, ids, mask, weights)
    assert_gradient(actual, leaf, expected, weights=weights, rtol=1e-4, atol=1e-5)


@check(
    cell="ex02_1_completion_logprobs",
    share=2,
    title="the gradient with respect to the logits is one-hot minus softmax",
    hint="The graph must stay whole, through the sum under the softmax too: no detach, no .item(), "
    "no torch.no_grad().",
    needs=("completion_logprobs_value",),
)
def test_completion_logprobs_gradient(student, draw, process):
    logits, ids = inputs(draw)
    weights = 1 + draw.uniform(B, T)
    leaf = logits.clone().requires_grad_()
    actual = student.completion_logprobs(leaf, ids, everything())
    expected = slow_gradient(logits, ids, everything(), weights)
    assert_gradient(actual, leaf, expected, weights=weights, rtol=1e-4, atol=1e-5)


@check(
    cell="ex02_1_completion_logprobs",
    share=1,
    title="very large and very negative logits give finite, right scores",
    hint="exp overflows and log(0) is -inf: use log_softmax, or subtract the maximum first.",
    needs=("completion_logprobs_value",),
)
def test_completion_logprobs_stable(student, draw, process):
    logits, ids = inputs(draw)
    logits[0] += 990
    logits[1] -= 990
    logits[2:] = draw.uniform(B - 2, L, V, low=-1000, high=1000)
    actual = student.completion_logprobs(logits, ids, everything())
    assert_tensor(actual, slow_logprobs(logits, ids, everything()), rtol=1e-5, atol=1e-3)


@check(
    cell="ex02_1_completion_logprobs",
    share=1,
    title="half-precision logits are scored in float32 at least",
    hint="bfloat16 keeps two digits. Convert the logits before anything else is done with them.",
    needs=("completion_logprobs_temperature",),
)
def test_completion_logprobs_half(student, draw, process):
    logits, ids = inputs(draw)
    logits = logits.bfloat16()
    actual = student.completion_logprobs(logits, ids, everything(), temperature=0.7)
    assert type(actual) is Tensor and actual.dtype in (torch.float32, torch.float64)
    expected = slow_logprobs(logits, ids, everything(), 0.7)
    assert_tensor(actual.float(), expected, rtol=1e-4, atol=1e-5)


@check(
    cell="ex02_1_completion_logprobs",
    share=1,
    title="float64 logits are scored in float64",
    hint="`.float()` also rounds down to float32; torch.promote_types only ever widens.",
    needs=("completion_logprobs_value",),
)
def test_completion_logprobs_float64(student, draw, process):
    logits = 2 * draw.normal(B, L, V, dtype=torch.float64)
    ids = draw.integers(0, V, (B, L))
    actual = student.completion_logprobs(logits, ids, everything())
    expected = slow_logprobs(logits, ids, everything(), dtype=torch.float64)
    assert_tensor(actual, expected, rtol=1e-9, atol=1e-9)


@check(
    cell="ex02_1_completion_logprobs",
    share=0.5,
    title="the arguments are left as they were",
    hint="An operation with a trailing underscore, or an assignment into a slice, writes into the "
    "caller's tensor.",
    needs=("completion_logprobs_mask", "completion_logprobs_temperature"),
)
def test_completion_logprobs_inputs_kept(student, draw, process):
    logits, ids = inputs(draw)
    mask = draw.prefix_mask(B, T)
    actual, after = process.call_mutating("completion_logprobs", logits, ids, mask, temperature=0.8)
    assert_tensor(actual, slow_logprobs(logits, ids, mask, 0.8), rtol=1e-4, atol=1e-5)
    for now, before in zip(after, (logits, ids, mask), strict=True):
        assert_tensor(now, before, rtol=0, atol=0)
