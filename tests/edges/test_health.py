import contextlib
import pathlib
import socket
import threading
import time
from collections.abc import Iterator
from typing import Any

import pytest
from django import test
from django.db import connection

from ipam_site import database_watch
from ipam_site.http import health

# pytest-django's own type is not public.
Settings = Any


def _ready(client: test.Client) -> tuple[int, dict[str, Any]]:
    answer = client.get("/readyz")
    return answer.status_code, answer.json()


def test_healthz_needs_nothing(client: test.Client) -> None:
    answer = client.get("/healthz", headers={"host": "10.0.0.7:8000"})
    assert answer.status_code == 200
    assert not answer.cookies


@pytest.mark.django_db
def test_ready(client: test.Client, settings: Settings, redis_url: str) -> None:
    settings.REDIS_URL = redis_url
    code, body = _ready(client)
    assert (code, body["status"]) == (200, "ok")
    assert body["checks"] == {"database": "ok", "redis": "ok", "draining": "no"}


@pytest.mark.django_db
def test_a_probe_needs_no_known_host_name_and_no_https(
    client: test.Client, settings: Settings
) -> None:
    settings.SECURE_SSL_REDIRECT = True
    answer = client.get("/readyz", headers={"host": "10.0.0.7:8000"})
    assert answer.status_code == 200
    assert not answer.cookies


@pytest.mark.django_db
def test_without_redis_it_is_degraded_but_ready(client: test.Client) -> None:
    code, body = _ready(client)
    assert (code, body["status"], body["checks"]["redis"]) == (200, "degraded", "away")


@pytest.mark.django_db
def test_draining(client: test.Client, settings: Settings, tmp_path: pathlib.Path) -> None:
    settings.IPAM_DATA = tmp_path
    assert _ready(client)[0] == 200
    (tmp_path / "draining").touch()
    code, body = _ready(client)
    assert (code, body["checks"]["draining"]) == (503, "yes")


@pytest.mark.django_db
def test_a_process_that_still_refuses_is_not_ready(
    client: test.Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    # Stands for the half second until this process sees that the server answers again.
    with monkeypatch.context() as patch:
        patch.setattr(database_watch, "is_refusing", lambda: True)
        code, body = _ready(client)
    assert (code, body["checks"]["database"]) == (503, "hung")
    assert _ready(client)[0] == 200


@contextlib.contextmanager
def _database(monkeypatch: pytest.MonkeyPatch, **changes: object) -> Iterator[None]:
    with monkeypatch.context() as patch:
        for name, value in changes.items():
            patch.setitem(connection.settings_dict, name, value)
        patch.setattr(health, "_all_applied", type(health._all_applied)())
        yield


@pytest.mark.django_db
def test_a_database_without_the_migrations_is_not_ready(
    client: test.Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    with _database(monkeypatch, NAME="postgres"):
        code, body = _ready(client)
    assert (code, body["checks"]["database"]) == (503, "migrations missing")


@pytest.mark.django_db
def test_a_database_that_takes_no_writes_is_not_ready(
    client: test.Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    options = connection.settings_dict["OPTIONS"]
    read_only = {**options, "options": "-c default_transaction_read_only=on"}
    with _database(monkeypatch, OPTIONS=read_only):
        code, body = _ready(client)
    assert (code, body["checks"]["database"]) == (503, "read-only")


def test_a_database_that_is_away_is_not_ready(
    client: test.Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    with _database(monkeypatch, HOST="127.0.0.1", PORT="1"):
        code, body = _ready(client)
    assert (code, body["status"], body["checks"]["database"]) == (503, "unavailable", "away")
    assert "127.0.0.1" not in str(body)


def test_a_database_that_hangs_is_answered_for_in_time(
    client: test.Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    with socket.create_server(("127.0.0.1", 0)) as silent:
        changes = {"HOST": "127.0.0.1", "PORT": str(silent.getsockname()[1])}
        with _database(monkeypatch, **changes):
            assert health._CONNECT_SECONDS < health._SECONDS < 4
            monkeypatch.setattr(health, "_CONNECT_SECONDS", 30)  # the deadline alone ends it
            code, body = _ready(client)
            answer = health._database.ask()
            assert not answer.done()
    assert (code, body["checks"]["database"]) == (503, "no answer")
    # The check's own thread ends too, before the next test asks.
    assert answer.result(60) == "away"


def test_connecting_has_a_limit_of_its_own(monkeypatch: pytest.MonkeyPatch) -> None:
    with socket.create_server(("127.0.0.1", 0)) as silent:
        changes = {"HOST": "127.0.0.1", "PORT": str(silent.getsockname()[1])}
        with _database(monkeypatch, **changes):
            assert health._database.ask().result(60) == "away"


def test_a_check_that_hangs_is_asked_once() -> None:
    free, calls = threading.Event(), []

    def ask() -> str:
        calls.append(1)
        free.wait(60)
        return "ok"

    check = health._Check(ask)
    first = check.ask()
    assert health._await_result(first, time.monotonic() + 0.05) == "no answer"
    assert check.ask() is first
    free.set()
    assert first.result(60) == "ok"
    assert health._await_result(check.ask(), time.monotonic() + 60) == "ok"
    assert len(calls) == 2
