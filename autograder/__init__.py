# SPDX-License-Identifier: MIT
"""Grades notebooks with hidden pytest checks that run outside the student's process."""
