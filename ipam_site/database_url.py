"""Convert DATABASE_URL to an entry of Django's DATABASES, with the limits of the kind of process.

`postgresql://user:password@host:port/name?sslmode=require`: every part is percent-decoded, libpq gets
the query unchanged. No library is used because the format is small and mistakes must be reported.
Errors never contain the URL, because it has the password.
"""

from __future__ import annotations

import re
from typing import Any
from urllib import parse

from django.core import exceptions

from ipam_site import env

# Allowed options of libpq in the query: a misspelt option is an error. Not sslpassword: for it pg_dump and psql read
# their command line only, which all users of the machine see.
_OPTIONS = frozenset(
    {
        "application_name", "channel_binding", "client_encoding", "connect_timeout", "gssencmode",
        "keepalives", "keepalives_count", "keepalives_idle", "keepalives_interval",
        "load_balance_hosts", "options", "require_auth", "sslcert", "sslcrl", "sslkey", "sslmode",
        "sslnegotiation", "sslrootcert", "target_session_attrs",
        "tcp_user_timeout",
    }
)  # fmt: skip
# A setting of the session that only shows that settings arrive (ipam_site/pooler.py).
MARK = "-c ipam.settings=sent"
# By kind of process: a web request must not use a connection for long.
STATEMENT_TIMEOUT_MS = {"web": 5_000, "worker": 60_000, "beat": 60_000, "command": 0}


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
        # PgBouncer keeps track of prepared statements from version 1.22.1 on, if it is told to.
        "prepare_threshold": 5 if env.boolean("DB_PREPARED_STATEMENTS", not pooler) else None,
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
    """Return NAME, USER, PASSWORD, HOST, PORT and OPTIONS (the query) of a PostgreSQL URL.

    The host may be in the query, such as `?host=/run/postgresql` (a socket folder).
    Raises ImproperlyConfigured, which names the wrong part but never the password.
    """
    refuse_unencoded(url, "DATABASE_URL")
    parts, port = split(url, "DATABASE_URL")
    if parts.scheme not in {"postgresql", "postgres"}:
        raise _wrong("it must begin with postgresql://")
    name = _decode(parts.path.removeprefix("/"))
    if not name or "/" in name:
        raise _wrong("it must end with one /database-name")
    if parts.fragment:
        raise _wrong("it contains '#': write %23 instead")
    options = _options(parts.query)
    return {
        "NAME": name,
        "USER": _decode(parts.username or ""),
        "PASSWORD": _decode(parts.password or ""),
        "HOST": options.pop("host", "") or _host(parts),
        "PORT": str(port or ""),
        "OPTIONS": options,
    }


def split(url: str, setting: str) -> tuple[parse.SplitResult, int | None]:
    """Return the parts of a URL and its port. Raises ImproperlyConfigured, without any part of the URL."""
    try:
        parts = parse.urlsplit(url)
        port = parts.port
    except ValueError:  # its text has a part of the URL
        message = f"{setting}: its host or port is invalid"
        raise exceptions.ImproperlyConfigured(message) from None
    return parts, port


def parse_query(query: str) -> list[tuple[str, str]]:
    """Return the pairs of a query in which, as for libpq and other than in forms, `+` means itself. Raises ValueError."""
    strict = bool(query)
    return parse.parse_qsl(query.replace("+", "%2B"), keep_blank_values=True, strict_parsing=strict)


def _host(parts: parse.SplitResult) -> str:
    """Return the host; a socket folder, such as %2Frun%2FPostgreSQL, keeps its capital letters."""
    host = parts.netloc.rpartition("@")[2].partition(":")[0]
    return _decode(host if host[:3].upper() == "%2F" else parts.hostname or "")


def _decode(text: str) -> str:
    try:
        return parse.unquote(text, errors="strict")
    except UnicodeDecodeError:  # its text has the bytes
        raise _wrong("percent-encode its parts as UTF-8") from None


def refuse_unencoded(url: str, setting: str) -> None:
    """Raise ImproperlyConfigured for a URL whose user or password ends it early: with / ? # [ or ]."""
    _, _, rest = url.partition("://")
    authority = re.split("[/?#]", rest, maxsplit=1)[0]
    remainder = rest[len(authority) :]
    userinfo, at, _ = authority.rpartition("@")
    path = remainder.partition("?")[0]
    fragment = remainder.partition("#")[2]
    _, colon, port = authority.partition(":")
    cut = not at and "@" in remainder and colon and not re.fullmatch(r"[0-9]*(,.*)?", port)
    if cut or "@" in path or "@" in fragment or {"[", "]"} & set(userinfo):
        message = "percent-encode the password (and the user): / is %2F, ? is %3F, # is %23, [ is %5B, ] is %5D"
        raise exceptions.ImproperlyConfigured(f"{setting}: {message}, @ is %40, % is %25")


def _options(query: str) -> dict[str, str]:
    try:
        pairs = parse_query(query)
    except ValueError:  # its text has a part of the query
        raise _wrong("its query is invalid") from None
    options = dict(pairs)
    if len(options) != len(pairs):
        raise _wrong("its query contains an option twice")
    unknown = sorted(set(options) - _OPTIONS - {"host"})
    if unknown:
        raise _wrong(f"unknown option {unknown[0]!r}")
    return options


def _wrong(reason: str) -> exceptions.ImproperlyConfigured:
    return exceptions.ImproperlyConfigured(f"DATABASE_URL: {reason}")
