"""Connections to one API server: only to addresses that the guard allowed, with verified TLS.

No redirects, no retries, and no proxies, even if the environment names one.
"""

from __future__ import annotations

import contextlib
import os
import pathlib
import socket
import ssl
import tempfile
from collections.abc import Callable, Iterator
from typing import Any

import urllib3
from urllib3 import connection, connectionpool, exceptions, util

from pools.platform.outbound import faults
from pools.platform.outbound.credentials import Access

MOST_ADDRESSES = 4  # of one name; each may take the whole connect timeout
# A dead peer is noticed after 75 seconds, even while a watch is silent.
_KEEPALIVE = [
    (socket.IPPROTO_TCP, socket.TCP_NODELAY, 1),
    (socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1),
    *(
        (socket.IPPROTO_TCP, getattr(socket, name), seconds)
        for name, seconds in (("TCP_KEEPIDLE", 30), ("TCP_KEEPINTVL", 15), ("TCP_KEEPCNT", 3))
        if hasattr(socket, name)
    ),
]


class Connections(urllib3.PoolManager):
    """A pool of one connection; `addresses` returns the allowed addresses, or raises a fault."""

    def __init__(self, access: Access, addresses: Callable[[], list[str]]) -> None:
        names: dict[str, Any] = {}
        if access.tls_server_name:
            names["server_hostname"] = access.tls_server_name
        super().__init__(
            ssl_context=tls_context(access),
            socket_options=_KEEPALIVE,
            retries=False,  # no redirects either: they would bypass the guard, with our token
            maxsize=1,
            **names,
        )

        self._open: list[_PinnedConnection] = []

        class Pinned(_PinnedConnection):
            dial_to = staticmethod(addresses)
            opened = self._open

        class Pool(connectionpool.HTTPSConnectionPool):
            ConnectionCls = Pinned

        self.pool_classes_by_scheme = {"https": Pool}

    def interrupt(self) -> None:
        """Cut the connection that another thread is waiting on."""
        for pinned in self._open:
            # Not shutdown of the TLS socket, which removes the object that the other thread reads with.
            if isinstance(pinned.sock, socket.socket):
                with contextlib.suppress(OSError):
                    socket.socket.shutdown(pinned.sock, socket.SHUT_RDWR)


class _PinnedConnection(connection.HTTPSConnection):
    """Dials addresses that the guard checked; Host, SNI and certificate verification use the name."""

    dial_to: Callable[[], list[str]]
    opened: list[_PinnedConnection]

    def connect(self) -> None:
        super().connect()
        self.opened[:] = [self]  # the current connection

    def _new_conn(self) -> socket.socket:
        failure: OSError | None = None
        for address in self.dial_to()[:MOST_ADDRESSES]:
            try:
                return util.connection.create_connection(
                    (address, self.port), self.timeout, socket_options=self.socket_options
                )
            except OSError as error:
                failure = error
        if isinstance(failure, TimeoutError):
            raise exceptions.ConnectTimeoutError(self, "no connection in time") from failure
        reason = failure.strerror if failure else "no address"
        raise exceptions.NewConnectionError(self, reason or "no connection") from failure


def tls_context(access: Access) -> ssl.SSLContext:
    """Return a context for TLS 1.2 or newer that verifies by the CA of the access. Raises TLSRefused."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    try:
        if access.ca:
            context.load_verify_locations(cadata=access.ca)
            # An intermediate in the bundle is a trust anchor by itself, as with Go's clients.
            context.verify_flags |= ssl.VERIFY_X509_PARTIAL_CHAIN
        else:
            context.load_default_certs()
        if access.certificate:
            with _private_file(f"{access.certificate}\n{access.key}\n") as path:
                # The password "" prevents OpenSSL from asking on the terminal.
                context.load_cert_chain(path, password="")
    except (ssl.SSLError, ValueError) as error:
        raise faults.TLSRefused("the certificates of this cluster cannot be loaded") from error
    return context


@contextlib.contextmanager
def _private_file(content: str) -> Iterator[str]:
    """Yield a path for an API that accepts only files: in memory if the system supports it."""
    if hasattr(os, "memfd_create") and pathlib.Path("/proc/self/fd").is_dir():
        with os.fdopen(os.memfd_create("pair"), "wb") as memory:
            memory.write(content.encode())
            memory.flush()
            yield f"/proc/self/fd/{memory.fileno()}"
        return
    with tempfile.NamedTemporaryFile("w") as file:  # 0600
        file.write(content)
        file.flush()
        yield file.name
