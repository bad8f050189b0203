# SPDX-License-Identifier: MIT
"""The time of a submission, as the exchange and learning platforms write it."""

import re
from datetime import UTC, datetime
from zoneinfo import ZoneInfo

__all__ = ["parse_time"]

_TIME = re.compile(
    r"(?P<time>\d{4}-\d\d-\d\d[ T]\d\d:\d\d:\d\d(?:\.\d{1,6})?)\s*"
    r"(?:(?P<offset>Z|[+-]\d\d:?\d\d)|(?P<zone>[A-Za-z_]+(?:/[A-Za-z_+-]+){0,2}))?",
    re.ASCII,
)


def parse_time(text: str) -> datetime:
    """Return the time in UTC; without a zone it is UTC already, as for nbgrader.

    nbgrader itself takes "+0200" for 200 seconds.
    Raises: ValueError or KeyError if it is no time; OverflowError if it is out of range.
    """
    match = _TIME.fullmatch(text)
    if match is None:
        raise ValueError(text)
    time = datetime.fromisoformat(match["time"] + (match["offset"] or ""))
    if time.tzinfo is None:
        try:
            time = time.replace(tzinfo=ZoneInfo(match["zone"] or "UTC"))
        except OSError:  # "Europe" is a folder of zones
            raise ValueError(text) from None
    return time.astimezone(UTC)
