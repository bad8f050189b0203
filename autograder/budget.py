# SPDX-License-Identifier: MIT
"""Time that a student's code may use: of a load, of a check, of the whole submission."""

__all__ = ["Budget"]


class Budget:
    """Seconds that the student's code may still use; only time inside requests counts."""

    def __init__(self, seconds: float, parent: "Budget | None" = None) -> None:
        self.seconds, self.used, self.parent = seconds, 0.0, parent

    @property
    def left(self) -> float:
        """Seconds left here and in the budget that this one is a part of."""
        own = self.seconds - self.used
        return own if self.parent is None else min(own, self.parent.left)

    def spend(self, seconds: float) -> None:
        """Count the time of a request."""
        self.used += seconds
        if self.parent is not None:
            self.parent.spend(seconds)
