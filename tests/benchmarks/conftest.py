# SPDX-License-Identifier: MIT
"""Benchmarks are scripts, not a package: a test gets one as a module from its path."""

import importlib.util
import sys
from collections.abc import Callable
from pathlib import Path
from types import ModuleType

import pytest
import torch

BENCHMARKS = Path(__file__).resolve().parents[2] / "benchmarks"
torch.set_num_threads(1)


@pytest.fixture(scope="session")
def script() -> Callable[[str], ModuleType]:
    """Import benchmarks/<name>.py without running it."""

    def load(name: str) -> ModuleType:
        spec = importlib.util.spec_from_file_location(
            f"benchmark_{name}", BENCHMARKS / f"{name}.py"
        )
        module = importlib.util.module_from_spec(spec)
        sys.modules[spec.name] = module  # a dataclass looks its own module up
        spec.loader.exec_module(module)
        return module

    return load
