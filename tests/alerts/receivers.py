"""Receivers of webhooks: real HTTPS servers on this machine."""

import contextlib
import http.server
import json
import ssl
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any

from pools.models import WebhookTarget
from pools.platform.alerts import targets
from tests import factories, servers
from tests.kube import certificates

AUTHORITY = certificates.Authority()
ACCEPTED = 204


@dataclass
class Received:
    path: str
    headers: dict[str, str]
    body: bytes

    @property
    def event(self) -> dict[str, Any]:
        result: dict[str, Any] = json.loads(self.body)
        return result


@dataclass
class Receiver:
    """What arrived, and what is answered: `answer` makes a status of a request, or writes itself."""

    url: str = ""
    received: list[Received] = field(default_factory=list)
    answer: Callable[[http.server.BaseHTTPRequestHandler, Received], int | None] = (
        lambda _handler, _received: ACCEPTED
    )

    def target(self, name: str = "ops", **settings: Any) -> tuple[WebhookTarget, str]:
        """A target at this receiver, and its secret."""
        options = {"ca": AUTHORITY.pem} | settings
        return targets.create(name, f"{self.url}/hook", author=factories.BY, **options)


@contextlib.contextmanager
def serving() -> Iterator[Receiver]:
    receiver = Receiver()

    class Handler(http.server.BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers["Content-Length"]))
            received = Received(self.path, dict(self.headers), body)
            receiver.received.append(received)
            self.close_connection = True
            status = receiver.answer(self, received)
            if status is not None:
                self.send_response(status)
                if 300 <= status < 400:
                    self.send_header("Location", "https://169.254.169.254/")
                self.send_header("Content-Length", "0")
                self.end_headers()

        def log_message(self, *_: Any) -> None:
            """Quiet."""

    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.daemon_threads = True
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    AUTHORITY.server().load_into(context)
    server.socket = context.wrap_socket(server.socket, server_side=True)
    receiver.url = f"https://127.0.0.1:{server.server_address[1]}"
    with servers.in_thread(server):
        yield receiver
