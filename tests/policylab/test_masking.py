# SPDX-License-Identifier: MIT
"""Masks hide values from results and gradients."""

import pytest
import torch

from policylab.masking import after_left_padding, as_bool_mask, completion_lengths, masked_mean


@pytest.mark.parametrize("dtype", [torch.bool, torch.int64, torch.float32])
def test_as_bool_mask_accepts_bool_and_zero_one_numbers(dtype):
    mask = torch.tensor([[1, 0], [1, 1]]).to(dtype)
    assert as_bool_mask(mask).tolist() == [[True, False], [True, True]]


def test_masked_mean_of_a_hand_worked_batch():
    values = torch.tensor([[1.0, 2.0, 9.0], [6.0, 9.0, 9.0]])
    mask = torch.tensor([[True, True, False], [True, False, False]])
    # (1 + 2 + 6) / 3
    torch.testing.assert_close(masked_mean(values, mask), torch.tensor(3.0))


def test_masked_mean_lets_no_nan_through_value_or_gradient():
    values = torch.tensor([1.0, float("nan"), float("inf")], requires_grad=True)
    mean = masked_mean(values, torch.tensor([True, False, False]))
    mean.backward()
    assert mean.item() == 1.0
    assert values.grad.tolist() == [1.0, 0.0, 0.0]


def test_masked_mean_keeps_float64():
    assert masked_mean(torch.ones(2, dtype=torch.float64), torch.tensor([1, 0])).dtype == (
        torch.float64
    )


def test_masked_mean_refuses_a_mask_that_would_broadcast():
    with pytest.raises(ValueError, match="mask"):
        masked_mean(torch.ones(3, 3), torch.ones(3))


def test_completion_lengths_count_the_kept_tokens():
    mask = torch.tensor([[True, True, False], [False, False, False]])
    assert completion_lengths(mask).tolist() == [2, 0]
    with pytest.raises(ValueError, match="completion_mask"):
        completion_lengths(mask[0])


def test_after_left_padding_finds_the_first_token_and_keeps_later_pads():
    ids = torch.tensor([[0, 0, 5, 0], [4, 0, 0, 5], [0, 0, 0, 0]])
    assert after_left_padding(ids, pad_id=0).int().tolist() == [
        [0, 0, 1, 1],
        [1, 1, 1, 1],
        [0, 0, 0, 0],
    ]
