# SPDX-License-Identifier: MIT
"""Shape checks at the door of a function.

`(B,) * (B, T)` broadcasts without a word when B = T, so a wrong shape must stop a call instead of
changing its result.
"""

from torch import Tensor


def check_shape(
    name: str, tensor: Tensor, axes: str, sizes: tuple[int, ...], hint: str = ""
) -> None:
    """Raise unless a tensor has exactly the expected shape.

    Args:
        name: the argument's name, as the caller wrote it.
        tensor: any tensor.
        axes: the expected shape in letters, for example "(B, T)".
        sizes: the same shape in numbers.
        hint: one sentence that says what to do instead.
    Raises: TypeError if `tensor` is no tensor, ValueError if its shape differs.
    """
    if not isinstance(tensor, Tensor):
        raise TypeError(
            f"{name} must be a tensor {axes}={sizes}; got {type(tensor).__name__}. {hint}"
        )
    if tuple(tensor.shape) != sizes:
        raise ValueError(
            f"{name} must have shape {axes}={sizes}; got {tuple(tensor.shape)}. {hint}".rstrip()
        )


def check_rank(name: str, tensor: Tensor, axes: str, hint: str = "") -> None:
    """Raise unless a tensor has as many axes as `axes` names.

    Args:
        name: the argument's name, as the caller wrote it.
        tensor: any tensor.
        axes: the expected axes in letters, for example "(B, T)".
        hint: one sentence that says what to do instead.
    Raises: TypeError if `tensor` is no tensor, ValueError if the number of axes differs.
    """
    rank = len([axis for axis in axes.strip("()").split(",") if axis.strip()])
    if not isinstance(tensor, Tensor):
        raise TypeError(f"{name} must be a tensor {axes}; got {type(tensor).__name__}. {hint}")
    if tensor.dim() != rank:
        raise ValueError(
            f"{name} must have shape {axes}; got {tuple(tensor.shape)}. {hint}".rstrip()
        )
