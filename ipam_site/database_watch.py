"""Refuse requests with 503 while the database hangs; without this they would wait forever.

PostgreSQL's timeouts end slow statements while the server runs. A server that hangs (a stopped
machine, a dead disk, a network that drops packets) enforces no timeout, and libpq waits. So a thread
of each web process pings the server when a request takes long. If the server does not answer, the
thread closes the connections of long requests, which then fail with 503. Further requests are
refused at once until the server answers again, so that threads are left for /healthz. No request
waits for this thread.
"""

import contextlib
import logging
import os
import socket
import threading
import time
from collections.abc import Iterator
from concurrent import futures
from typing import Any

import psycopg
from django.db import DEFAULT_DB_ALIAS, connections
from django.http import HttpRequest, HttpResponseBase

from ipam_site.http import middleware, problems

LONG = 3.0  # seconds after which a request counts as long
_PATIENCE = 5.0  # seconds in which the server has to answer the ping
_INTERVAL = 0.5  # seconds

log = logging.getLogger(__name__)

_running: dict[int, tuple[float, Any]] = {}  # thread -> (start time, connection)
_hung = threading.Event()
_started_in = 0  # id of the process that has started the thread
_starting = threading.Lock()


class DatabaseWatchMiddleware(middleware.Middleware):
    def __call__(self, request: HttpRequest) -> HttpResponseBase:
        if is_refusing():
            return problems.unavailable(request)
        with watched():
            return self.get_response(request)


@contextlib.contextmanager
def watched() -> Iterator[None]:
    """Watch what this thread does: if it takes long and the database hangs, its connection is closed."""
    if _started_in != os.getpid():
        _start()
    me = threading.get_ident()
    _running[me] = (time.monotonic(), connections[DEFAULT_DB_ALIAS])
    try:
        yield
    finally:
        _running.pop(me, None)


def is_refusing() -> bool:
    """Return True while this process refuses requests because the database hung at the last ping."""
    return _hung.is_set()


def _start() -> None:
    global _started_in  # noqa: PLW0603  # one thread for each process
    with _starting:
        if _started_in == os.getpid():
            return
        _started_in = os.getpid()
        _running.clear()  # entries of the parent process before the fork
        _hung.clear()
        threading.Thread(target=_watch, daemon=True, name="database watch").start()


def _watch() -> None:
    while True:
        time.sleep(_INTERVAL)
        try:
            check_database()
        except Exception:
            log.exception("checking the database failed")


def check_database() -> None:
    """Ping the server once if a request takes long or if the server hung at the last ping."""
    if not (_hung.is_set() or _long_running()):
        return
    if _database_answers():
        _hung.clear()
        return
    if not _hung.is_set():
        log.error("the database does not answer: refusing requests until it answers again")
        _hung.set()
    for wrapper in _long_running():
        _cut_connection(wrapper)


def _long_running() -> list[Any]:
    limit = time.monotonic() - LONG
    return [wrapper for since, wrapper in list(_running.values()) if since < limit]


def _database_answers() -> bool:
    answer: futures.Future[bool] = futures.Future()
    # In a thread, because a read from a hung server never ends.
    threading.Thread(target=_ping, args=[answer], daemon=True, name="database ping").start()
    try:
        return answer.result(_PATIENCE)
    except futures.TimeoutError:
        return False


def _ping(answer: futures.Future[bool]) -> None:
    parameters = connections[DEFAULT_DB_ALIAS].get_connection_params()
    try:
        with psycopg.connect(**parameters, autocommit=True) as probe:
            probe.execute("SELECT 1")
        answer.set_result(True)
    except psycopg.Error as error:
        # "Too many clients" or "starting up": the server answers, and requests get the same error.
        answer.set_result("FATAL" in str(error))


def _cut_connection(wrapper: Any) -> None:
    """Shut the connection down: the thread that waits for it sees it closed."""
    with (
        contextlib.suppress(AttributeError, OSError, psycopg.Error),
        socket.socket(fileno=os.dup(wrapper.connection.pgconn.socket)) as duplicate,
    ):
        duplicate.shutdown(socket.SHUT_RDWR)
