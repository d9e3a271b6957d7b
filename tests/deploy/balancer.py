"""A balancer in front of several running sites: it sends each new connection to one that is ready."""

import contextlib
import socket
import socketserver
import threading
import time
from collections.abc import Iterator
from dataclasses import dataclass, field

from tests import running_site

_EVERY = 0.3  # seconds between two looks at /readyz


@dataclass
class Balancer:
    """What clients know instead of a site: a port and a URL that outlive each of the sites."""

    sites: list[running_site.Site] = field(default_factory=list)
    port: int = 0
    _ready: list[int] = field(default_factory=list)

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    def command(self, *arguments: str) -> str:
        return self.sites[-1].command(*arguments)

    def wait_until_only(self, site: running_site.Site) -> None:
        while self._ready != [site.port]:
            time.sleep(_EVERY)

    def look(self) -> None:
        self._ready = [
            site.port for site in self.sites if running_site.status(f"{site.url}/readyz")[0] == 200
        ]

    def connect(self) -> socket.socket:
        """Return a connection to a ready site. Raises OSError if there is none."""
        for port in reversed(self._ready):
            with contextlib.suppress(OSError):
                return socket.create_connection(("127.0.0.1", port), timeout=5)
        raise OSError("no site is ready")


@contextlib.contextmanager
def balancer() -> Iterator[Balancer]:
    running = Balancer()

    class Connection(socketserver.BaseRequestHandler):
        request: socket.socket

        def handle(self) -> None:
            with contextlib.suppress(OSError), running.connect() as upstream:
                back = threading.Thread(target=_copy, args=(upstream, self.request), daemon=True)
                back.start()
                _copy(self.request, upstream)
                back.join()

    class Server(socketserver.ThreadingTCPServer):
        daemon_threads = True
        allow_reuse_address = True
        request_queue_size = 100

    with Server(("127.0.0.1", 0), Connection) as server:
        running.port = server.server_address[1]
        stopped = threading.Event()

        def watch() -> None:
            while not stopped.wait(_EVERY):
                running.look()

        threads = [threading.Thread(target=target) for target in (server.serve_forever, watch)]
        for thread in threads:
            thread.start()
        try:
            yield running
        finally:
            stopped.set()
            server.shutdown()
            for thread in threads:
                thread.join()


def _copy(source: socket.socket, target: socket.socket) -> None:
    """Copy until one of the two ends; then both end."""
    try:
        while data := source.recv(65536):
            target.sendall(data)
    except OSError:
        pass
    finally:
        for end in (source, target):
            with contextlib.suppress(OSError):
                end.shutdown(socket.SHUT_RDWR)
