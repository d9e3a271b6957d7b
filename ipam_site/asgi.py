"""Django for gunicorn's `asgi` worker: a thread gets a request when the last byte of it has arrived.

gunicorn's `gthread` reads requests in threads: a few clients that send a byte now and then occupy all of
them. Here the event loop reads requests into memory or a temporary file, and sends the responses, as
behind a buffering proxy. Django's own ASGI handler would open a connection to the database for each request.
"""

import asyncio
import contextlib
import http
import json
import tempfile
from collections.abc import Awaitable, Callable, Mapping
from concurrent import futures
from functools import partial
from typing import IO, Any
from urllib import parse

from ipam_site import data_folder, env
from ipam_site.wsgi import application as django

# The largest body of any endpoint is 32 MiB; each endpoint has a limit of its own.
LARGEST_BODY = 33 * 1024 * 1024
BODY_SECONDS = 20.0  # for a body, and a second more for each
BODY_RATE = 1024  # bytes that have arrived of it
LONGEST = 600.0  # seconds for any body, and for a client to read the response
LINGER_SECONDS = 2.0
_IN_MEMORY = 256 * 1024  # bytes of a body

# `manage.py drain` writes it: each response then ends its connection, so that a client that keeps one open is not cut off
# by the stop while it sends its next request, but asks a process that stays.
DRAIN_MARKER = data_folder.locate() / "draining"

Message = Mapping[str, Any]
Receive = Callable[[], Awaitable[Message]]
Send = Callable[[Message], Awaitable[None]]
Response = tuple[int, list[tuple[str, str]], bytes]

# An allocation is one short round trip, so that a few threads in each process keep the database busy.
_threads = futures.ThreadPoolExecutor(env.integer("WEB_THREADS", 2, minimum=1))


class RefusedError(Exception):
    """The request is refused before it is complete."""

    def __init__(self, status: http.HTTPStatus, code: str) -> None:
        super().__init__(status)
        self.status = status
        self.code = code

    def response(self) -> Response:
        problem = {"type": "about:blank", "title": self.status.phrase, "status": self.status.value}
        content = json.dumps(problem | {"code": self.code}).encode()
        headers = {"Content-Type": "application/problem+json", "Connection": "close"}
        return self.status.value, [*headers.items()], content


async def application(scope: Mapping[str, Any], receive: Receive, send: Send) -> None:
    """Answer one request."""
    body = tempfile.SpooledTemporaryFile(max_size=_IN_MEMORY)  # noqa: SIM115  # the thread closes it
    try:
        length = await _read_body(scope, receive, body)
    except RefusedError as refusal:
        body.close()
        await _send(send, refusal.response())
        await _linger(receive)
        return
    except asyncio.CancelledError:
        body.close()
        raise
    else:
        work = partial(_respond, _environ(scope, body, length))
        await _send(send, await asyncio.get_running_loop().run_in_executor(_threads, work))


async def _send(send: Send, response: Response) -> None:
    status, headers, content = response
    encoded = [(name.lower().encode(), value.strip().encode("latin-1")) for name, value in headers]
    encoded.append((b"server", b"Cadastre"))  # instead of gunicorn's version
    if content and not any(name == b"content-length" for name, _ in encoded):
        encoded.append((b"content-length", str(len(content)).encode()))
    if DRAIN_MARKER.exists():
        encoded.append((b"connection", b"close"))
    async with asyncio.timeout(LONGEST):
        await send({"type": "http.response.start", "status": status, "headers": encoded})
        await send({"type": "http.response.body", "body": content})


async def _linger(receive: Receive) -> None:
    """Discard what a refused client goes on to send: a connection that is closed before loses the response."""
    with contextlib.suppress(TimeoutError):
        async with asyncio.timeout(LINGER_SECONDS):
            while (await receive()).get("more_body"):
                pass


async def _read_body(scope: Mapping[str, Any], receive: Receive, body: IO[bytes]) -> int:
    """Read the body into a file, and return its length. Raises RefusedError."""
    too_large = RefusedError(http.HTTPStatus.REQUEST_ENTITY_TOO_LARGE, "too_large")
    too_slow = RefusedError(http.HTTPStatus.REQUEST_TIMEOUT, "request_timeout")
    announced = dict(scope["headers"]).get(b"content-length", b"0")
    if int(announced) > LARGEST_BODY:
        raise too_large
    length, has_more = 0, True
    try:
        async with asyncio.timeout(LONGEST), asyncio.timeout(BODY_SECONDS) as limit:
            while has_more:
                message = await receive()
                if message["type"] != "http.request":
                    raise too_slow  # or the client has gone
                part = message.get("body", b"")
                length += len(part)
                if length > LARGEST_BODY:
                    raise too_large
                body.write(part)
                has_more = message.get("more_body", False)
                limit.reschedule((limit.when() or 0) + len(part) / BODY_RATE)
    except TimeoutError:
        raise too_slow from None
    body.seek(0)
    return length


def _environ(scope: Mapping[str, Any], body: IO[bytes], length: int) -> dict[str, Any]:
    """Return the request as WSGI has it (PEP 3333), with the length of a body that came in chunks."""
    server, client = scope["server"] or ("localhost", 80), scope["client"] or ("", 0)
    environ = {
        "REQUEST_METHOD": scope["method"],
        "SCRIPT_NAME": "",
        "PATH_INFO": parse.unquote_to_bytes(scope["raw_path"]).decode("latin-1"),
        "QUERY_STRING": scope["query_string"].decode("latin-1"),
        "SERVER_PROTOCOL": f"HTTP/{scope['http_version']}",
        "SERVER_NAME": server[0],
        "SERVER_PORT": str(server[1]),
        "REMOTE_ADDR": client[0],
        "wsgi.url_scheme": scope["scheme"],
        "wsgi.input": body,
        "wsgi.multithread": True,
        "wsgi.multiprocess": True,
    }
    for name, value in scope["headers"]:
        key = f"HTTP_{name.decode('latin-1').upper().replace('-', '_')}"
        text = value.decode("latin-1")
        environ[key] = f"{environ[key]},{text}" if key in environ else text
    environ.pop("HTTP_TRANSFER_ENCODING", None)
    environ.pop("HTTP_CONTENT_LENGTH", None)
    environ["CONTENT_LENGTH"] = str(length)
    environ["CONTENT_TYPE"] = environ.pop("HTTP_CONTENT_TYPE", "")
    return environ


def _respond(environ: dict[str, Any]) -> Response:
    """Call Django, and return the whole response, also of an export: its statements are this thread's."""
    started: list[tuple[str, list[tuple[str, str]]]] = []
    start: Any = lambda status, headers, _=None: started.append((status, headers))  # noqa: E731
    response = django(environ, start)
    try:
        content = b"".join(response)
    finally:
        response.close()
        environ["wsgi.input"].close()
    ((status, headers),) = started
    return int(status[:3]), headers, content
