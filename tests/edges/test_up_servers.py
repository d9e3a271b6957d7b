"""The embedded servers, one by one: what an earlier life left behind does not get in the way."""

from __future__ import annotations

import pathlib
import signal
import subprocess
import time
from collections.abc import Callable, Iterator

import psycopg
import pytest

from ipam_site.supervisor import child, embedded, folder, processes
from tests import eventually, running_site

_Make = Callable[[pathlib.Path, dict[str, str]], embedded.Embedded]


@pytest.fixture
def data() -> Iterator[pathlib.Path]:
    with running_site.folder() as data:
        (data / "logs").mkdir(parents=True)
        data.chmod(0o711)
        yield data


def _started(made: embedded.Embedded, data: pathlib.Path) -> child.Child:
    server = child.Child(made.spec, logs=data / "logs", say=print)
    server.start()
    made.wait(server.alive)
    return server


@pytest.mark.parametrize("make", [embedded.postgres_server, embedded.redis_server])
def test_a_server_of_an_earlier_life_is_stopped_first(make: _Make, data: pathlib.Path) -> None:
    secrets = folder.secrets_of(data)
    old = _started(make(data, secrets), data)
    try:
        made = make(data, secrets)
        assert not old.alive()
        new = _started(made, data)
        new.stop()
        assert not new.alive()
    finally:
        old.stop()


def test_without_its_secrets_a_database_is_not_started(data: pathlib.Path) -> None:
    (data / "servers/postgres").mkdir(parents=True)
    with pytest.raises(FileNotFoundError, match=r"secrets\.json is missing"):
        folder.secrets_of(data)


def test_another_server_at_the_port_is_not_taken_for_ours(data: pathlib.Path) -> None:
    secrets = folder.secrets_of(data)
    ours = embedded.postgres_server(data, secrets)
    server = _started(ours, data)
    try:
        stranger = embedded.postgres.Server(
            bin=pathlib.Path(),
            data=data,
            account=embedded.accounts.for_servers(data),
            port=int(ours.url.rpartition(":")[2].partition("/")[0]),
            password="not this one's",
        )
        with pytest.raises(psycopg.OperationalError, match="password"):
            embedded.postgres.wait_until_ready(stranger, server.alive, seconds=0.2)
    finally:
        server.stop()


def test_what_ignores_a_polite_signal_gets_the_next_one(tmp_path: pathlib.Path) -> None:
    with subprocess.Popen(["sh", "-c", "trap '' TERM; sleep 60 & wait"], cwd=tmp_path) as stubborn:
        eventually.until(lambda: len(processes.pids_in(tmp_path)) == 2)
        time.sleep(0.1)
        signals = (signal.SIGTERM, signal.SIGKILL)
        processes.stop_processes_in(tmp_path, signals=signals, seconds=0.5)
        assert stubborn.wait(60) == -signal.SIGKILL
    assert not processes.pids_in(tmp_path)
