"""The web server's worker: threads get complete requests only, so that a slow client blocks no thread.

gunicorn's `gthread` reads requests in threads: a few clients that send a byte now and then can occupy
all threads. Here the main loop does the TLS handshakes and reads requests without blocking, into memory
or a temporary file. It hands a request to a thread when the last byte has arrived, as a buffering
proxy would do.

A request that takes too long is answered with 408, one without a known length with 411, one that is
too large with 413 or 431. At the maximum of connections, the worker closes the connection that has
been sending for the longest time. It also closes connections of clients that do not read a response.
"""

from __future__ import annotations

import contextlib
import errno
import http
import json
import re
import socket
import ssl
import tempfile
import time
from concurrent import futures
from functools import partial
from typing import Any

from gunicorn import sock as sockets
from gunicorn import util
from gunicorn.http import get_parser, unreader
from gunicorn.workers import gthread

HEAD_SECONDS = 20.0  # for the TLS handshake, the request line and the headers
BODY_SECONDS = 20.0  # for a body, and a second more for each
BODY_RATE = 1024  # bytes that have arrived of it
LONGEST = 600.0  # seconds for any request
WRITE_SECONDS = 10.0  # for a client to read a part of the response
LINGER_SECONDS = 2.0  # for a client to read the last response before the connection closes

LARGEST_HEAD = 64 * 1024
# The largest body of any endpoint is 32 MiB; each endpoint has a limit of its own.
LARGEST_BODY = 33 * 1024 * 1024
_IN_MEMORY = 256 * 1024
_CHUNK = 64 * 1024
_AT_ONCE = 16  # chunks of one client before the next client is read
# The kernel may allow less. A response that fits into the buffer frees the thread at once.
_SEND_BUFFER = 1024 * 1024
_FULL = {errno.EMFILE, errno.ENFILE, errno.ENOBUFS, errno.ENOMEM}
_PASSING = {errno.EAGAIN, errno.EWOULDBLOCK, errno.ECONNABORTED}

_EXPECT = re.compile(rb"\r\nexpect:[^\r\n]*", re.IGNORECASE)
_CODES = {
    408: "request_timeout",
    411: "length_required",
    413: "too_large",
    431: "headers_too_large",
}


class RefusedError(Exception):
    """The request is refused before it is complete; `status` is the response status."""

    def __init__(self, status: http.HTTPStatus) -> None:
        super().__init__(status)
        self.status = status

    def answer(self) -> bytes:
        body = json.dumps(
            {
                "type": "about:blank",
                "title": self.status.phrase,
                "status": self.status.value,
                "code": _CODES[self.status.value],
            }
        )
        return (
            f"HTTP/1.1 {self.status.value} {self.status.phrase}\r\nConnection: close\r\n"
            f"Content-Type: application/problem+json\r\nContent-Length: {len(body)}\r\n\r\n{body}"
        ).encode()


class ReceivedBytes(unreader.Unreader):
    """The bytes that the main loop has read of one connection; threads never read the socket."""

    def __init__(self) -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        self.file: Any = None

    def chunk(self, size_hint: int | None = None) -> bytes:
        data: bytes = self.file.read(max(size_hint or 0, _CHUNK)) if self.file else b""
        if not data and self.file:
            self.file.close()
            self.file = None
        return data

    def take_rest(self) -> bytes:
        """Return and remove the bytes of the next request."""
        data = [self.take_buffered()]  # type: ignore[no-untyped-call]
        while more := self.chunk():
            data.append(more)
        return b"".join(data)


class Connection(gthread.TConn):
    """A connection whose requests the main loop reads."""

    parser: Any

    def start(self) -> None:
        """Prepare the connection without blocking. Raises OSError."""
        with contextlib.suppress(OSError):
            self.sock.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, _SEND_BUFFER)
        self.is_shaken = not self.cfg.is_ssl
        if self.cfg.is_ssl:
            self.sock = sockets.ssl_context(self.cfg).wrap_socket(
                self.sock, server_side=True, do_handshake_on_connect=False
            )
            self.sock.setblocking(False)
        self.parser = get_parser(self.cfg, self.sock, self.client)
        self.parser.unreader = ReceivedBytes()
        self.initialized = True

    def receive(self) -> bytes | None:
        """Return received bytes, b"" at the end, None if there are none yet. Raises OSError."""
        try:
            if not self.is_shaken:
                self.sock.do_handshake()
                self.is_shaken = True
            data: bytes = self.sock.recv(_CHUNK)
        except (BlockingIOError, ssl.SSLWantReadError, ssl.SSLWantWriteError):
            return None
        return data

    def has_more(self) -> bool:
        """Return True if TLS has decrypted bytes, which the poller does not report."""
        return self.cfg.is_ssl and self.is_shaken and bool(self.sock.pending())

    def init(self) -> None:
        """Prepare the socket for the thread of the request, which only writes to it."""
        self.sock.settimeout(WRITE_SECONDS)


