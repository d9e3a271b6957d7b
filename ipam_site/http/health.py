"""/healthz: the process answers. /readyz: the process can serve requests.

The outermost middleware answers both: a probe has no session and often no host name, and must not be
redirected to HTTPS. A process is ready if the database accepts writes and has all migrations, and if
`manage.py drain` was not run. Without Redis it is degraded and ready: allocation does not need Redis.
"""

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

from ipam_site import broker, database_url, database_watch
from ipam_site.http import middleware

# A probe is answered within this time, even if a server hangs. Connecting has a lower limit.
_SECONDS = 3.0
_CONNECT_SECONDS = 2


log = logging.getLogger(__name__)


class Readiness(TypedDict):
    status: str
    checks: dict[str, str]


class HealthMiddleware(middleware.Middleware):
    def __call__(self, request: http.HttpRequest) -> http.HttpResponseBase:
        if request.path_info == "/healthz":
            return _answer({"status": "ok", "checks": {}})
        if request.path_info == "/readyz":
            return _answer(readiness())
        return self.get_response(request)


def _answer(readiness: Readiness) -> http.JsonResponse:
    status = 503 if readiness["status"] == "unavailable" else 200
    return http.JsonResponse(readiness, status=status, headers={"Cache-Control": "no-store"})


def readiness() -> Readiness:
    """Return `status`: ok, degraded (both 200) or unavailable (503), and the result of each check."""
    # Both checks start before the first result is awaited: they share the deadline.
    answers = [_database.ask(), _redis.ask()]
    until = time.monotonic() + _SECONDS
    database, redis_status = [_await_result(answer, until) for answer in answers]
    if hint := database_url.POOLER_HINTS.get(database):
        log.error("%s (docs/how-to/high-availability.md)", hint)
    if database == "ok" and database_watch.is_refusing():
        database = "hung"  # this process still refuses requests
    draining = (settings.IPAM_DATA / "draining").exists()
    checks = {"database": database, "redis": redis_status, "draining": "yes" if draining else "no"}
    if database != "ok" or draining:
        return {"status": "unavailable", "checks": checks}
    return {"status": "ok" if redis_status == "ok" else "degraded", "checks": checks}


class _Check:
    """A check that runs in a thread, so that the caller can wait with a deadline.

    Nothing else limits a server that accepts the connection and then hangs. Each check has at most
    one thread: while it hangs, further probes wait for the same result.
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
            # The probe gets an answer in any case.
            log.exception("A readiness check failed")
            answer.set_result("error")


def _await_result(answer: concurrent.futures.Future[str], until: float) -> str:
    try:
        return answer.result(max(0.0, until - time.monotonic()))
    except concurrent.futures.TimeoutError:
        return "no answer"


_all_applied = threading.Event()


def _ask_database() -> str:
    # A new connection: the persistent one of the thread may be broken.
    parameters = connection.get_connection_params()
    parameters["connect_timeout"] = _CONNECT_SECONDS
    if not settings.DB_POOLER:
        parameters["options"] += f" -c statement_timeout={_CONNECT_SECONDS}s"
    try:
        with psycopg.connect(**parameters, autocommit=True) as probe:
            if not _has_limits(probe):
                return "no limits" if settings.DB_POOLER else "pooler"
            if probe.execute("SHOW transaction_read_only").fetchone() != ("off",):
                return "read-only"
            return "ok" if _is_migrated(probe) else "migrations missing"
    except psycopg.errors.UndefinedTable:
        return "migrations missing"
    except psycopg.Error as error:
        return "pooler" if database_url.POOLER_REFUSES in str(error) else "away"


def _has_limits(probe: psycopg.Connection) -> bool:
    """Return True if statements and waits for locks are limited on this connection.

    The limits that a session asks for are lost in a pooler that ignores them (PgBouncer with
    `ignore_startup_parameters = options`): a slow statement would hold its thread forever.
    """
    if settings.DB_POOLER:
        return database_url.has_limits(probe)
    return probe.execute("SHOW statement_timeout").fetchone() == (f"{_CONNECT_SECONDS}s",)


def _is_migrated(probe: psycopg.Connection) -> bool:
    """Return True if all migrations of the code are applied; a positive result is cached."""
    if not _all_applied.is_set():
        expected = loader.MigrationLoader(None, ignore_no_migrations=True).disk_migrations or {}
        applied = set(probe.execute("SELECT app, name FROM django_migrations").fetchall())
        if not set(expected) <= applied:
            return False
        _all_applied.set()
    return True


def _ask_redis() -> str:
    try:
        with broker.connect(settings.REDIS_URL, seconds=1) as client:
            client.ping()
    except redis.RedisError:
        return "away"
    return "ok"


_database = _Check(_ask_database)
_redis = _Check(_ask_redis)
