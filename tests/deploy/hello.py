"""The smallest application for the web server's worker, without the register."""

from collections.abc import Awaitable, Callable, Mapping
from typing import Any


async def application(
    _scope: Mapping[str, Any],
    _receive: Callable[[], Awaitable[Mapping[str, Any]]],
    send: Callable[[Mapping[str, Any]], Awaitable[None]],
) -> None:
    """Answer each request with 200."""
    await send({"type": "http.response.start", "status": 200, "headers": []})
    await send({"type": "http.response.body", "body": b"hello"})
