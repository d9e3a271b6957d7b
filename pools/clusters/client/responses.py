"""What an API server answered: an object, or a fault. Nothing here believes that an answer is whole,
small or JSON.
"""

from __future__ import annotations

import json
import time
from collections.abc import Iterator, Mapping
from typing import Any

import urllib3

from pools.platform.outbound import connection_errors, faults

LARGEST = 32 * 1024 * 1024  # bytes of one answer, or of one line of a watch
_LARGEST_REFUSAL = 1024 * 1024
_CHUNK = 256 * 1024
_PLAIN_404 = b"404 page not found"
_STATUS: dict[int, type[faults.ClusterFault]] = {
    400: faults.Rejected,
    401: faults.Unauthorized,
    403: faults.Forbidden,
    405: faults.Rejected,
    410: faults.Gone,
    413: faults.Rejected,
    415: faults.Rejected,
    422: faults.Rejected,
}


def body_of(response: urllib3.BaseHTTPResponse, *, seconds: float) -> bytes:
    """The whole body, within `seconds` from now.

    Raises Garbled (too large, compressed), Unreachable (too slow), and what urllib3 raises.
    """
    limit = LARGEST if response.status < 300 else _LARGEST_REFUSAL
    deadline = time.monotonic() + seconds
    check_encoding(response)
    if int(_number(response.headers.get("Content-Length"))) > limit:
        response.close()
        raise _too_large(limit)
    chunks, size = [], 0
    # read1 returns what is there: a server that drips single bytes meets the deadline.
    while chunk := response.read1(_CHUNK):
        chunks.append(chunk)
        size += len(chunk)
        if size > limit or time.monotonic() > deadline:
            response.close()
            raise (
                _too_large(limit) if size > limit else faults.Unreachable("the answer is too slow")
            )
    return b"".join(chunks)


def lines_of(response: urllib3.BaseHTTPResponse) -> Iterator[bytes]:
    """The complete lines as they come; half a line at the end is dropped.

    Raises Garbled (a line is too large), and what urllib3 raises.
    """
    parts: list[bytes] = []
    size = 0
    while chunk := response.read1(_CHUNK):
        *complete, rest = chunk.split(b"\n")
        for line in complete:
            yield b"".join([*parts, line])
            parts, size = [], 0
        parts.append(rest)
        size += len(rest)
        if size > LARGEST:
            raise _too_large(LARGEST)


def check_encoding(response: urllib3.BaseHTTPResponse) -> None:
    """We asked for plain bytes: a compressed answer may be a bomb. Raises Garbled."""
    if response.headers.get("Content-Encoding", "identity").lower() != "identity":
        response.close()
        raise faults.MalformedResponse("the answer is compressed, which was not asked for")


def _too_large(limit: int) -> faults.MalformedResponse:
    return faults.MalformedResponse(f"the answer is larger than {limit // 1024 // 1024} MiB")


def parsed(raw: bytes) -> dict[str, Any]:
    """The object of a JSON text. Raises Garbled."""
    try:
        value = json.loads(raw)
    except (ValueError, RecursionError):
        begin = "a page" if raw[:64].lstrip()[:1] == b"<" else "no valid JSON"
        raise faults.MalformedResponse(
            f"the answer is {begin}, not one of a Kubernetes API server"
        ) from None
    if not isinstance(value, dict):
        raise faults.MalformedResponse("the answer is no JSON object")
    return value


def member(answer: dict[str, Any], name: str) -> dict[str, Any]:
    """An object inside of an answer. Raises Garbled."""
    child = answer.get(name)
    if not isinstance(child, dict):
        raise faults.MalformedResponse(f"the answer has no {name}")
    return child


def text(answer: dict[str, Any], name: str) -> str:
    """A text inside of an answer, not empty. Raises Garbled."""
    content = answer.get(name)
    if not isinstance(content, str) or not content:
        raise faults.MalformedResponse(f"the answer has no {name}")
    return content


def objects(answer: dict[str, Any], name: str) -> list[dict[str, Any]]:
    """A list of objects inside of an answer; null is the empty one, as Go writes it. Raises Garbled."""
    entries = answer.get(name)
    if entries is None and name in answer:
        return []
    if not isinstance(entries, list) or not all(isinstance(entry, dict) for entry in entries):
        raise faults.MalformedResponse(f"the answer has no {name}")
    return entries


def refusal(status: int, headers: Mapping[str, str], raw: bytes) -> faults.ClusterFault:
    """The fault that an HTTP status and its body mean."""
    try:
        status_object = parsed(raw)
    except faults.MalformedResponse:
        status_object = {}
    # An API server's 404 is a Status, or a list of the paths that it has, or this plain text.
    from_server = "paths" in status_object or raw.startswith(_PLAIN_404)
    if status_object.get("kind") != "Status":
        status_object = {}
    if status == 404 and not status_object and not from_server:
        return faults.MalformedResponse(
            "404 of something that is no Kubernetes API server", status=status
        )
    return of_status({**status_object, "code": status}, retry_after=headers.get("Retry-After"))


def of_status(
    status_object: dict[str, Any], *, retry_after: str | None = None
) -> faults.ClusterFault:
    """The fault of a Status object, of an answer or of a watch's ERROR event."""
    status = int(_number(status_object.get("code")))
    raw_details = status_object.get("details")
    details: dict[str, Any] = raw_details if isinstance(raw_details, dict) else {}
    message, causes = (
        connection_errors.printable_message(status_object.get("message")),
        _causes(details),
    )
    if status == 404:
        absent = faults.NotFound if details.get("name") else faults.KindAbsent
        return absent(message, status=status)
    if status == 409:
        return _conflict(status_object.get("reason"), message, causes)
    wait = _number(retry_after) or _number(details.get("retryAfterSeconds"))
    if status == 429 or (status == 503 and wait):
        return faults.TooBusy(message, status=status, retry_after=wait)
    if status == 500 and "not declared in schema" in message:
        # Server-side apply of a field that the CRD has not.
        return faults.Rejected(message, status=status, causes=causes)
    if status in _STATUS:
        return _STATUS[status](message, status=status, causes=causes)
    if 300 <= status < 400:
        return faults.MalformedResponse(
            "the answer is a redirect, which is not followed", status=status
        )
    kind = faults.ServerFault if status >= 500 else faults.MalformedResponse
    return kind(message or f"HTTP status {status}", status=status, causes=causes)


def _conflict(
    reason: object, message: str, causes: tuple[faults.Cause, ...]
) -> faults.ClusterFault:
    if reason == "AlreadyExists":
        return faults.AlreadyExists(message, status=409)
    if any(cause.reason == "FieldManagerConflict" for cause in causes):
        return faults.FieldConflict(message, status=409, causes=causes)
    return faults.StaleVersion(message, status=409, causes=causes)


def _causes(details: dict[str, Any]) -> tuple[faults.Cause, ...]:
    raw_causes = details.get("causes")
    return tuple(
        faults.Cause(
            connection_errors.printable_message(cause.get("field")),
            connection_errors.printable_message(cause.get("message")),
            connection_errors.printable_message(cause.get("reason")),
        )
        for cause in (raw_causes if isinstance(raw_causes, list) else [])[:100]
        if isinstance(cause, dict)
    )


def _number(text: object) -> float:
    """Seconds or bytes of a header or a Status; 0 for what is no such number (also for a date)."""
    word = str(text).strip()
    return float(word) if word.isascii() and word.isdigit() and len(word) < 16 else 0
