# SPDX-License-Identifier: MIT
"""Gradients through the process boundary: `loss = student.f(x); loss.backward()` fills `x.grad`."""

from typing import Any

import torch
from torch import Tensor

from autograder.errors import StudentCrashed

__all__ = ["RemoteGraph"]


class RemoteGraph(torch.autograd.Function):
    """Splices a graph that lives in the worker into autograd here.

    The gradients are the worker's claim: compare them with a right gradient, or use gradcheck,
    whose finite differences are measured here.
    """

    @staticmethod
    def forward(
        ctx: Any,
        connection: Any,
        graph: int,
        outputs: list[Tensor],
        anchor: Tensor,
        *leaves: Tensor,
    ) -> tuple[Tensor, ...]:
        ctx.connection, ctx.graph = connection, graph
        ctx.leaves = [(leaf.shape, leaf.dtype) for leaf in leaves]
        return tuple(output.clone() for output in outputs)

    @staticmethod
    def backward(ctx: Any, *output_grads: Tensor) -> tuple[Tensor | None, ...]:
        # Autograd runs this with gradients enabled only under create_graph=True, and the remote
        # graph has no second order.  `once_differentiable` is not enough: with a scalar loss it
        # returns gradients without a graph, so a gradient penalty would lose its term silently.
        if torch.is_grad_enabled():
            raise RuntimeError("create_graph=True does not work through the process boundary")
        grads = ctx.connection.request("vjp", graph=ctx.graph, args=output_grads)
        if type(grads) is not list or len(grads) != len(ctx.leaves):
            raise StudentCrashed("broke the protocol: not a gradient per leaf")
        for grad, (shape, dtype) in zip(grads, ctx.leaves, strict=True):
            if grad is not None and not (
                type(grad) is Tensor and grad.shape == shape and grad.dtype == dtype
            ):
                raise StudentCrashed("broke the protocol: a gradient that does not fit its leaf")
        return (None, None, None, None, *grads)
