"""Poolers in transaction mode: which of them Cadastre cannot work with, and why.

Each process looks at its first connection, /readyz at each of its own (docs/how-to/high-availability.md).
"""

from typing import Any

import psycopg
from django.conf import settings
from django.db import utils

# What PgBouncer answers to settings of a session.
REFUSES = "unsupported startup parameter"
HINTS = {
    "pooler": "DATABASE_URL leads to a pooler that takes no settings of a session: set DB_POOLER=1",
    "no limits": "the pooler's connections have no statement_timeout or no lock_timeout: give it or the role both",
}

_usable = False  # in this process


class PoolerError(utils.OperationalError):
    """The pooler cannot be used as it is, or with the present settings."""


def check_first_connection(connection: Any, **_: object) -> None:
    """Raise PoolerError, and close the connection, if it leads through an unusable pooler."""
    global _usable  # noqa: PLW0603  # one pooler for each process
    if _usable:
        return
    if status := _fault(connection.connection):
        connection.close()
        raise _error(status)
    _usable = True


def require_limits(connection: Any) -> None:
    """Raise PoolerError if connections have no limits: for a command that starts other processes."""
    connection.ensure_connection()
    if settings.DB_POOLER and not has_limits(connection.connection):
        raise _error("no limits")


def _error(status: str) -> PoolerError:
    return PoolerError(f"{HINTS[status]} (docs/how-to/high-availability.md#poolers)")


def _fault(probe: psycopg.Connection[Any]) -> str:
    if not settings.DB_POOLER:
        row = probe.execute("SELECT current_setting('ipam.settings', true)").fetchone()
        return "" if row == ("sent",) else "pooler"
    return "" if settings.IPAM_ROLE == "command" or has_limits(probe) else "no limits"


def has_limits(probe: psycopg.Connection[Any]) -> bool:
    """Return True if statements and waits for locks are limited on this connection."""
    limits = "SELECT current_setting('statement_timeout'), current_setting('lock_timeout')"
    return "0" not in (probe.execute(limits).fetchone() or ("0",))
