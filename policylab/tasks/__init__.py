# SPDX-License-Identifier: MIT
"""Tasks: problems without end, what a policy is shown of them, and a verifier for its answers."""

from policylab.tasks.addition import Addition, Sum
from policylab.tasks.task import Split, Task

__all__ = ["Addition", "Split", "Sum", "Task"]
