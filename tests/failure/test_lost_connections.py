"""Rules `lost-answer-is-found-by-its-key` and `transaction-is-repeated-whole`."""

import contextlib
import socket
import threading
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from django.db import connection

from pools.models import Block
from pools.platform import database
from tests import people
from tests.edges import api as apis

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("committed")]


class Proxy:
    """Between the register and PostgreSQL: cuts both lines when the marker passes, before or after."""

    def __init__(self, to: tuple[str, int]) -> None:
        self._to = to
        self._server = socket.create_server(("127.0.0.1", 0))
        self.port = self._server.getsockname()[1]
        self.cut_at = b""
        self.lets_it_through = False
        self.cuts = 0
        self._lines: list[socket.socket] = []
        self._threads: list[threading.Thread] = []
        self._start(self._accept)

    def _start(self, work: Callable[..., None], *values: object) -> None:
        self._threads.append(threading.Thread(target=work, args=values, daemon=True))
        self._threads[-1].start()

    def _accept(self) -> None:
        with contextlib.suppress(OSError):
            while True:
                client, _ = self._server.accept()
                server = socket.create_connection(self._to)
                self._lines += [client, server]
                for pair in ((client, server, True), (server, client, False)):
                    self._start(self._pump, *pair)

    def _pump(self, source: socket.socket, other: socket.socket, asks: bool) -> None:
        with contextlib.suppress(OSError):
            while data := source.recv(1 << 16):
                if asks and self.cut_at and self.cut_at in data:
                    self.cut_at, self.cuts = b"", self.cuts + 1
                    source.shutdown(socket.SHUT_RDWR)  # the register hears nothing any more
                    if self.lets_it_through:
                        other.sendall(data)
                        other.recv(1 << 16)  # it is done
                    break
                other.sendall(data)
        for line in (source, other):
            with contextlib.suppress(OSError):
                line.shutdown(socket.SHUT_RDWR)

    def close(self) -> None:
        # A thread that waits for a client is not woken by a close.
        self._server.shutdown(socket.SHUT_RDWR)
        for line in self._lines:
            with contextlib.suppress(OSError):
                line.shutdown(socket.SHUT_RDWR)
        for thread in self._threads:
            thread.join(5)
        for line in [self._server, *self._lines]:
            line.close()


@pytest.fixture
def proxy(committed: None) -> Iterator[Proxy]:
    settings = connection.settings_dict
    before = {name: settings[name] for name in ("HOST", "PORT")}
    proxy = Proxy((before["HOST"], int(before["PORT"])))
    connection.close()
    settings.update({"HOST": "127.0.0.1", "PORT": str(proxy.port)})
    yield proxy
    connection.close()
    settings.update(before)
    proxy.close()


@pytest.mark.sample(4)
@pytest.mark.parametrize("after", [False, True], ids=["before it was done", "after it was done"])
@pytest.mark.parametrize("count", [1, 3], ids=["one", "a batch"])
def test_an_answer_that_was_lost_is_found_with_its_key(
    proxy: Proxy, after: bool, count: int
) -> None:
    api = apis.Api()
    api.cluster()
    pool = api.vm_pool("10.0.0.0/24")
    api.take(pool, "warm")
    before = Block.objects.filter(state="held").count()
    body = apis.holder("lost") | ({} if count == 1 else {"count": count})
    path, key = f"pools/{pool}/allocations/", {"Idempotency-Key": "lost-1"}
    proxy.lets_it_through = after
    # One block is one statement; a batch is done when its transaction is.
    proxy.cut_at = b"lost" if count == 1 else b"COMMIT"
    answer = api("POST", path, body, **key)
    apis.refused(answer, 503, "ipam_unavailable")
    assert proxy.cuts == 1
    again = api("POST", path, body, **key)
    assert again.status_code in {200, 201}, again.content
    assert len(again.json()["blocks"]) == count
    assert Block.objects.filter(state="held").count() == before + count
    once_more = api("POST", path, body, **key)
    assert once_more.json()["blocks"] == again.json()["blocks"]


@contextlib.contextmanager
def _other() -> Iterator[Any]:
    """Somebody else's connection, in a transaction."""
    other = connection.copy()
    try:
        with other.cursor() as cursor:
            cursor.execute("BEGIN")
            yield cursor
            cursor.execute("ROLLBACK")
    finally:
        other.close()


@pytest.mark.parametrize(
    ("limit", "text"),
    [
        ("lock_timeout", "Somebody else is changing the same objects."),
        ("statement_timeout", "The database took too long for this."),
    ],
)
def test_rows_that_stay_locked_are_503_and_nothing_is_half_done(limit: str, text: str) -> None:
    api = apis.Api()
    api.cluster()
    pool = api.vm_pool("10.0.0.0/24")
    with connection.cursor() as cursor:
        cursor.execute(f"SET {limit} = '100ms'")
    try:
        with _other() as cursor:
            cursor.execute("LOCK TABLE pools_block IN ACCESS EXCLUSIVE MODE")
            for body in (apis.holder("a"), apis.holder("b") | {"count": 3}):
                answer = api("POST", f"pools/{pool}/allocations/", body)
                apis.refused(answer, 503, "ipam_unavailable")
                assert answer.json()["detail"] == f"{text} Nothing was allocated."
                assert answer.headers["Retry-After"]
            browser = people.browser(raise_request_exception=False)
            page = browser.get(f"/admin/pools/pool/{pool}/change/")
            assert page.status_code == 503
            assert f"<h1>{text.removesuffix('.')}</h1>" in page.content.decode()
    finally:
        connection.close()
    assert not Block.objects.filter(state="held").exists()
    assert not database.rows("SELECT 1 FROM pools_failureevent", [])
    assert api.take(pool, "c")
