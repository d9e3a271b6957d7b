"""A database that hangs is answered for: without this a request would wait for it without end.

PostgreSQL's own time-outs end what is slow while the server runs. A server that stands still (a stopped
machine, a dead disk, a network that swallows packets) ends nothing, and libpq waits. So a thread of each
web process looks at requests that take long: when the server does not answer it either, their connections
are cut, which makes them 503, and further requests are refused at once, so that threads are left for
/healthz, until the server answers again. No request waits for this thread.
"""

from __future__ import annotations

import contextlib
import logging
import os
import socket
import threading
import time
from collections.abc import Callable
from concurrent import futures
from typing import Any

import psycopg
from django.db import DEFAULT_DB_ALIAS, connections
from django.http import HttpRequest, HttpResponseBase

from ipam_site.http import problems

LONG = 3.0  # seconds that a request may take unasked
_PATIENCE = 5.0  # seconds that the server has to answer us
_LOOK = 0.5

log = logging.getLogger(__name__)

_running: dict[int, tuple[float, Any]] = {}  # by thread: since when, over which connection
_hangs = threading.Event()
_started_in = 0  # the process whose thread looks
_starting = threading.Lock()


class DatabaseWatchMiddleware:
    def __init__(self, get_response: Callable[[HttpRequest], HttpResponseBase]) -> None:
        self._get_response = get_response

    def __call__(self, request: HttpRequest) -> HttpResponseBase:
        if _started_in != os.getpid():
            _start()
        if refuses():
            return problems.unavailable(request)
        me = threading.get_ident()
        _running[me] = (time.monotonic(), connections[DEFAULT_DB_ALIAS])
        try:
            return self._get_response(request)
        finally:
            _running.pop(me, None)


def refuses() -> bool:
    """Whether this process refuses requests, because the database hung when it was asked last."""
    return _hangs.is_set()


def _start() -> None:
    global _started_in  # noqa: PLW0603  # one thread for each process
    with _starting:
        if _started_in == os.getpid():
            return
        _started_in = os.getpid()
        _running.clear()  # of the process that this one was forked from
        _hangs.clear()
        threading.Thread(target=_watch, daemon=True, name="database watch").start()


def _watch() -> None:
    while True:
        time.sleep(_LOOK)
        try:
            look()
        except Exception:
            log.exception("the database could not be looked at")


def look() -> None:
    """Once: ask the server if a request takes long, or if it hung the last time."""
    if not (_hangs.is_set() or _long()):
        return
    if _answers():
        _hangs.clear()
        return
    if not _hangs.is_set():
        log.error("the database hangs: requests are refused until it answers")
        _hangs.set()
    for wrapper in _long():
        _cut(wrapper)


def _long() -> list[Any]:
    limit = time.monotonic() - LONG
    return [wrapper for since, wrapper in list(_running.values()) if since < limit]


def _answers() -> bool:
    asked: futures.Future[bool] = futures.Future()
    # In a thread, because nothing else ends a read of a server that stands still.
    threading.Thread(target=_ask, args=[asked], daemon=True, name="database ping").start()
    try:
        return asked.result(_PATIENCE)
    except futures.TimeoutError:
        return False


def _ask(asked: futures.Future[bool]) -> None:
    parameters = connections[DEFAULT_DB_ALIAS].get_connection_params()
    try:
        with psycopg.connect(**parameters, autocommit=True) as probe:
            probe.execute("SELECT 1")
        asked.set_result(True)
    except psycopg.Error as error:
        # "Too many clients", "starting up": it answers, and requests are told so too.
        asked.set_result("FATAL" in str(error))


def _cut(wrapper: Any) -> None:
    """The thread that waits for this connection finds it closed by the server."""
    with (
        contextlib.suppress(AttributeError, OSError, psycopg.Error),
        socket.socket(fileno=os.dup(wrapper.connection.pgconn.socket)) as line,
    ):
        line.shutdown(socket.SHUT_RDWR)