class IncomingRequest:
    """A request that is arriving; after a refusal its bytes are discarded."""

    def __init__(self, connection: Connection) -> None:
        self.connection = connection
        self.is_polled = False
        self.file = tempfile.SpooledTemporaryFile(max_size=_IN_MEMORY)  # noqa: SIM115  # the thread closes it
        self._head: bytearray | None = bytearray()
        self._missing = 0
        self._received = 0
        self._began = time.monotonic()
        self._lingers_until: float | None = None

    @property
    def is_complete(self) -> bool:
        return self._head is None and self._missing <= 0 and self._lingers_until is None

    @property
    def is_empty(self) -> bool:
        return not self._received

    @property
    def is_refused(self) -> bool:
        return self._lingers_until is not None

    @property
    def deadline(self) -> float:
        if self._lingers_until is not None:
            return self._lingers_until
        if self._head is not None:
            return self._began + HEAD_SECONDS
        return self._began + min(LONGEST, BODY_SECONDS + self._received / BODY_RATE)

    def linger(self) -> None:
        """Discard further bytes while the client reads the response."""
        self._lingers_until = time.monotonic() + LINGER_SECONDS
        self.file.close()

    def take(self) -> None:
        """Read received bytes up to the end of the request. Raises OSError, RefusedError."""
        chunks = 0
        while not self.is_complete and (chunks < _AT_ONCE or self.connection.has_more()):
            data = self.connection.receive()
            if data is None:
                return
            if not data:
                raise ConnectionAbortedError(errno.ECONNABORTED, "the client closed the connection")
            self.feed(data)
            chunks += 1

    def feed(self, data: bytes) -> None:
        """Add received bytes to the request. Raises RefusedError."""
        self._received += len(data)
        if self._lingers_until is not None:
            return
        if self._head is None:
            self.file.write(data)
            self._missing -= len(data)
            return
        start = max(0, len(self._head) - 3)
        self._head += data
        end = self._head.find(b"\r\n\r\n", start)
        if end >= 0:
            self._end_head(bytes(self._head[: end + 4]), bytes(self._head[end + 4 :]))
        elif len(self._head) > LARGEST_HEAD:
            raise RefusedError(http.HTTPStatus.REQUEST_HEADER_FIELDS_TOO_LARGE)

    def _end_head(self, head: bytes, body: bytes) -> None:
        length = _length(head)
        if length > LARGEST_BODY:
            raise RefusedError(http.HTTPStatus.REQUEST_ENTITY_TOO_LARGE)
        plain_head = _EXPECT.sub(b"", head)
        if plain_head != head and len(body) < length:
            self.connection.sock.send(b"HTTP/1.1 100 Continue\r\n\r\n")
        self.file.write(plain_head)
        self.file.write(body)
        self._head, self._missing = None, length - len(body)


def _length(head: bytes) -> int:
    """Return the length of the body; 0 for an ambiguous head, which gunicorn's parser refuses.

    Raises RefusedError for a chunked body, which the application would see as empty.
    """
    fields = [line.partition(b":") for line in head.split(b"\r\n")[1:]]
    names = {name.strip().lower() for name, _, _ in fields}
    if b"transfer-encoding" in names:
        raise RefusedError(http.HTTPStatus.LENGTH_REQUIRED)
    lengths = [value.strip() for name, _, value in fields if name.lower() == b"content-length"]
    if len(lengths) != 1 or not lengths[0].isdigit():
        return 0
    # int() refuses more than 4300 digits.
    return int(lengths[0]) if len(lengths[0]) < 20 else LARGEST_BODY + 1


class Worker(gthread.ThreadWorker):
    """`gthread`, except that the main loop reads requests before a thread handles them."""

    poller: Any

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)  # type: ignore[no-untyped-call]
        self.incoming: dict[Connection, IncomingRequest] = {}  # the oldest first

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

    def finish_request(self, conn: Connection, fs: futures.Future[Any]) -> None:
        keeps = not fs.cancelled() and fs.exception() is None and fs.result()
        remaining = conn.parser.unreader.take_rest()
        if not keeps:
            self._linger(IncomingRequest(conn))
        elif remaining:
            self._await(conn, remaining)
        else:
            super().finish_request(conn, fs)  # type: ignore[no-untyped-call]

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
        self.enqueue_req(incoming.connection)  # type: ignore[no-untyped-call]

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
