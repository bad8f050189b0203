# SPDX-License-Identifier: MIT
"""One step of descent."""

import pytest
import torch

from policylab.trainers.step import descend, warmed_up


def test_the_step_size_grows_to_its_value_and_stays():
    assert [warmed_up(0.4, step, 4) for step in (1, 2, 4, 5)] == pytest.approx([0.1, 0.2, 0.4, 0.4])
    assert warmed_up(0.4, 1, 0) == 0.4


def test_a_long_gradient_is_shortened_and_its_length_returned():
    x = torch.tensor([3.0, 4.0], requires_grad=True)
    optimizer = torch.optim.SGD([x], lr=99.0)
    # The gradient (3, 4) has length 5; shortened to 1 it is (0.6, 0.8).
    assert descend(optimizer, x.square().sum() / 2, lr=0.5, max_grad_norm=1.0) == 5.0
    torch.testing.assert_close(x.detach(), torch.tensor([2.7, 3.6]), atol=1e-5, rtol=0)


def test_old_gradients_are_dropped():
    x = torch.tensor([1.0], requires_grad=True)
    x.grad = torch.tensor([100.0])
    descend(torch.optim.SGD([x], lr=1.0), x.sum(), lr=1.0, max_grad_norm=10.0)
    assert x.item() == 0.0


@pytest.mark.parametrize("bad", [float("nan"), float("inf")])
def test_a_loss_that_is_not_finite_raises_and_changes_nothing(bad):
    x = torch.tensor([1.0], requires_grad=True)
    with pytest.raises(FloatingPointError, match="lower lr"):
        descend(torch.optim.SGD([x], lr=1.0), (x * bad).sum(), lr=1.0, max_grad_norm=1.0)
    assert x.item() == 1.0
