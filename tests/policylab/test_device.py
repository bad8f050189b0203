# SPDX-License-Identifier: MIT
"""Which device is chosen, and what is said when there is none."""

import pytest
import torch

from policylab.device import device


@pytest.fixture(autouse=True)
def machine(monkeypatch):
    """A machine without variable, CUDA or MPS, whatever this one has."""
    monkeypatch.delenv("POLICYLAB_DEVICE", raising=False)
    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)
    monkeypatch.setattr(torch.cuda, "device_count", lambda: 0)
    monkeypatch.setattr(torch.backends.mps, "is_available", lambda: False)


def test_the_best_device_is_cuda_then_mps_then_cpu(monkeypatch):
    assert device().type == "cpu"
    monkeypatch.setattr(torch.backends.mps, "is_available", lambda: True)
    assert device().type == "mps"
    monkeypatch.setattr(torch.cuda, "is_available", lambda: True)
    assert device().type == "cuda"


def test_the_variable_overrides_the_best_and_the_argument_overrides_both(monkeypatch):
    monkeypatch.setattr(torch.backends.mps, "is_available", lambda: True)
    monkeypatch.setenv("POLICYLAB_DEVICE", "cpu")
    assert device().type == "cpu"
    assert device("mps").type == "mps"


@pytest.mark.parametrize("name", ["gpu", "meta", "cuda:x"])
def test_unknown_names_say_which_ones_there_are(name, monkeypatch):
    with pytest.raises(ValueError, match="device must be cpu, cuda, cuda:N or mps; got"):
        device(name)
    monkeypatch.setenv("POLICYLAB_DEVICE", name)
    with pytest.raises(ValueError, match="POLICYLAB_DEVICE must be cpu"):
        device()


@pytest.mark.parametrize("name", ["cuda", "cuda:1", "mps"])
def test_a_device_this_machine_lacks_is_refused(name, monkeypatch):
    monkeypatch.setattr(torch.cuda, "device_count", lambda: 1 if name == "cuda:1" else 0)
    with pytest.raises(ValueError, match="is not on this machine"):
        device(name)
