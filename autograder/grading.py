# SPDX-License-Identifier: MIT
"""The state of one submission while its checks run: who has passed, what is left, how it ended."""

from collections import Counter
from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager
from dataclasses import dataclass, field

from autograder import results
from autograder.assignment import Assignment
from autograder.inventory import CheckInfo
from autograder.outcomes import judge
from autograder.proxy import StudentProcess
from autograder.report import Finished, Outcome
from policylab.sandbox import SandboxError

__all__ = ["Grading"]


@dataclass
class Grading:
    """One submission under way.

    Args:
        assignment: its checks and limits.
        seeds: of the hidden inputs, by check.
        student: the submission in the sandbox; None while checks are only collected.
        sources: of the student's cells.
        finished: checks that have run, by id.
        collected: ids of the checks that take part; a need that does not counts as met.
        on_close: gives back what was opened for this submission alone.
    """

    assignment: Assignment
    seeds: Mapping[str, int]
    student: StudentProcess | None = None
    sources: tuple[str, ...] = ()
    finished: dict[str, Finished] = field(default_factory=dict)
    collected: set[str] = field(default_factory=set)
    on_close: Callable[[], None] = lambda: None
    sandbox_failure: str = ""
    _seconds: Counter[str] = field(default_factory=Counter)

    def info(self, check: str) -> CheckInfo:
        """Return what the inventory says about a check."""
        return next(info for info in self.assignment.checks if info.id == check)

    @property
    def process(self) -> StudentProcess:
        """The submission in the sandbox."""
        assert self.student is not None, "there is no submission"
        return self.student

    def check(self, check: str) -> AbstractContextManager[None]:
        """Give a check a state of its own in the student's process."""
        info = self.info(check)
        return self.process.check(self.assignment.timeout_s(info), fresh=info.fresh)

    def wall_s(self, check: str) -> float:
        """Return the wall time that a check may take in all."""
        return 2 * self.assignment.timeout_s(self.info(check)) + self.assignment.limits.grace_s

    def unmet_needs(self, check: str) -> str:
        """Return the titles of needed checks that did not pass; "" if all did.

        Raises: RuntimeError if the grader could not judge one: then it cannot judge this one.
        """
        titles = []
        for need in self.info(check).needs:
            if need not in self.finished:
                continue
            status = self.finished[need].outcome.status
            if status == results.GRADER_FAULT:
                raise RuntimeError(f"it needs {need}, which could not be judged")
            if status != results.PASSED:
                titles.append(self.info(need).title)
        return "; ".join(titles)

    def record(self, check: str, phase: str, error: BaseException | None, seconds: float) -> None:
        """Take in how a phase of a check ended: setup, call or teardown."""
        if isinstance(error, SandboxError):
            self.sandbox_failure = str(error)
        done = self.finished.get(check)
        self._seconds[check] += seconds  # type: ignore[assignment]
        outcome = done.outcome if done is not None else None
        if error is not None and (outcome is None or outcome.status == results.PASSED):
            outcome = judge(error, self.sources)
        elif outcome is None and phase == "call":
            outcome = Outcome(results.PASSED)
        if outcome is not None:
            self.finished[check] = Finished(outcome, self._seconds[check])

    def close(self) -> None:
        """End the student's process."""
        if self.student is not None:
            self.student.close()
        self.on_close()
