# SPDX-License-Identifier: MIT
"""Grade many submissions: what the cache knows comes back at once, lanes grade the rest.

Equal submissions are graded once.  A result is on disk before anyone hears of it, so an interrupt
loses nothing that was graded.  Grader faults are not kept: the next run tries them again.
"""

import hashlib
import json
import os
import queue
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor, as_completed
from dataclasses import dataclass
from pathlib import Path

from autograder.assignment import Assignment
from autograder.cache import load_result, store_result
from autograder.checker import Lane
from autograder.fingerprint import Prepared, prepare
from autograder.results import SubmissionResult
from policylab.sandbox import choose_backend
from policylab.sandbox.backends import BACKENDS

__all__ = ["Job", "Prepared", "cached_result", "grade_jobs", "job_key", "prepare"]

OnResult = Callable[["Job", SubmissionResult, bool], None]


@dataclass(frozen=True)
class Job:
    """One submission to grade.

    Args:
        cells: (name, source) of the code cells to run, in notebook order.
        label: for messages, such as a student's id; no part of the key.
    """

    cells: tuple[tuple[str, str], ...]
    label: str = ""


def job_key(job: Job, fingerprint: str) -> str:
    """Return the hash of a submission's cells and of all that its result depends on."""
    content = json.dumps([fingerprint, [list(cell) for cell in job.cells]])
    return hashlib.sha256(content.encode()).hexdigest()[:32]


def cached_result(
    assignment: Assignment, key: str, cache_dir: Path | None = None
) -> SubmissionResult | None:
    """Return the kept result of a key, if there is a sound one."""
    return load_result(_directory(assignment, cache_dir), assignment, key)


def grade_jobs(
    jobs: Iterable[Job],
    assignment: Assignment,
    *,
    lanes: int | None = None,
    backend: str | None = None,
    cache_dir: Path | None = None,
    on_result: OnResult | None = None,
) -> dict[str, SubmissionResult]:
    """Grade submissions and return their results by key.

    Args:
        jobs: of one assignment.
        assignment: with its checks.
        lanes: checker processes side by side; by default one per core.
        backend: of the sandbox; by default the best safe one.
        cache_dir: of kept results; by default in the course's state.
        on_result: called in this thread with the job, its result, and whether it was kept.
    Raises: LaneError if a checker does not start; SandboxError if there is no safe sandbox.
    """
    prepared = prepare(assignment)
    directory = _directory(assignment, cache_dir)
    backend = backend or choose_backend()
    waiting: dict[str, list[Job]] = {}
    results: dict[str, SubmissionResult] = {}
    for job in jobs:
        key = job_key(job, prepared.fingerprint)
        if key not in results and key not in waiting:
            kept = load_result(directory, assignment, key)
            if kept is not None and _is_trusted(kept, backend):
                results[key] = kept
        if key in results:
            _tell(on_result, job, results[key], True)
        else:
            waiting.setdefault(key, []).append(job)
    if waiting:
        crew = _Crew(assignment, prepared, backend, directory)
        count = min(lanes or os.cpu_count() or 1, len(waiting))
        for key, result in crew.grade({key: same[0] for key, same in waiting.items()}, count):
            results[key] = result
            for number, job in enumerate(waiting[key]):
                _tell(on_result, job, result, number > 0)
    return results


class _Crew:
    """Lanes side by side; each thread only waits for its own."""

    def __init__(
        self, assignment: Assignment, prepared: Prepared, backend: str, directory: Path
    ) -> None:
        self.assignment, self.prepared = assignment, prepared
        self.backend, self.directory = backend, directory
        self.lanes: list[Lane] = []

    def grade(self, jobs: dict[str, Job], count: int) -> Iterator[tuple[str, SubmissionResult]]:
        """Yield results by key as they come."""
        idle: queue.SimpleQueue[Lane] = queue.SimpleQueue()
        for _ in range(count):
            lane = Lane(self.assignment, self.prepared.view, self.prepared.secret, self.backend)
            self.lanes.append(lane)
            idle.put(lane)
        executor = ThreadPoolExecutor(count, thread_name_prefix="lane")
        try:
            futures = {executor.submit(self._one, idle, k, job): k for k, job in jobs.items()}
            for future in as_completed(futures):
                yield futures[future], future.result()
        finally:  # also on Ctrl-C: what lanes were grading is lost, nothing else
            executor.shutdown(wait=False, cancel_futures=True)
            for lane in self.lanes:
                lane.interrupt()
            executor.shutdown(wait=True)
            for lane in self.lanes:
                lane.close()

    def _one(self, idle: "queue.SimpleQueue[Lane]", key: str, job: Job) -> SubmissionResult:
        lane = idle.get()
        try:
            result = lane.grade(job.cells, key)
            store_result(self.directory, result)
            return result
        finally:
            idle.put(lane)


def _directory(assignment: Assignment, cache_dir: Path | None) -> Path:
    return cache_dir or assignment.state_dir / "cache" / assignment.name


def _is_trusted(kept: SubmissionResult, backend: str) -> bool:
    """Whether a kept result may stand: one made without a sandbox only where that is asked for."""
    return kept.backend in BACKENDS or kept.backend == backend


def _tell(on_result: OnResult | None, job: Job, result: SubmissionResult, cached: bool) -> None:
    if on_result is not None:
        on_result(job, result, cached)
