# SPDX-License-Identifier: MIT
"""The run record: which submission was written to the gradebook, and from what."""

import json

from autograder.course import Course

__all__ = ["RunRecord"]


class RunRecord:
    """Digests of what was written, by student, in a file that each change replaces in one step."""

    def __init__(self, course: Course, name: str) -> None:
        self.path = course.state / "runs" / f"{name}.json"

    def get(self, student: str) -> str | None:
        return self._read().get(student)

    def set(self, student: str, digest: str | None) -> None:
        entries = self._read() | ({student: digest} if digest else {})
        if digest is None:
            entries.pop(student, None)
        self.path.parent.mkdir(parents=True, exist_ok=True)
        scratch = self.path.with_suffix(".new")
        scratch.write_text(json.dumps(entries, indent=1, sort_keys=True) + "\n", encoding="utf-8")
        scratch.replace(self.path)

    def _read(self) -> dict[str, str]:
        try:
            entries = json.loads(self.path.read_text(encoding="utf-8"))
        except (OSError, ValueError):
            return {}
        return entries if isinstance(entries, dict) else {}
