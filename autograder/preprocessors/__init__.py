# SPDX-License-Identifier: MIT
"""The nbgrader side: what nbgrader_config.py puts in place of nbgrader's own steps.

This process holds the gradebook.  It never runs student code and never imports a hidden check.
"""
