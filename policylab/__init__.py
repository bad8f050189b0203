# SPDX-License-Identifier: MIT
"""Policy Lab's teaching library: small, pure PyTorch functions for reinforcement learning on LLMs.

Import from the modules (`from policylab.losses import reinforce_loss`). This package imports
nothing by itself, so that `policylab.sandbox` starts without torch.
"""

__version__ = "0.1.0"
