# SPDX-License-Identifier: MIT
"""One thread: with two on a busy machine, a step's time varies by a factor of ten.

For the same reason Hypothesis gets no deadline.
"""

import torch
from hypothesis import settings

torch.set_num_threads(1)
settings.register_profile("policylab", deadline=None)
settings.load_profile("policylab")
