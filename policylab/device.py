# SPDX-License-Identifier: MIT
"""The choice of a device: an argument, an environment variable, or the best there is."""

import os

import torch

VARIABLE = "POLICYLAB_DEVICE"


def device(name: str | None = None) -> torch.device:
    """Choose where to compute: `name`, else POLICYLAB_DEVICE, else cuda, mps or cpu.

    Args:
        name: "cpu", "cuda", "cuda:N", "mps", or None.
    Raises: ValueError if the name is unknown or this machine has no such device.
    """
    wanted = name or os.environ.get(VARIABLE)
    origin = "device" if name else VARIABLE
    if not wanted:
        if torch.cuda.is_available():
            return torch.device("cuda")
        return torch.device("mps" if torch.backends.mps.is_available() else "cpu")
    try:
        chosen = torch.device(wanted)
    except RuntimeError:
        raise ValueError(_message(origin, wanted)) from None
    if chosen.type not in ("cpu", "cuda", "mps"):
        raise ValueError(_message(origin, wanted))
    if not _exists(chosen):
        raise ValueError(
            f"{origin}={wanted!r} is not on this machine: torch {torch.__version__} sees "
            f"{torch.cuda.device_count()} CUDA devices, "
            f"MPS {'yes' if torch.backends.mps.is_available() else 'no'}. Use cpu."
        )
    return chosen


def _exists(chosen: torch.device) -> bool:
    if chosen.type == "cuda":
        return (chosen.index or 0) < torch.cuda.device_count()
    return chosen.type == "cpu" or torch.backends.mps.is_available()


def _message(origin: str, wanted: str) -> str:
    return f"{origin} must be cpu, cuda, cuda:N or mps; got {wanted!r}."
