# SPDX-License-Identifier: MIT
"""One thread: with two on a busy machine, a step's time varies by a factor of ten."""

import torch

torch.set_num_threads(1)
