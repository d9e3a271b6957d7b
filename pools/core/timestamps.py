"""Parser of timestamps."""

from __future__ import annotations

from datetime import UTC, datetime

from pools.core import errors

_YEARS = (2000, 2200)


def parse_timestamp(value: str, field: str = "") -> datetime:
    """Return an RFC 3339 timestamp in UTC. Raises InvalidInput `time` without a zone or outside 2000-2199."""
    try:
        # An unescaped "+" of a query string arrives as a blank.
        moment = datetime.fromisoformat(value.replace(" ", "+") if "T" in value else value)
    except ValueError:
        moment = None
    if moment is None or moment.tzinfo is None or not _YEARS[0] <= moment.year < _YEARS[1]:
        message = "must be a time with a zone such as 2026-05-05T14:02:00Z"
        raise errors.InvalidInput.for_field(field, "time", message, value)
    return moment.astimezone(UTC)
