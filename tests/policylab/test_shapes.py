# SPDX-License-Identifier: MIT
"""Messages of the shape checks."""

import pytest
import torch

from policylab.shapes import check_rank, check_shape


def test_check_shape_names_expected_got_and_what_next():
    with pytest.raises(ValueError) as caught:
        check_shape("rewards", torch.zeros(4, 7), "(B,)", (4,), "Pass one reward a completion.")
    assert str(caught.value) == (
        "rewards must have shape (B,)=(4,); got (4, 7). Pass one reward a completion."
    )


def test_check_shape_accepts_the_exact_shape_only():
    check_shape("mask", torch.zeros(2, 3), "(B, T)", (2, 3))
    with pytest.raises(ValueError):
        check_shape("mask", torch.zeros(3, 2), "(B, T)", (2, 3))


@pytest.mark.parametrize(("axes", "rank"), [("()", 0), ("(B,)", 1), ("(B, T)", 2)])
def test_check_rank_counts_the_axes(axes, rank):
    check_rank("x", torch.zeros([1] * rank), axes)
    with pytest.raises(ValueError, match="x must have shape"):
        check_rank("x", torch.zeros([1] * (rank + 1)), axes)


def test_lists_are_refused_by_type():
    with pytest.raises(TypeError, match="got list"):
        check_shape("rewards", [1.0], "(B,)", (1,))
    with pytest.raises(TypeError, match="got list"):
        check_rank("rewards", [1.0], "(B,)")
