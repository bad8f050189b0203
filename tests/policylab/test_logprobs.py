# SPDX-License-Identifier: MIT
"""completion_logprobs: shift, mask, temperature, numbers."""

import math

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from policylab.logprobs import completion_logprobs


def batch(seed, B=3, P=4, T=5, V=7, dtype=torch.float32):
    """Random logits and ids, with masks that are prefixes of lengths 1 .. T."""
    generator = torch.Generator().manual_seed(seed)
    logits = torch.randn(B, P + T, V, generator=generator, dtype=dtype)
    ids = torch.randint(V, (B, P + T), generator=generator)
    lengths = torch.randint(1, T + 1, (B, 1), generator=generator)
    return logits, ids, torch.arange(T) < lengths


def slow(logits, ids, mask, temperature):
    """One token at a time, with the standard library's exp and log."""
    B, L, _ = logits.shape
    T = mask.shape[1]
    result = torch.zeros(B, T, dtype=torch.float64)
    for b in range(B):
        for t in range(T):
            if mask[b, t]:
                position = L - T + t
                row = [x / temperature for x in logits[b, position - 1].tolist()]
                total = math.fsum(math.exp(x) for x in row)
                result[b, t] = row[int(ids[b, position])] - math.log(total)
    return result


def test_a_hand_worked_row():
    # Two tokens with logits 0 and ln 3 have the probabilities 1/4 and 3/4.
    logits = torch.tensor([[[0.0, math.log(3)], [math.log(3), 0.0], [50.0, -50.0]]])
    ids = torch.tensor([[0, 1, 1]])
    result = completion_logprobs(logits, ids, torch.ones(1, 2, dtype=torch.bool))
    torch.testing.assert_close(result, torch.tensor([[math.log(0.75), math.log(0.25)]]))


@pytest.mark.parametrize("temperature", [0.5, 1.0, 2.0])
@pytest.mark.parametrize("seed", range(3))
def test_agrees_with_a_slow_loop(seed, temperature):
    logits, ids, mask = batch(seed, dtype=torch.float64)
    result = completion_logprobs(logits, ids, mask, temperature=temperature)
    torch.testing.assert_close(result, slow(logits, ids, mask, temperature))


def test_only_the_positions_before_completion_tokens_matter():
    logits, ids, mask = batch(0)
    mask = torch.ones_like(mask)
    logits.requires_grad_()
    completion_logprobs(logits, ids, mask).sum().backward()
    used = logits.grad.abs().sum(dim=-1) > 0
    # P = 4, T = 5: positions 3 .. 7 predict the tokens at 4 .. 8.
    assert used.tolist() == [[False] * 3 + [True] * 5 + [False]] * 3


@given(st.integers(0, 10_000), st.sampled_from([float("nan"), float("inf"), -float("inf"), 1e30]))
def test_masked_places_reach_neither_value_nor_gradient(seed, poison):
    logits, ids, mask = batch(seed)
    B, T = mask.shape
    L = ids.shape[1]
    expected = completion_logprobs(logits, ids, mask)
    hidden = torch.zeros(B, L, dtype=torch.bool)
    hidden[:, L - T - 1 : L - 1] = ~mask
    hidden[:, -1] = True
    poisoned = logits.clone()
    poisoned[hidden] = poison
    poisoned.requires_grad_()
    other_ids = ids.clone()
    other_ids[:, L - T :][~mask] = -100
    result = completion_logprobs(poisoned, other_ids, mask)
    result.sum().backward()
    assert torch.equal(result, expected)
    assert torch.equal(result[~mask], torch.zeros(int((~mask).sum())))
    assert torch.isfinite(poisoned.grad).all()
    assert (poisoned.grad[hidden] == 0).all()


def test_adding_a_constant_to_a_position_changes_nothing():
    logits, ids, mask = batch(1, dtype=torch.float64)
    shifted = logits + torch.arange(9, dtype=torch.float64)[None, :, None]
    torch.testing.assert_close(
        completion_logprobs(shifted, ids, mask), completion_logprobs(logits, ids, mask)
    )


def test_all_tokens_of_a_position_have_probabilities_that_sum_to_one():
    logits, _, _ = batch(2, B=1, P=1, T=1, V=7)
    ids = torch.stack([torch.zeros(7, dtype=torch.long), torch.arange(7)], dim=1)
    result = completion_logprobs(logits.expand(7, 2, 7), ids, torch.ones(7, 1))
    torch.testing.assert_close(result.exp().sum(), torch.tensor(1.0))


def test_logits_of_a_thousand_stay_finite():
    logits = torch.tensor([[[1000.0, -1000.0], [0.0, 0.0]]])
    result = completion_logprobs(logits, torch.tensor([[0, 1]]), torch.ones(1, 1))
    assert result.item() == -2000.0


def test_a_forbidden_token_leaves_the_others_finite_with_gradients():
    logits = torch.tensor([[[0.0, 0.0, -float("inf")], [0.0] * 3]], requires_grad=True)
    result = completion_logprobs(logits, torch.tensor([[0, 1]]), torch.ones(1, 1))
    result.sum().backward()
    torch.testing.assert_close(result, torch.tensor([[math.log(0.5)]]))
    torch.testing.assert_close(logits.grad[0, 0], torch.tensor([-0.5, 0.5, 0.0]))


@pytest.mark.parametrize(
    ("given_dtype", "expected"),
    [
        (torch.float64, torch.float64),
        (torch.float32, torch.float32),
        (torch.bfloat16, torch.float32),
    ],
)
def test_result_is_in_float32_at_least(given_dtype, expected):
    logits, ids, mask = batch(0)
    assert completion_logprobs(logits.to(given_dtype), ids, mask).dtype == expected


def test_zero_one_masks_count_as_booleans_and_inputs_stay_as_they_were():
    logits, ids, mask = batch(3)
    copies = logits.clone(), ids.clone(), mask.clone()
    result = completion_logprobs(logits, ids, mask)
    assert torch.equal(completion_logprobs(logits, ids, mask.long()), result)
    assert torch.equal(completion_logprobs(logits, ids, mask.float()), result)
    assert all(torch.equal(a, b) for a, b in zip((logits, ids, mask), copies, strict=True))


@pytest.mark.parametrize(
    ("logits", "ids", "mask", "name"),
    [
        ((2, 5), (2, 5), (2, 3), "logits"),
        ((2, 5, 7), (2, 4), (2, 3), "input_ids"),
        ((2, 5, 7), (1, 5), (2, 3), "input_ids"),
        ((2, 5, 7), (2, 5), (3,), "completion_mask"),
        ((2, 5, 7), (2, 5), (1, 3), "completion_mask"),
        ((2, 5, 7), (2, 5), (2, 5), "completion_mask must be shorter"),
    ],
)
def test_shapes_that_do_not_fit_raise_value_error(logits, ids, mask, name):
    with pytest.raises(ValueError, match=name):
        completion_logprobs(
            torch.zeros(logits), torch.zeros(ids, dtype=torch.long), torch.ones(mask)
        )


@pytest.mark.parametrize("temperature", [0.0, -1.0, float("nan")])
def test_temperature_must_be_above_zero(temperature):
    logits, ids, mask = batch(0)
    with pytest.raises(ValueError, match="temperature"):
        completion_logprobs(logits, ids, mask, temperature=temperature)
