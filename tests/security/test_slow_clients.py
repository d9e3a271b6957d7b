"""Clients that send or read byte by byte occupy no thread, with no proxy in front of the site."""

import contextlib
import http.client
import pathlib
import socket
import ssl
import threading
import time
from collections.abc import Iterator

import pytest

from ipam_site import asgi
from tests import running_site
from tests.kube.certificates import Authority
from tests.security import crowd

CONNECTIONS = 10  # of each attacker


@pytest.fixture(scope="module")
def site() -> Iterator[running_site.Web]:
    with running_site.web(WEB_WORKERS="2") as running:
        yield running


@contextlib.contextmanager
def connections(port: int) -> Iterator[list[socket.socket]]:
    with contextlib.ExitStack() as stack:
        yield [
            stack.enter_context(socket.create_connection(("127.0.0.1", port), timeout=60))
            for _ in range(CONNECTIONS)
        ]


def trickle(port: int, first: bytes, stop: threading.Event) -> None:
    """Send a beginning on some connections, and then a byte now and then."""
    with connections(port) as opened:
        for connection in opened:
            connection.sendall(first)
        while not stop.wait(0.3):
            for connection in opened:
                connection.sendall(b"a")


HEAD = b"GET / HTTP/1.1\r\nHost: localhost\r\nX-Slow: "
BODY = (
    b"POST /admin/login/ HTTP/1.1\r\nHost: localhost\r\nContent-Length: 100000\r\n"
    b"Content-Type: application/x-www-form-urlencoded\r\n\r\nusername="
)
API_BODY = BODY.replace(b"/admin/login/", b"/api/v1/pools/")
TRICKLES = {
    "nothing": b"",
    "request line": b"GET /",
    "headers": HEAD,
    "form": BODY,
    "API": API_BODY,
}


@pytest.mark.parametrize("first", TRICKLES.values(), ids=TRICKLES)
def test_trickles_of_eight_attackers_delay_nobody(site: running_site.Site, first: bytes) -> None:
    crowd.assert_answers_in_time(site.port, lambda _, stop: trickle(site.port, first, stop))


def test_eight_attackers_that_read_nothing_delay_nobody(site: running_site.Site) -> None:
    def ask(_: int, stop: threading.Event) -> None:
        with connections(site.port) as opened:
            for connection in opened:
                connection.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 1024)
                connection.sendall(b"GET /admin/login/ HTTP/1.1\r\nHost: localhost\r\n\r\n" * 4)
            stop.wait(30)

    crowd.assert_answers_in_time(site.port, ask)


def answer(connection: socket.socket) -> tuple[int, bytes]:
    response = http.client.HTTPResponse(connection)
    response.begin()
    return response.status, response.read()


def test_a_body_in_a_trickle_ends_with_408(site: running_site.Site) -> None:
    with socket.create_connection(("127.0.0.1", site.port), timeout=120) as connection:
        connection.sendall(BODY)
        connection.settimeout(1)
        until = time.monotonic() + 10 * asgi.BODY_SECONDS
        while time.monotonic() < until:
            with contextlib.suppress(TimeoutError):
                status, body = answer(connection)
                break
            connection.sendall(b"a")
    assert (status, b"request_timeout" in body) == (408, True)


REFUSED = {
    "endless header": (HEAD + b"a" * 80_000, 431),
    "a huge body": (BODY.replace(b"100000", b"99999999999"), 413),
    "a huger one": (BODY.replace(b"100000", b"9" * 30), 413),
    "two lengths": (BODY.replace(b"\r\n\r\n", b"\r\nContent-Length: 3\r\n\r\n"), 400),
    "no length": (BODY.replace(b"100000", b"-5"), 400),
    "two content types": (API_BODY.replace(b"\r\n\r\n", b"\r\nContent-Type: text/csv\r\n\r\n"), 400),
    "two hosts": (API_BODY.replace(b"\r\n\r\n", b"\r\nHost: localhost\r\n\r\n"), 400),
    "a target in UTF-8": ("GET /api/v1/pools/?name=grün HTTP/1.1\r\nHost: localhost\r\n\r\n".encode(), 400),
    "no HTTP": (b"\x00\x01\x02\r\n\r\n", 400),
}  # fmt: skip


@pytest.mark.parametrize(("request_", "status"), REFUSED.values(), ids=REFUSED)
def test_what_cannot_be_taken_is_refused_at_once(
    site: running_site.Site, request_: bytes, status: int
) -> None:
    with socket.create_connection(("127.0.0.1", site.port), timeout=60) as connection:
        connection.sendall(request_)
        assert answer(connection)[0] == status


CHUNKS = (
    b"POST /api/v1/pools/ HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
    b"Transfer-Encoding: chunked\r\n\r\n"
)


def test_a_body_in_chunks_has_the_same_limit(site: running_site.Site) -> None:
    with socket.create_connection(("127.0.0.1", site.port), timeout=60) as connection:
        connection.sendall(CHUNKS + b"2\r\n{}\r\n0\r\n\r\n")
        assert answer(connection)[0] == 401
        connection.sendall(CHUNKS)
        chunk = b"100000\r\n" + b" " * 0x100000 + b"\r\n"
        with contextlib.suppress(ConnectionError):  # the answer comes before all of it is sent
            for _ in range(34):
                connection.sendall(chunk)
        assert answer(connection)[0] == 413


def test_requests_in_pieces_in_a_row_and_announced_ones_are_answered(
    site: running_site.Site,
) -> None:
    request = b"GET /api/v1/ HTTP/1.1\r\nHost: localhost\r\n\r\n"
    with socket.create_connection(("127.0.0.1", site.port), timeout=60) as connection:
        for position in range(len(request)):
            connection.sendall(request[position : position + 1])
        first = answer(connection)
        connection.sendall(request + request[:20])
        assert answer(connection) == first or first[0] < 500
        connection.sendall(request[20:])
        assert answer(connection)[0] == first[0]
        announced = BODY.replace(b"100000", b"9").replace(
            b"\r\n\r\n", b"\r\nExpect: 100-continue\r\n\r\n"
        )
        connection.sendall(announced.removesuffix(b"username="))
        assert connection.recv(100) == b"HTTP/1.1 100 Continue\r\n\r\n"
        connection.sendall(b"username=")
        assert answer(connection)[0] == 403  # no CSRF token


def test_more_connections_than_there_are_places_for(site: running_site.Site) -> None:
    """The oldest unfinished ones go, and somebody who sends a whole request gets in."""
    with contextlib.ExitStack() as stack:
        for _ in range(300):
            stack.enter_context(socket.create_connection(("127.0.0.1", site.port), timeout=60))
        assert crowd.NinthClient(site.port).median() < 60


def test_a_handshake_in_pieces_delays_nobody(tmp_path: pathlib.Path) -> None:
    authority = Authority()
    certificate, key = authority.server().files(tmp_path, "server")
    tls = {"WEB_TLS_CERT": str(certificate), "WEB_TLS_KEY": str(key)}
    with running_site.web(WEB_WORKERS="1", **tls) as site, contextlib.ExitStack() as stack:
        trusting = ssl.create_default_context(cadata=authority.pem)
        for _ in range(30):
            half = socket.create_connection(("127.0.0.1", site.port), timeout=60)
            stack.enter_context(half).sendall(b"\x16\x03\x01")
        for _ in range(5):
            connection = http.client.HTTPSConnection(
                "localhost", site.port, timeout=60, context=trusting
            )
            connection.request("GET", "/healthz")
            assert connection.getresponse().status == 200
            connection.close()
