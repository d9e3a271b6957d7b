"""Ports for servers that are started seconds later, while others ask for any port."""

from __future__ import annotations

import pathlib
import socket

import pytest

from ipam_site.supervisor import processes


@pytest.fixture
def given(tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch) -> pathlib.Path:
    """Says the first and the last port that the kernel gives to whoever asks for any."""
    monkeypatch.setattr(processes, "_EPHEMERAL", tmp_path / "range")
    return tmp_path / "range"


def _listening(port: int) -> socket.socket:
    return socket.create_server(("127.0.0.1", port))


def test_a_port_that_the_kernel_gives_to_nobody() -> None:
    first, last = map(int, processes._EPHEMERAL.read_text().split())
    found = {processes.free_port() for _ in range(20)}
    if first > processes._QUIET_PORTS.start:  # as on every machine that is not set up otherwise
        assert not any(first <= port <= last for port in found)
        assert len(found) > 1
    _listening(found.pop()).close()


def test_what_the_kernel_gives_is_left_out(given: pathlib.Path) -> None:
    given.write_text("20003\t29998\n")
    assert sorted(processes._quiet_ports()) == [20_000, 20_001, 20_002, 29_999]


def test_where_it_may_give_each_of_them_any_will_do(given: pathlib.Path) -> None:
    given.write_text("1024 65535")
    _listening(processes.free_port()).close()


def test_where_it_does_not_say_there_is_one(given: pathlib.Path) -> None:
    assert processes.free_port() in processes._QUIET_PORTS


def test_a_port_where_nobody_listens(monkeypatch: pytest.MonkeyPatch) -> None:
    taken = processes.free_port()
    with _listening(taken):
        assert processes.free_port(taken) != taken
        with monkeypatch.context() as patched:
            patched.setattr(processes, "_quiet_ports", lambda: [taken])
            assert processes.free_port() != taken
    assert processes.free_port(taken) == taken
