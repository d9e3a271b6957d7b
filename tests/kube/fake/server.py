"""HTTP: one thread per connection, TLS, keep-alive, faults, the journal."""

from __future__ import annotations

import http.server
import json
import socket
import ssl
import threading
import time
import traceback
import urllib.parse
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from tests.kube.certificates import Pair
from tests.kube.fake import refusals, watching
from tests.kube.fake.access import User
from tests.kube.fake.answers import Answer, Call, answer
from tests.kube.fake.faults import Fault
from tests.kube.fake.journal import Request
from tests.kube.fake.paths import Target, parse
from tests.kube.fake.store import encode

if TYPE_CHECKING:
    from tests.kube.fake.cluster import FakeCluster

_VERBS = {"POST": "create", "PUT": "update", "PATCH": "patch", "DELETE": "delete"}
_PAGE = b"<html><body><h1>It works!</h1></body></html>"


class _Cut(Exception):  # noqa: N818 - what happened
    """The connection ends here, without a good-bye."""


def _verb(method: str, target: Target | None, query: dict[str, str]) -> str:
    if target is None:
        return method.lower()
    if method != "GET":
        return _VERBS.get(method, method.lower())
    if target.name:
        return "get"
    return "watch" if query.get("watch") in {"1", "true"} else "list"


class Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True
    wbufsize = -1
    server: _Listener
    connection: ssl.SSLSocket

    def _serve(self) -> None:
        path, _, text = self.path.partition("?")
        path = urllib.parse.unquote(path)
        query = dict(urllib.parse.parse_qsl(text, keep_blank_values=True))
        body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
        cluster = self.server.cluster
        target = parse(path)
        verb = _verb(self.command, target, query)
        user = cluster.accounts.who(
            self.headers.get("Authorization", ""), dict(self.connection.getpeercert() or {})
        )
        request = Request(
            verb=verb,
            method=self.command,
            path=path,
            query=query,
            user=user.name if user else "",
            user_agent=self.headers.get("User-Agent", ""),
            content_type=self.headers.get("Content-Type", ""),
            arrived_at=time.time(),
            body=body,
        )
        cluster.log.add(request)
        began = time.monotonic()
        try:
            self._answer_with_faults(request, target, user)
        except (_Cut, ConnectionError, TimeoutError, ssl.SSLError):
            self._cut()
        finally:
            request.seconds = time.monotonic() - began

    do_GET = do_POST = do_PUT = do_PATCH = do_DELETE = _serve  # noqa: N815 - its names

    def _answer_with_faults(
        self, request: Request, target: Target | None, user: User | None
    ) -> None:
        fault = self.server.cluster.faults.take(request.verb, self.path) or Fault()
        if fault.delay:
            self.server.cluster.ended.wait(fault.delay)
        if fault.call:
            fault.call()
        if fault.effect == "hang":
            self.server.cluster.ended.wait()
        if fault.effect in {"cut", "hang"}:
            raise _Cut
        result = self._spoiled(fault) or self._answer(request, target, user)
        request.status = result.code
        if fault.effect == "lost":
            raise _Cut
        if result.lines is not None:
            self._stream(result, fault)
        else:
            self._send(result, fault)

    def _spoiled(self, fault: Fault) -> Answer | None:
        """The answer that a fault gives instead of the server's."""
        if fault.effect == "html":
            return Answer(200, _PAGE, content_type="text/html")
        if fault.effect == "gzip":
            return Answer(200, b"\x1f\x8b garbage", headers={"Content-Encoding": "gzip"})
        if fault.body is not None:
            return Answer(fault.status or 200, fault.body)
        if not fault.status:
            return None
        details = (
            {"retryAfterSeconds": fault.retry_after} if fault.retry_after is not None else None
        )
        refused = refusals.Refused(
            fault.status,
            fault.message or f"injected {fault.status}",
            reason=fault.reason or refusals.REASONS.get(fault.status, "Unknown"),
            details=details,
        )
        if fault.effect == "event":
            return Answer(200, b"", lines=iter([watching.error(refused)]))
        headers = {"Retry-After": str(fault.retry_after)} if fault.retry_after is not None else {}
        return Answer(fault.status, encode(refused.status()), headers=headers)

    def _answer(self, request: Request, target: Target | None, user: User | None) -> Answer:
        cluster = self.server.cluster
        try:
            return answer(Call(cluster, request, target, user))
        except refusals.Refused as refused:
            return Answer(refused.code, encode(refused.status()))
        except refusals.NoSuchPath:
            body = b"" if request.path.startswith("/openapi/v3/") else b"404 page not found\n"
            return Answer(404, body, content_type="text/plain; charset=utf-8")
        except Exception:  # noqa: BLE001 - a mistake of the fake itself fails the test at its end
            cluster.errors.append(f"{request}\n{traceback.format_exc()}")
            return Answer(500, encode(refusals.Refused(500, "the fake failed").status()))

    def _send(self, response: Answer, fault: Fault) -> None:
        body = response.body
        if fault.effect == "truncate":
            body = body[: len(body) // 2]
        if fault.effect == "cut-chunk":
            self._head(response, {"Transfer-Encoding": "chunked"})
            self.wfile.write(b"%x\r\n%s" % (len(body), body[: len(body) // 2]))
            self.wfile.flush()
            raise _Cut
        self._head(response, {"Content-Length": str(len(body))})
        if fault.effect == "cut-headers":
            body = b""
        if fault.effect in {"cut-body", "stall"}:
            body = body[: len(body) // 2]
        self.wfile.write(body)
        self.wfile.flush()
        self._end_badly(fault)

    def _end_badly(self, fault: Fault) -> None:
        """After a part of the answer."""
        if fault.effect == "stall":
            self.server.cluster.ended.wait()
        if fault.effect in {"cut-headers", "cut-body", "stall"}:
            raise _Cut

    def _head(self, response: Answer, more: dict[str, str]) -> None:
        self.send_response(response.code)
        headers = {"Content-Type": response.content_type, **response.headers, **more}
        for name, value in headers.items():
            self.send_header(name, value)
        for warning in response.warnings:
            self.send_header("Warning", f"299 - {json.dumps(warning)}")
        self.end_headers()

    def _stream(self, response: Answer, fault: Fault) -> None:
        lines: Iterator[bytes] = response.lines or iter(())
        self._head(response, {"Transfer-Encoding": "chunked"})
        self.wfile.flush()
        for line in lines:
            if not line:
                continue
            half = fault.effect in {"cut-body", "stall"}
            self._chunk(line[: len(line) // 2] if half else line)
            self._end_badly(fault)
        self.wfile.write(b"0\r\n\r\n")
        self.wfile.flush()

    def _chunk(self, line: bytes) -> None:
        self.wfile.write(b"%x\r\n%s\r\n" % (len(line), line))
        self.wfile.flush()

    def _cut(self) -> None:
        self.close_connection = True
        cut(self.connection)

    def finish(self) -> None:
        """A caller that went away is no mistake."""
        try:
            super().finish()
        except (OSError, ValueError):
            self.close_connection = True

    def log_message(self, *_: Any) -> None:
        """The journal has it."""


def cut(connection: socket.socket) -> None:
    """Without a good-bye of TLS, and safe while another thread reads from it."""
    try:
        socket.socket.shutdown(connection, socket.SHUT_RDWR)
    except OSError:
        return


class _Listener(http.server.ThreadingHTTPServer):
    daemon_threads = True
    block_on_close = False
    request_queue_size = 128

    def __init__(self, cluster: FakeCluster, context: ssl.SSLContext, port: int) -> None:
        self.cluster = cluster
        self._context = context
        self._lock = threading.Lock()
        self._open: set[socket.socket] = set()
        super().__init__(("127.0.0.1", port), Handler)

    def server_bind(self) -> None:
        """Without the look-up of a host name that HTTPServer does."""
        socket_server = super(http.server.HTTPServer, self)
        socket_server.server_bind()

    def finish_request(self, request: Any, client_address: Any) -> None:
        """In the connection's own thread: the handshake, then requests until it closes."""
        try:
            request.settimeout(10)
            wrapped = self._context.wrap_socket(request, server_side=True)
            wrapped.settimeout(None)
        except OSError:
            return
        with self._lock:
            self._open.add(wrapped)
        try:
            self.RequestHandlerClass(wrapped, client_address, self)
        except OSError:
            return
        finally:
            with self._lock:
                self._open.discard(wrapped)
            wrapped.close()

    def cut(self) -> None:
        with self._lock:
            for connection in self._open:
                cut(connection)


class Server:
    """Listens in a thread of its own from start() to close()."""

    def __init__(self, cluster: FakeCluster, pair: Pair, ca: str, port: int) -> None:
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        pair.load_into(context)
        context.load_verify_locations(cadata=ca)
        context.verify_mode = ssl.CERT_OPTIONAL
        self._listener = _Listener(cluster, context, port)
        self.port = self._listener.server_address[1]
        self._thread = threading.Thread(target=self._listener.serve_forever, daemon=True)

    def start(self) -> None:
        self._thread.start()

    def cut(self) -> None:
        self._listener.cut()

    def close(self) -> None:
        closing = threading.Thread(target=self._listener.shutdown, daemon=True)
        closing.start()
        # The listener looks at its flag when something arrives, or twice a second.
        with socket.create_connection(("127.0.0.1", self.port)):
            pass
        closing.join()
        self._listener.server_close()
        self._listener.cut()
