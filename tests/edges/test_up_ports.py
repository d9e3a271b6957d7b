"""Ports for servers that are started seconds later, while others ask for any port."""

import pathlib
import socket

import pytest

from ipam_site.supervisor import processes

_EPHEMERAL = pathlib.Path("/proc/sys/net/ipv4/ip_local_port_range")


def _listening(port: int) -> socket.socket:
    return socket.create_server(("127.0.0.1", port))


def test_a_port_that_the_kernel_gives_to_nobody() -> None:
    first, last = map(int, _EPHEMERAL.read_text().split())
    ports = {processes.free_port() for _ in range(20)}
    if first > max(processes._PORTS):  # as on every machine that is not set up otherwise
        assert not any(first <= port <= last for port in ports)
    assert len(ports) > 1
    _listening(ports.pop()).close()


def test_a_port_where_nobody_listens(monkeypatch: pytest.MonkeyPatch) -> None:
    busy = processes.free_port()
    with _listening(busy):
        assert processes.free_port(busy) != busy
        with monkeypatch.context() as patched:
            patched.setattr(processes, "_PORTS", [busy])
            patched.setattr(processes, "_TRIES", 1)
            assert processes.free_port() != busy
    assert processes.free_port(busy) == busy
