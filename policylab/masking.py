# SPDX-License-Identifier: MIT
"""Masks over tokens: True keeps a token, False hides it.

Hidden values are replaced with `torch.where` before any arithmetic. Multiplying by the mask is not
enough: NaN * 0 is NaN, in the value and in the gradient.
"""

import torch
from torch import Tensor

from policylab.shapes import check_rank, check_shape


def as_bool_mask(mask: Tensor) -> Tensor:
    """Return the mask as booleans, so that `~` and `torch.where` work on it.

    Args:
        mask: any shape, bool or numbers that are 0 or 1.
    Returns: the same shape, bool.
    """
    return mask if mask.dtype == torch.bool else mask != 0


def masked_mean(values: Tensor, mask: Tensor) -> Tensor:
    """Average the values that a mask keeps.

    Args:
        values: any shape; hidden values may be NaN or infinite.
        mask: same shape, bool or 0/1, with at least one True.
    Returns: () the mean; hidden places get a gradient of exactly 0.
    Raises: ValueError if the shapes differ.
    """
    check_shape("mask", mask, "of values", tuple(values.shape))
    keep = as_bool_mask(mask)
    return torch.where(keep, values, 0.0).sum() / keep.sum()


def completion_lengths(completion_mask: Tensor) -> Tensor:
    """Count the tokens of each completion, the sampled EOS included.

    Args:
        completion_mask: (B, T) bool or 0/1.
    Returns: (B,) int64.
    """
    check_rank("completion_mask", completion_mask, "(B, T)")
    return as_bool_mask(completion_mask).sum(dim=1)


def after_left_padding(ids: Tensor, pad_id: int) -> Tensor:
    """Find where each row begins: everything from its first token that is no pad.

    A pad id further right, for example after an EOS, is an ordinary token here.

    Args:
        ids: (B, L) token ids, left-padded.
        pad_id: the id that fills the left.
    Returns: (B, L) bool, False on the left padding only.
    """
    check_rank("ids", ids, "(B, L)")
    return (ids != pad_id).cumsum(dim=1) > 0
