# SPDX-License-Identifier: MIT
"""The mark on functions that students write themselves."""

from collections.abc import Callable
from typing import Any, TypeVar

Function = TypeVar("Function", bound=Callable[..., Any])


def exercise(assignment: str) -> Callable[[Function], Function]:
    """Mark a function or class as the answer to an exercise of an assignment.

    The mark is the attribute `__exercise__`; the function itself is returned unchanged. The grading
    package reads the decorator from the source and replaces the body in the copy of this library
    that student code imports.

    Args:
        assignment: name of the assignment, `NN_slug`, for example `02_llm_as_policy`.
    """

    def mark(function: Function) -> Function:
        function.__exercise__ = assignment  # type: ignore[attr-defined]
        return function

    return mark
