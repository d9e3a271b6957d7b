"""The broker of Celery: one Redis server, or the primary of a group that Redis Sentinel watches.

A group has a URL that names its sentinels:
`redis+sentinel://:password@host:26379,host:26379,host:26379/0?master=name&sentinel_password=…`.
The password and the number of the database are those of the group's servers.
"""

from dataclasses import dataclass
from typing import Any
from urllib import parse

import redis
from django.core.exceptions import ImproperlyConfigured
from redis import sentinel

from ipam_site import database_url

_SCHEME = "redis+sentinel"
_PORT = 26379
_PARAMETERS = frozenset({"master", "sentinel_password"})


@dataclass(frozen=True)
class Group:
    """Servers of which Sentinel names the primary; an empty text is no password."""

    master: str
    sentinels: tuple[tuple[str, int], ...]
    username: str
    password: str
    sentinel_password: str
    database: int

    @property
    def kombu_url(self) -> str:
        """The URL as kombu reads it: kombu takes its parts in turn, each with its own password."""
        user = f"{parse.quote(self.username, safe='')}:{parse.quote(self.password, safe='')}@"
        return ";".join(
            f"sentinel://{user if self.password else ''}{_bracketed(host)}:{port}/{self.database}"
            for host, port in self.sentinels
        )

    def sentinel_options(self, seconds: float) -> dict[str, Any]:
        """Return how the sentinels themselves are asked."""
        return _timeouts(seconds) | (
            {"password": self.sentinel_password} if self.sentinel_password else {}
        )


def parse_group(url: str) -> Group | None:
    """Return the group that the URL names, None if it names one server. Raises ImproperlyConfigured."""
    if not url.startswith(f"{_SCHEME}:"):
        return None
    try:
        parts = parse.urlsplit(url)
        # Other than in forms, `+` means itself.
        parameters = dict(parse.parse_qsl(parts.query.replace("+", "%2B"), strict_parsing=True))
    except ValueError:  # its text has a part of the URL
        raise ImproperlyConfigured("REDIS_URL: a host or the query is invalid") from None
    userinfo, _, hosts = parts.netloc.rpartition("@")
    username, _, password = userinfo.partition(":")
    database = parts.path.strip("/") or "0"
    if set(parameters) - _PARAMETERS or not parameters.get("master") or not database.isdecimal():
        raise ImproperlyConfigured(
            f"REDIS_URL must be {_SCHEME}://:password@host:port,host:port/0?master=name;"
            f" {database_url.UNENCODED}"
        )
    return Group(
        master=parameters["master"],
        sentinels=tuple(_parse_host(host) for host in hosts.split(",")),
        username=parse.unquote(username),
        password=parse.unquote(password),
        sentinel_password=parameters.get("sentinel_password", ""),
        database=int(database),
    )


def celery_settings(url: str, *, seconds: float) -> tuple[str, dict[str, Any]]:
    """Return the URL and the transport options for kombu; `seconds` is how long to wait for an answer."""
    group = parse_group(url)
    if group is None:
        try:
            parts = parse.urlsplit(url)
            has_host = bool(parts.hostname and parts.port != 0)
        except ValueError:  # its text has a part of the URL
            has_host = False
        # A password with / or # ends the host early.
        if (
            not has_host
            or parts.scheme not in {"redis", "rediss"}
            or "@" in parts.path + parts.fragment
        ):
            raise ImproperlyConfigured(
                f"REDIS_URL must be redis://, rediss:// or {_SCHEME}://, with a host; {database_url.UNENCODED}"
            )
        return url, _timeouts(seconds)
    options = {
        "master_name": group.master,
        "sentinel_kwargs": group.sentinel_options(seconds),
    }
    return group.kombu_url, _timeouts(seconds) | options


def connect(url: str, *, seconds: float) -> redis.Redis:
    """Return a client of the server, or of the primary that the sentinels name.

    Its commands raise redis.RedisError if nothing answers within `seconds`.
    """
    group = parse_group(url)
    if group is None:
        return redis.Redis.from_url(url, **_timeouts(seconds))
    sentinels: Any = sentinel.Sentinel(  # type: ignore[no-untyped-call]
        group.sentinels, sentinel_kwargs=group.sentinel_options(seconds)
    )
    client: redis.Redis = sentinels.master_for(
        group.master,
        username=group.username or None,
        password=group.password or None,
        db=group.database,
        **_timeouts(seconds),
    )
    return client


def _parse_host(text: str) -> tuple[str, int]:
    try:
        parts = parse.urlsplit(f"//{text}")
        if parts.hostname:
            return parts.hostname, parts.port or _PORT
    except ValueError:
        pass
    raise ImproperlyConfigured("REDIS_URL: each sentinel must be host:port")


def _bracketed(host: str) -> str:
    return f"[{host}]" if ":" in host else host


def _timeouts(seconds: float) -> dict[str, Any]:
    return {"socket_timeout": seconds, "socket_connect_timeout": seconds}
