"""Whether the scheduler (Celery beat and the worker of its queue) is alive, by its ticks."""

from __future__ import annotations

from pools.platform import database

TICK = "ipam_scheduler_last_tick_timestamp_seconds"


def seconds_since_tick() -> float | None:
    """Return the seconds since the scheduler's last tick; None before its first."""
    rows = database.rows(
        "SELECT extract(epoch FROM ipam_clock())::float8 - value FROM pools_measure"
        " WHERE name = %s",
        [TICK],
    )
    return float(rows[0][0]) if rows else None
