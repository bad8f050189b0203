# SPDX-License-Identifier: MIT
"""Benchmarks are scripts beside each other, not a package: their folder goes on the path."""

import sys
from pathlib import Path

import torch

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "benchmarks"))
torch.set_num_threads(1)
