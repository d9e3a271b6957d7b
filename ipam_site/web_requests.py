"""Requests that arrive at the web server: read without blocking, within limits of size and time."""

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
from typing import Any

from gunicorn import sock as sockets
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
