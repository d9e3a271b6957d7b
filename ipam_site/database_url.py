"""Convert DATABASE_URL to an entry of Django's DATABASES.

`postgresql://user:password@host:port/name?sslmode=require`: every part is percent-decoded, libpq gets
the query unchanged. No library is used because the format is small and mistakes must be reported.
Errors never contain the URL, because it has the password.
"""

from __future__ import annotations

import re
from typing import Any
from urllib import parse

from django.core import exceptions

# Allowed options of libpq in the query: a misspelt option is an error.
_OPTIONS = frozenset(
    {
        "application_name", "channel_binding", "client_encoding", "connect_timeout", "gssencmode",
        "keepalives", "keepalives_count", "keepalives_idle", "keepalives_interval",
        "load_balance_hosts", "options", "require_auth", "sslcert", "sslcrl", "sslkey", "sslmode",
        "sslnegotiation", "sslpassword", "sslrootcert", "target_session_attrs",
        "tcp_user_timeout",
    }
)  # fmt: skip
# A setting of the session that only shows that settings arrive (ipam_site/pooler.py).
MARK = "-c ipam.settings=sent"


def parse_url(url: str) -> dict[str, Any]:
    """Return NAME, USER, PASSWORD, HOST, PORT and OPTIONS (the query) of a PostgreSQL URL.

    The host may be in the query, such as `?host=/run/postgresql` (a socket folder).
    Raises ImproperlyConfigured, which names the wrong part but never the password.
    """
    refuse_unencoded(url, "DATABASE_URL")
    try:
        parts = parse.urlsplit(url)
        port = parts.port
    except ValueError:
        raise _wrong(
            "its host or port is invalid"
        ) from None  # the error's text has a part of the URL
    if parts.scheme not in {"postgresql", "postgres"}:
        raise _wrong("it must begin with postgresql://")
    name = parse.unquote(parts.path.removeprefix("/"))
    if not name or "/" in name:
        raise _wrong("it must end with one /database-name")
    if parts.fragment:
        raise _wrong("it contains '#': write %23 instead")
    options = _options(parts.query)
    return {
        "NAME": name,
        "USER": parse.unquote(parts.username or ""),
        "PASSWORD": parse.unquote(parts.password or ""),
        "HOST": options.pop("host", "") or parse.unquote(parts.hostname or ""),
        "PORT": str(port or ""),
        "OPTIONS": options,
    }


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
        pairs = parse.parse_qsl(query, keep_blank_values=True, strict_parsing=bool(query))
    except ValueError as error:
        raise _wrong("its query is invalid") from error
    options = dict(pairs)
    if len(options) != len(pairs):
        raise _wrong("its query contains an option twice")
    unknown = sorted(set(options) - _OPTIONS - {"host"})
    if unknown:
        raise _wrong(f"unknown option {unknown[0]!r}")
    return options


def _wrong(reason: str) -> exceptions.ImproperlyConfigured:
    return exceptions.ImproperlyConfigured(f"DATABASE_URL: {reason}")
