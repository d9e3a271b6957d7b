"""Convert DATABASE_URL to an entry of Django's DATABASES, with the limits of the kind of process; refuse unusable poolers.

`postgresql://user:password@host:port/name?sslmode=require`: libpq reads it, as it does for psql and pg_dump.
Errors never contain a part of the URL, because it has the password.
"""

import re
from typing import Any

import psycopg
from django.conf import settings
from django.core import exceptions
from django.db import utils
from psycopg import conninfo

from ipam_site import env

# pg_dump and psql read it on their command line only, which all users of the machine see.
_SEEN = {"sslpassword"}
UNENCODED = "percent-encode the password (and the user): / is %2F, ? is %3F, # is %23, [ is %5B, ] is %5D, @ is %40, % is %25"
# A setting of the session that only shows that settings arrive: `_pooler_fault` looks.
MARK = "-c ipam.settings=sent"
# By kind of process: a web request must not use a connection for long.
STATEMENT_TIMEOUT_MS: dict[str, int] = {
    "web": 5_000,
    "worker": 60_000,
    "beat": 60_000,
    "command": 0,
}


def entry(url: str, *, role: str, pooler: bool) -> dict[str, Any]:
    """Return the entry of a database for processes of a role."""
    parsed = parse_url(url)
    limits = {
        "statement_timeout": env.integer("STATEMENT_TIMEOUT_MS", STATEMENT_TIMEOUT_MS[role]),
        # A longer wait for a lock becomes a 503, instead of blocking more and more threads.
        "lock_timeout": env.integer("LOCK_TIMEOUT_MS", 2_000 if role == "web" else 10_000),
        # Releases the locks of a client that died inside a transaction.
        "idle_in_transaction_session_timeout": 30_000,
    }
    options = parsed["OPTIONS"]
    limit_options = " ".join(f"-c {name}={value}" for name, value in limits.items())
    defaults = {
        "application_name": f"cadastre-{role}",
        "connect_timeout": "3",
        # Detect a network that drops packets in seconds, instead of the kernel's 15 minutes.
        "tcp_user_timeout": "10000",
        "keepalives_idle": "10",
        "keepalives_interval": "5",
        "keepalives_count": "2",
        # A pooler may lose prepared statements.
        "prepare_threshold": None if pooler else 5,
    }
    if not pooler:
        defaults["options"] = f"{limit_options} {MARK} {options.pop('options', '')}".strip()
    return {
        "ENGINE": "django.db.backends.postgresql",
        # One connection for the life of the thread: opening one costs as much as ten allocations.
        "CONN_MAX_AGE": None,
        "CONN_HEALTH_CHECKS": True,
        **parsed,
        # The options of the URL come last, so that they win.
        "OPTIONS": {**defaults, **options},
        # A cursor on the server outlives the transaction, with which a pooler takes the connection back.
        "DISABLE_SERVER_SIDE_CURSORS": pooler,
    }


def parse_url(url: str) -> dict[str, Any]:
    """Return NAME, USER, PASSWORD, HOST, PORT and OPTIONS (the query) of a PostgreSQL URL, as libpq reads it.

    Raises ImproperlyConfigured, without any part of the URL.
    """
    if not url.startswith(("postgresql://", "postgres://")):
        raise _wrong("it must begin with postgresql://")
    try:
        parts: dict[str, Any] = conninfo.conninfo_to_dict(url)
    except (psycopg.Error, UnicodeError):  # its text has a part of the URL
        raise _wrong(
            f"an option of its query is unknown or has no value, or a part is not UTF-8; {UNENCODED}"
        ) from None
    for option in _SEEN & parts.keys():
        raise _wrong(f"{option} is not allowed")
    names = {
        "NAME": "dbname",
        "USER": "user",
        "PASSWORD": "password",
        "HOST": "host",
        "PORT": "port",
    }
    entry = {name: parts.pop(part, "") for name, part in names.items()}
    if not re.fullmatch("[0-9,]*", entry["PORT"]) or "@" in entry["HOST"]:
        raise _wrong(f"its host or port is invalid; {UNENCODED}")
    if not entry["NAME"] or {"/", "#"} & {*entry["NAME"]}:
        raise _wrong(f"it must end with one /database-name; {UNENCODED}")
    return {**entry, "OPTIONS": parts}


def _wrong(reason: str) -> exceptions.ImproperlyConfigured:
    return exceptions.ImproperlyConfigured(f"DATABASE_URL: {reason}")


# --- poolers in transaction mode --------------------------------------------------------------------
# Each process looks at its first connection, /readyz at each of its own (docs/how-to/high-availability.md).

# What PgBouncer answers to settings of a session.
POOLER_REFUSES = "unsupported startup parameter"
POOLER_HINTS = {
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
    if status := _pooler_fault(connection.connection):
        connection.close()
        raise _pooler_error(status)
    _usable = True


def require_limits(connection: Any) -> None:
    """Raise PoolerError if connections have no limits: for a command that starts other processes."""
    connection.ensure_connection()
    if settings.DB_POOLER and not has_limits(connection.connection):
        raise _pooler_error("no limits")


def _pooler_error(status: str) -> PoolerError:
    return PoolerError(f"{POOLER_HINTS[status]} (docs/how-to/high-availability.md#poolers)")


def _pooler_fault(probe: psycopg.Connection[Any]) -> str:
    if not settings.DB_POOLER:
        row = probe.execute("SELECT current_setting('ipam.settings', true)").fetchone()
        return "" if row == ("sent",) else "pooler"
    return "" if settings.IPAM_ROLE == "command" or has_limits(probe) else "no limits"


def has_limits(probe: psycopg.Connection[Any]) -> bool:
    """Return True if statements and waits for locks are limited on this connection."""
    limits = "SELECT current_setting('statement_timeout'), current_setting('lock_timeout')"
    return "0" not in (probe.execute(limits).fetchone() or ("0",))
