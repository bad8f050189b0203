# SPDX-License-Identifier: MIT
"""One step of gradient descent, the same for every trainer."""

import math

import torch
from torch import Tensor


def warmed_up(lr: float, step: int, warmup_steps: int) -> float:
    """Grow the step size linearly from lr / warmup_steps at step 1 to lr at step warmup_steps."""
    return lr * min(1.0, step / max(1, warmup_steps))


def descend(
    optimizer: torch.optim.Optimizer, loss: Tensor, *, lr: float, max_grad_norm: float
) -> float:
    """Update the optimizer's parameters once, downhill on the loss.

    Args:
        optimizer: holds the parameters; old gradients are dropped.
        loss: () with its graph.
        lr: step size of this update.
        max_grad_norm: longer gradients are shortened to this length.
    Returns: the length of the gradient before it is shortened.
    Raises: FloatingPointError if the loss is not finite; the parameters are then unchanged.
    """
    if not math.isfinite(loss.item()):
        raise FloatingPointError(f"loss must be finite; got {loss.item()}. Try a lower lr.")
    for group in optimizer.param_groups:
        group["lr"] = lr
    optimizer.zero_grad()
    loss.backward()
    parameters = [p for group in optimizer.param_groups for p in group["params"]]
    norm = torch.nn.utils.clip_grad_norm_(parameters, max_grad_norm)
    optimizer.step()
    return norm.item()
