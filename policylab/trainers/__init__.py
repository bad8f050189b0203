# SPDX-License-Identifier: MIT
"""Trainers: a frozen config and a generator function that yields one record a step."""

from policylab.trainers.imitate import ImitateConfig, ImitateRecord, imitate_until, train_imitate
from policylab.trainers.reinforce import ReinforceConfig, ReinforceRecord, train_reinforce

__all__ = [
    "ImitateConfig",
    "ImitateRecord",
    "ReinforceConfig",
    "ReinforceRecord",
    "imitate_until",
    "train_imitate",
    "train_reinforce",
]
