"""The web server's worker: threads get complete requests only, so that a slow client blocks no thread.

gunicorn's `gthread` reads requests in threads: a few clients that send a byte now and then can occupy
all threads. Here the event loop does the TLS handshakes and reads requests without blocking, into memory
or a temporary file (web_requests.py). A request is answered when its last byte has arrived, as behind a
buffering proxy.

A request that takes too long is answered with 408, one without a known length with 411, one that is
too large with 413 or 431. At the maximum of connections, the worker closes the connection that has
been sending for the longest time. It also closes connections of clients that do not read a response.
"""

from __future__ import annotations

import collections
import contextlib
import errno
import http
import socket
import threading
import time
from functools import partial
from typing import Any

from gunicorn import util
from gunicorn.workers import gthread

from ipam_site.web_requests import Connection, IncomingRequest, RefusedError

LONG_ANSWER = 0.01  # seconds after which another thread runs the event loop
_TICK = 0.005  # seconds between two looks at it
_FULL = {errno.EMFILE, errno.ENFILE, errno.ENOBUFS, errno.ENOMEM}
_PASSING = {errno.EAGAIN, errno.EWOULDBLOCK, errno.ECONNABORTED}


class Worker(gthread.ThreadWorker):
    """`gthread`, except that its threads take turns at the event loop, and that the loop reads requests.

    The thread whose turn it is reads a request and answers it itself: handing a request to another thread
    and its connection back costs more than gunicorn's own part of it. If an answer takes long, the main
    thread ends the turn, and the next free thread runs the loop. Only the thread whose turn it is uses
    the poller and the connections that no thread is answering.
    """

    poller: Any
    tpool: Any

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)  # type: ignore[no-untyped-call]
        self.incoming: dict[Connection, IncomingRequest] = {}  # the oldest first
        self._pipelined: collections.deque[tuple[Connection, bytes]] = collections.deque()
        self._turn = 0
        self._free_turns = threading.Semaphore(1)
        self._answering_since: float | None = None  # the thread whose turn it is
        self._lock = threading.Lock()  # of the two above
        self._is_busy = threading.Event()
        self._is_over = False

    def run(self) -> None:
        """Watch the threads, in the main thread, until the worker has stopped."""
        self.poller.register(
            self.method_queue.fileno(),
            gthread.selectors.EVENT_READ,
            self.method_queue.run_callbacks,
        )
        self.set_accept_enabled(True)  # type: ignore[no-untyped-call]
        for _ in range(self.cfg.threads):
            self.tpool.submit(self._take_turns)
        while self.alive and self.is_parent_alive():  # type: ignore[no-untyped-call]
            self.notify()  # type: ignore[no-untyped-call]
            self._watch(1.0)
        self.alive = False
        deadline = time.monotonic() + self.cfg.graceful_timeout
        while self.nr_conns > 0 and time.monotonic() < deadline:
            self.notify()  # type: ignore[no-untyped-call]
            self._watch(0.1)
        self._is_over = True
        self.method_queue.defer(lambda: None)  # wakes the event loop
        self._free_turns.release(self.cfg.threads)
        self.tpool.shutdown(wait=False)
        for listener in self.sockets:
            listener.close()

    def handle_exit(self, sig: int, frame: object) -> None:
        super().handle_exit(sig, frame)  # type: ignore[no-untyped-call]
        self._is_busy.set()

    def _watch(self, seconds: float) -> None:
        """End turns in which an answer takes long, for about `seconds`."""
        until = time.monotonic() + seconds
        count = self.nr
        while (rest := until - time.monotonic()) > 0 and self._is_busy.wait(rest):
            time.sleep(_TICK)
            self._end_long_turn()
            if count == self.nr and self._answering_since is None:
                self._is_busy.clear()
                if self._answering_since is not None:  # has begun meanwhile
                    self._is_busy.set()
                return
            count = self.nr

    def _end_long_turn(self) -> None:
        with self._lock:
            since = self._answering_since
            if since is None or time.monotonic() - since < LONG_ANSWER:
                return
            self._answering_since = None
            self._turn += 1
        self._free_turns.release()

    def _take_turns(self) -> None:
        """Run the event loop whenever it is this thread's turn."""
        try:
            while not self._is_over:
                self._free_turns.acquire()
                turn = self._turn
                while self._turn == turn and not self._is_over:
                    self._run_once(turn)
        except Exception:
            self.log.exception("The event loop failed; the worker is replaced.")
            self.alive = False

    def _run_once(self, turn: int) -> None:
        """Wait for events and handle them, until there are no more or the turn is over."""
        can_accept = self.alive and self.nr_conns < self.worker_connections
        self.set_accept_enabled(can_accept)  # type: ignore[no-untyped-call]
        if not self.alive:
            self._cap_keepalive(time.monotonic() + gthread.STOP_KEEPALIVE_LINGER)  # type: ignore[no-untyped-call]
        events = [key for key, _ in self.poller.select(0 if self._pipelined else 1.0)]
        # Listeners last: to accept a connection may close another one that has an event.
        for key in sorted(events, key=lambda key: key.fileobj in self.sockets):
            key.data(key.fileobj)
            if self._turn != turn:
                return
        while self._pipelined:
            self._await(*self._pipelined.popleft())
            if self._turn != turn:
                return
        self.murder_keepalived()  # type: ignore[no-untyped-call]
        self.murder_pending()

    def _answer(self, connection: Connection) -> None:
        """Answer a complete request. The turn of this thread may be over afterwards."""
        turn = self._turn
        self._answering_since = time.monotonic()
        if not self._is_busy.is_set():
            self._is_busy.set()
        is_kept: bool = self.handle(connection)  # type: ignore[no-untyped-call]
        with self._lock:
            has_turn = self._turn == turn
            if has_turn:
                self._answering_since = None
        if has_turn:
            self._finish(connection, is_kept=is_kept)
        else:
            self.method_queue.defer(partial(self._finish, connection, is_kept=is_kept))

    def accept(self, listener: socket.socket) -> None:
        try:
            client, address = listener.accept()
        except OSError as error:
            if error.errno in _FULL:
                self._make_room()
            elif error.errno not in _PASSING:
                raise
            return
        connection = Connection(self.cfg, client, address, listener.getsockname())  # type: ignore[no-untyped-call]
        self.nr_conns += 1
        try:
            connection.start()
        except OSError:
            self._forget(connection)
            return
        if self.nr_conns >= self.worker_connections:
            self._make_room()
        self._await(connection)

    def on_client_socket_readable(self, conn: Connection, client: Any) -> None:
        self.poller.unregister(client)
        self.keepalived_conns.remove(conn)
        self._await(conn)

    def _finish(self, connection: Connection, *, is_kept: bool) -> None:
        remaining = connection.parser.unreader.take_rest()
        if not is_kept:
            self._linger(IncomingRequest(connection))
        elif remaining:
            self._pipelined.append((connection, remaining))
        else:
            connection.sock.setblocking(False)
            connection.set_timeout()  # type: ignore[no-untyped-call]
            self.keepalived_conns.append(connection)
            self.poller.register(
                connection.sock,
                gthread.selectors.EVENT_READ,
                partial(self.on_client_socket_readable, connection),
            )

    def murder_pending(self) -> None:
        """Refuse requests and close connections that take too long; called about every second."""
        now = time.monotonic()
        for incoming in list(self.incoming.values()):
            if now <= incoming.deadline and (self.alive or not incoming.is_empty):
                continue
            if incoming.is_refused or incoming.is_empty:
                self._drop(incoming)
            else:
                self._refuse(incoming, RefusedError(http.HTTPStatus.REQUEST_TIMEOUT))

    def _await(self, connection: Connection, ahead: bytes = b"") -> None:
        connection.sock.setblocking(False)
        incoming = IncomingRequest(connection)
        self.incoming[connection] = incoming
        self._read(incoming, ahead=ahead)

    def _read(
        self, incoming: IncomingRequest, _ready: object = None, *, ahead: bytes = b""
    ) -> None:
        try:
            if ahead:
                incoming.feed(ahead)
            incoming.take()
        except RefusedError as refusal:
            self._refuse(incoming, refusal)
        except OSError:
            self._drop(incoming)
        else:
            if incoming.is_complete:
                self._hand_over(incoming)
            else:
                self._poll(incoming)

    def _hand_over(self, incoming: IncomingRequest) -> None:
        self._unpoll(incoming)
        incoming.file.seek(0)
        incoming.connection.parser.unreader.file = incoming.file
        del self.incoming[incoming.connection]
        self._answer(incoming.connection)

    def _refuse(self, incoming: IncomingRequest, refusal: RefusedError) -> None:
        with contextlib.suppress(OSError):
            incoming.connection.sock.send(refusal.answer())
        self._linger(incoming)

    def _linger(self, incoming: IncomingRequest) -> None:
        """Close the connection when the client has closed it, or after LINGER_SECONDS.

        If a socket is closed with unread bytes, the kernel discards the response.
        """
        connection = incoming.connection
        try:
            connection.sock.setblocking(False)
            connection.sock.shutdown(socket.SHUT_WR)
        except OSError:
            self._drop(incoming)
            return
        incoming.linger()
        self.incoming[connection] = incoming
        self._poll(incoming)

    def _poll(self, incoming: IncomingRequest) -> None:
        if not incoming.is_polled:
            event = gthread.selectors.EVENT_READ
            self.poller.register(incoming.connection.sock, event, partial(self._read, incoming))
            incoming.is_polled = True

    def _unpoll(self, incoming: IncomingRequest) -> None:
        if incoming.is_polled:
            self.poller.unregister(incoming.connection.sock)
            incoming.is_polled = False

    def _drop(self, incoming: IncomingRequest) -> None:
        self._unpoll(incoming)
        self.incoming.pop(incoming.connection, None)
        incoming.file.close()
        self._forget(incoming.connection)

    def _forget(self, connection: Connection) -> None:
        self.nr_conns -= 1
        util.close(connection.sock)

    def _make_room(self) -> None:
        """Close the connection that has been sending, or is idle, for the longest time."""
        if self.incoming:
            self._drop(next(iter(self.incoming.values())))
        elif self.keepalived_conns:
            connection = self.keepalived_conns.popleft()
            self.poller.unregister(connection.sock)
            self._forget(connection)
