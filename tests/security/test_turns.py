"""The threads of a web process: a request that waits delays no other one, and loses nothing."""

import contextlib
import signal
import socket
from collections.abc import Iterator
from concurrent import futures

import psycopg
import pytest

from ipam_site import data_folder
from tests import eventually, running_site

REQUEST = b"GET /healthz HTTP/1.1\r\nHost: localhost\r\n\r\n"
PAGE = "/admin/login/"


@pytest.fixture(scope="module")
def site() -> Iterator[running_site.Web]:
    with running_site.web(WEB_WORKERS="1", WEB_THREADS="3") as running:
        yield running


@contextlib.contextmanager
def waiting_requests(site: running_site.Site, count: int) -> Iterator[list[futures.Future[int]]]:
    """Requests that read a token's user, and wait until the end of the block."""

    def ask() -> int:
        token = {"Authorization": f"Token {'a' * 64}"}
        line = running_site.urllib.request.Request(f"{site.url}/api/v1/pools/", headers=token)
        try:
            with running_site.urllib.request.urlopen(line, timeout=120) as answer:
                return int(answer.status)
        except running_site.urllib.error.HTTPError as error:
            return error.code

    url = data_folder.connections(site.data)["database_url"]
    locks = (
        "SELECT count(*) FROM pg_locks WHERE NOT granted AND relation = 'knox_authtoken'::regclass"
    )
    with psycopg.connect(url) as holder, futures.ThreadPoolExecutor(count) as threads:
        holder.execute("LOCK TABLE knox_authtoken IN ACCESS EXCLUSIVE MODE")
        waiting = [threads.submit(ask) for _ in range(count)]
        eventually.until(lambda: holder.execute(locks).fetchone() == (count,))
        yield waiting
        holder.rollback()
        assert [request.result(60) for request in waiting] == [401] * count


def test_requests_that_wait_for_the_database_delay_no_other(site: running_site.Site) -> None:
    with waiting_requests(site, 2) as waiting:
        for _ in range(20):
            assert running_site.status(site.url + "/healthz")[0] == 200
        assert not any(request.done() for request in waiting)


def test_many_requests_in_one_piece_are_all_answered(site: running_site.Site) -> None:
    count = 2000
    with (
        socket.create_connection(("127.0.0.1", site.port), timeout=60) as connection,
        futures.ThreadPoolExecutor(1) as threads,
    ):
        sending = threads.submit(connection.sendall, REQUEST * count)
        received, tail = 0, b""
        while received < count:
            data = tail + connection.recv(1 << 16)
            received += data.count(b"HTTP/1.1 200 OK\r\n")
            tail = data[-16:]  # one byte less than the line has
        sending.result(60)
    assert received == count


def test_a_stop_lets_a_waiting_request_end(site: running_site.Site) -> None:
    """The master starts another process in the place of one that is told to stop."""
    (worker,) = site.pids("gunicorn")
    with waiting_requests(site, 1):
        running_site.os.kill(worker, signal.SIGTERM)
        assert worker in site.pids("gunicorn")
    eventually.until(lambda: worker not in site.pids("gunicorn"))
    assert running_site.status(site.url + "/healthz")[0] == 200
