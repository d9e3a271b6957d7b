"""One parser for moments."""

from __future__ import annotations

from datetime import UTC, datetime

from pools.core import errors

_YEARS = (2000, 2200)


def parse_moment(value: str, *, field: str = "") -> datetime:
    """RFC 3339 with a zone, of a year that can be meant; in UTC. InvalidInput `time`."""
    try:
        # A "+" that nobody escaped arrives as a blank.
        found = datetime.fromisoformat(value.replace(" ", "+") if "T" in value else value)
    except ValueError:
        found = None
    if found is None or found.tzinfo is None or not _YEARS[0] <= found.year < _YEARS[1]:
        message = "must be a time with a zone such as 2026-05-05T14:02:00Z"
        raise errors.InvalidInput.of(field, "time", message, value)
    return found.astimezone(UTC)
