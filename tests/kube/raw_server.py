"""A TLS server that answers with bytes of the test's choice, for what no API server would say."""

import contextlib
import socket
import ssl
import threading
from collections.abc import Callable, Iterator

from pools.platform.outbound.credentials import Access
from tests.kube import certificates

Answer = Callable[[ssl.SSLSocket], object]
AUTHORITY = certificates.Authority()


def says(*parts: bytes) -> Answer:
    """Sends the bytes and closes."""

    def answer(connection: ssl.SSLSocket) -> None:
        for part in parts:
            connection.sendall(part)

    return answer


def ok(body: bytes, *headers: bytes) -> bytes:
    lines = [b"HTTP/1.1 200 OK", b"Content-Length: %d" % len(body), *headers, b"", body]
    return b"\r\n".join(lines)


@contextlib.contextmanager
def serving(answer: Answer) -> Iterator[tuple[Access, list[bytes]]]:
    """The access to it, and the requests that arrive, each on a connection of its own."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    AUTHORITY.server().load_into(context)
    requests: list[bytes] = []
    with socket.create_server(("127.0.0.1", 0)) as listener:

        def serve() -> None:
            while True:
                try:
                    plain, _ = listener.accept()
                except OSError:
                    return
                with contextlib.suppress(OSError), context.wrap_socket(plain, True) as connection:
                    requests.append(connection.recv(65536))
                    answer(connection)

        thread = threading.Thread(target=serve, daemon=True)
        thread.start()
        url = f"https://127.0.0.1:{listener.getsockname()[1]}"
        try:
            yield Access(url, AUTHORITY.pem, token="canary"), requests
        finally:
            listener.shutdown(socket.SHUT_RDWR)
    thread.join(10)
