"""The database away: 503 `ipam_unavailable` with Retry-After, and back without a restart."""

import contextlib
import threading
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from django.db import connection
from django.test import Client

from tests.edges import api as apis

HEADERS = {"Authorization": "Token 0123456789abcdef"}


def _elsewhere(work: Callable[[], Any]) -> Any:
    """The work's result, from a thread with a connection of its own, as a web server's."""
    results: list[Any] = []

    def run() -> None:
        try:
            results.append(work())
        finally:
            connection.close()

    thread = threading.Thread(target=run)
    thread.start()
    thread.join(30)
    assert results, "the thread failed"
    return results[0]


@contextlib.contextmanager
def _away(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    with monkeypatch.context() as patch:
        patch.setitem(connection.settings_dict, "HOST", "127.0.0.1")
        patch.setitem(connection.settings_dict, "PORT", "1")
        yield


REQUESTS = [
    ("get", "clusters/", None),
    ("get", "blocks/?limit=1", None),
    ("post", "pools/1/allocations/", apis.holder("a")),
    ("post", "blocks/1/release/", apis.holder("a")),
    ("delete", "pools/1/", None),
    ("get", "schema/", None),
]


@pytest.mark.parametrize(("method", "path", "body"), REQUESTS, ids=[r[1] for r in REQUESTS])
def test_every_request_says_so(
    monkeypatch: pytest.MonkeyPatch, method: str, path: str, body: Any
) -> None:
    def ask() -> Any:
        content = {} if body is None else {"data": body, "content_type": "application/json"}
        return getattr(Client(), method)(apis.ROOT + path, headers=HEADERS, **content)

    with _away(monkeypatch):
        answer = _elsewhere(ask)
    problem = apis.refused(answer, 503, "ipam_unavailable")
    assert int(answer.headers["Retry-After"]) >= 1
    assert "127.0.0.1" not in str(problem)


@pytest.mark.django_db(
    transaction=True
)  # a thread with a connection of its own counts wrong tokens
def test_a_connection_that_was_cut_meanwhile_is_replaced() -> None:
    def ask_and_be_cut() -> list[int]:
        def ask() -> int:
            return int(Client().get(f"{apis.ROOT}pools/", headers=HEADERS).status_code)

        first = ask()
        cut.append(connection.connection.info.backend_pid)
        _cut_backend(cut[0])
        return [first, ask(), ask()]

    cut: list[int] = []
    # 401 is the database's word: it knows no such token.
    assert _elsewhere(ask_and_be_cut) == [401, 401, 401]


def _cut_backend(pid: int) -> None:
    import psycopg

    settings = connection.get_connection_params()
    expected = {name: settings[name] for name in ("host", "port", "user", "password", "dbname")}
    with psycopg.connect(**expected, autocommit=True) as other:
        # Waits until it is gone.
        other.execute("SELECT pg_terminate_backend(%s, 5000)", [pid])
