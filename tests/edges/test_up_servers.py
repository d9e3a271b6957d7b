"""The embedded servers, one by one: what an earlier life left behind does not get in the way."""

import os
import pathlib
import signal
import threading
from collections.abc import Iterator

import psycopg
import pytest

from ipam_site import data_folder
from ipam_site.supervisor import embedded, processes
from tests import eventually, running_site


@pytest.fixture
def data() -> Iterator[pathlib.Path]:
    with running_site.folder() as data:
        (data / "logs").mkdir(parents=True)
        data.chmod(0o711)
        yield data


def _started(database: embedded.Embedded, data: pathlib.Path) -> processes.Child:
    server = processes.Child(database.spec, logs=data / "logs", say=print)
    server.start()
    database.wait(server.alive)
    return server


def test_a_server_of_an_earlier_life_ends_before_another_one_starts(data: pathlib.Path) -> None:
    lock = data_folder.lock(data)
    old = _started(embedded.redis_server(data, data_folder.make_secrets(data), lock), data)
    os.close(lock)
    try:
        with pytest.raises(data_folder.UnusableError, match=f"process {os.getpid()},"):
            data_folder.lock(data)
        (data / "up.lock").write_text("99999999\n")  # its supervisor ended
        with pytest.raises(data_folder.UnusableError, match="in use"):
            data_folder.lock(data, seconds=0.2)
        threading.Timer(0.5, old.stop).start()
        os.close(data_folder.lock(data))
        assert not old.alive()
    finally:
        old.stop()


def test_without_its_secrets_a_database_is_not_started(data: pathlib.Path) -> None:
    (data / "servers/postgres").mkdir(parents=True)
    with pytest.raises(data_folder.UnusableError, match=r"secrets\.json is missing"):
        data_folder.make_secrets(data)


def test_another_server_at_the_port_is_not_taken_for_ours(data: pathlib.Path) -> None:
    lock = data_folder.lock(data)
    ours = embedded.postgres_server(data, data_folder.make_secrets(data), lock)
    server = _started(ours, data)
    try:
        stranger = embedded.Server(
            bin=pathlib.Path(),
            data=data,
            account=embedded.account_for_servers(data),
            port=int(ours.url.rpartition(":")[2].partition("/")[0]),
            password="not this one's",
        )
        with pytest.raises(psycopg.OperationalError, match="password"):
            embedded.wait_until_ready(stranger, server.alive, seconds=0.2)
    finally:
        server.stop()
        os.close(lock)


def test_what_ignores_a_polite_signal_gets_the_next_one(tmp_path: pathlib.Path) -> None:
    command = ["sh", "-c", "trap '' TERM; sleep 60 & echo $!; wait"]
    spec = processes.Spec("stubborn", command, dict(os.environ), ((signal.SIGTERM, 0.3),))
    stubborn = processes.Child(spec, logs=tmp_path, say=print)
    stubborn.start()
    log = tmp_path / "stubborn.log"
    eventually.until(lambda: log.read_text().endswith("\n"))
    stubborn.stop()
    assert not stubborn.alive()
    eventually.until(lambda: not running_site.alive({int(log.read_text()): "sleep"}))
