"""/healthz: this process answers. /readyz: it can do its work.

Answered by the outermost middleware: a probe has no session, no login and often no host name, and
must not be redirected to HTTPS. Ready means that the database takes writes and has every migration,
and that nobody said to drain. Redis away is degraded, not unready: allocation does not need it.
"""

from __future__ import annotations

import concurrent.futures
import logging
import threading
import time
from collections.abc import Callable
from typing import TypedDict

import psycopg
import redis
from django import http
from django.conf import settings
from django.db import connection
from django.db.migrations import loader

from ipam_site import database_watch

# A probe answers within this time whatever the servers do; connecting has its own limit below it.
_SECONDS = 3.0
_CONNECT_SECONDS = 2


log = logging.getLogger(__name__)


class Readiness(TypedDict):
    status: str
    checks: dict[str, str]


class HealthMiddleware:
    def __init__(self, get_response: Callable[[http.HttpRequest], http.HttpResponseBase]) -> None:
        self._get_response = get_response

    def __call__(self, request: http.HttpRequest) -> http.HttpResponseBase:
        if request.path_info == "/healthz":
            return _answer({"status": "ok", "checks": {}})
        if request.path_info == "/readyz":
            return _answer(readiness())
        return self._get_response(request)


def _answer(readiness: Readiness) -> http.JsonResponse:
    status = 503 if readiness["status"] == "unavailable" else 200
    return http.JsonResponse(readiness, status=status, headers={"Cache-Control": "no-store"})


def readiness() -> Readiness:
    """`status` is ok, degraded (both 200) or unavailable (503); `checks` says a word for each part."""
    # Both are asked before either is waited for: they share the deadline.
    answers = [_database.ask(), _redis.ask()]
    until = time.monotonic() + _SECONDS
    database, broker = [_word(answer, until) for answer in answers]
    if database == "ok" and database_watch.is_refusing():
        database = "hung"  # this process did not see yet that it answers again
    draining = (settings.IPAM_DATA / "draining").exists()
    checks = {"database": database, "redis": broker, "draining": "yes" if draining else "no"}
    if database != "ok" or draining:
        return {"status": "unavailable", "checks": checks}
    return {"status": "ok" if broker == "ok" else "degraded", "checks": checks}


class _Check:
    """A check in a thread of its own, with a deadline.

    A server that took the connection and then hangs has no other limit. One thread for each check:
    while it hangs, further probes wait for the same answer and pile up nothing.
    """

    def __init__(self, ask: Callable[[], str]) -> None:
        self._ask = ask
        self._lock = threading.Lock()
        self._answer: concurrent.futures.Future[str] | None = None

    def ask(self) -> concurrent.futures.Future[str]:
        with self._lock:
            if self._answer is None or self._answer.done():
                self._answer = concurrent.futures.Future()
                threading.Thread(target=self._run, args=[self._answer], daemon=True).start()
            return self._answer

    def _run(self, answer: concurrent.futures.Future[str]) -> None:
        try:
            answer.set_result(self._ask())
        except Exception:
            # Whatever went wrong, the probe gets an answer.
            log.exception("A readiness check failed")
            answer.set_result("error")


def _word(answer: concurrent.futures.Future[str], until: float) -> str:
    try:
        return answer.result(max(0.0, until - time.monotonic()))
    except concurrent.futures.TimeoutError:
        return "no answer"


_all_applied = threading.Event()


def _ask_database() -> str:
    # A short connection of its own: the thread's usual one may be broken without knowing it.
    parameters = connection.get_connection_params()
    parameters["connect_timeout"] = _CONNECT_SECONDS
    parameters["options"] += f" -c statement_timeout={_CONNECT_SECONDS}s"
    try:
        with psycopg.connect(**parameters, autocommit=True) as probe:
            if probe.execute("SHOW transaction_read_only").fetchone() != ("off",):
                return "read-only"
            return "ok" if _migrated(probe) else "migrations missing"
    except psycopg.errors.UndefinedTable:
        return "migrations missing"
    except psycopg.Error:
        return "away"


def _migrated(probe: psycopg.Connection) -> bool:
    """Whether every migration of the code is applied; asked until the answer was yes once."""
    if not _all_applied.is_set():
        expected = loader.MigrationLoader(None, ignore_no_migrations=True).disk_migrations or {}
        applied = set(probe.execute("SELECT app, name FROM django_migrations").fetchall())
        if not set(expected) <= applied:
            return False
        _all_applied.set()
    return True


def _ask_redis() -> str:
    try:
        with redis.Redis.from_url(
            settings.REDIS_URL, socket_timeout=1, socket_connect_timeout=1
        ) as client:
            client.ping()
    except redis.RedisError:
        return "away"
    return "ok"


_database = _Check(_ask_database)
_redis = _Check(_ask_redis)
