"""Responses of an API server: a JSON object or a fault, and the schema of a custom resource in them.

Responses are untrusted: they may be truncated, large, compressed or no JSON.
"""

import json
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any

import urllib3

from pools.core.kubernetes.resources import Resource
from pools.platform.outbound import faults

LARGEST = 32 * 1024 * 1024  # bytes of one response, or of one line of a watch
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


def read_body(response: urllib3.BaseHTTPResponse, *, seconds: float) -> bytes:
    """Return the whole body, read within `seconds`.

    Raises MalformedResponse (too large, compressed), Unreachable (too slow), and errors of urllib3.
    """
    limit = LARGEST if response.status < 300 else _LARGEST_REFUSAL
    deadline = time.monotonic() + seconds
    check_encoding(response)
    if int(_number(response.headers.get("Content-Length"))) > limit:
        response.close()
        raise _too_large(limit)
    chunks, size = [], 0
    # read1 returns the available bytes, so that a server that sends single bytes meets the deadline.
    while chunk := response.read1(_CHUNK):
        chunks.append(chunk)
        size += len(chunk)
        if size > limit or time.monotonic() > deadline:
            response.close()
            raise (
                _too_large(limit)
                if size > limit
                else faults.Unreachable("the response is too slow")
            )
    return b"".join(chunks)


def read_lines(response: urllib3.BaseHTTPResponse) -> Iterator[bytes]:
    """Yield complete lines as they arrive; an incomplete last line is dropped.

    Raises MalformedResponse (a line is too large), and errors of urllib3.
    """
    parts: list[bytes] = []
    size = 0
    while chunk := response.read1(_CHUNK):
        *complete, incomplete = chunk.split(b"\n")
        for line in complete:
            yield b"".join([*parts, line])
            parts, size = [], 0
        parts.append(incomplete)
        size += len(incomplete)
        if size > LARGEST:
            raise _too_large(LARGEST)


def check_encoding(response: urllib3.BaseHTTPResponse) -> None:
    """Raise MalformedResponse for a compressed response, which may be a decompression bomb."""
    if response.headers.get("Content-Encoding", "identity").lower() != "identity":
        response.close()
        raise faults.MalformedResponse("the response is compressed, which was not requested")


def _too_large(limit: int) -> faults.MalformedResponse:
    return faults.MalformedResponse(f"the response is larger than {limit // 1024 // 1024} MiB")


def parse_object(raw: bytes) -> dict[str, Any]:
    """Return the object of a JSON string. Raises MalformedResponse."""
    try:
        value = json.loads(raw)
    except (ValueError, RecursionError):
        content = "an HTML page" if raw[:64].lstrip()[:1] == b"<" else "not valid JSON"
        raise faults.MalformedResponse(
            f"the response is {content}, not one of a Kubernetes API server"
        ) from None
    if not isinstance(value, dict):
        raise faults.MalformedResponse("the response is not a JSON object")
    return value


def get_object(answer: dict[str, Any], name: str) -> dict[str, Any]:
    """Return an object inside of a response. Raises MalformedResponse."""
    child = answer.get(name)
    if not isinstance(child, dict):
        raise faults.MalformedResponse(f"the response has no {name}")
    return child


def get_string(answer: dict[str, Any], name: str) -> str:
    """Return a non-empty string inside of a response. Raises MalformedResponse."""
    content = answer.get(name)
    if not isinstance(content, str) or not content:
        raise faults.MalformedResponse(f"the response has no {name}")
    return content


def get_objects(answer: dict[str, Any], name: str) -> list[dict[str, Any]]:
    """Return a list of objects inside of a response; null is empty, as Go writes it. Raises MalformedResponse."""
    entries = answer.get(name)
    if entries is None and name in answer:
        return []
    if not isinstance(entries, list) or not all(isinstance(entry, dict) for entry in entries):
        raise faults.MalformedResponse(f"the response has no {name}")
    return entries


def fault_of_response(
    status: int, headers: Mapping[str, str], raw: bytes, secrets: Iterable[str] = ()
) -> faults.ClusterFault:
    """Return the fault of an HTTP status and body, without the secrets that the request had."""
    try:
        status_object = parse_object(raw)
    except faults.MalformedResponse:
        status_object = {}
    # An API server's 404 is a Status, a list of its paths, or this plain text.
    from_server = "paths" in status_object or raw.startswith(_PLAIN_404)
    if status_object.get("kind") != "Status":
        status_object = {}
    if status == 404 and not status_object and not from_server:
        return faults.MalformedResponse(
            "404 from a server that is not a Kubernetes API server", status=status
        )
    return fault_of_status(
        {**status_object, "code": status}, secrets, retry_after=headers.get("Retry-After")
    )


def fault_of_status(
    status_object: dict[str, Any], secrets: Iterable[str] = (), *, retry_after: str | None = None
) -> faults.ClusterFault:
    """Return the fault of a Status object, of a response or of an ERROR event of a watch."""
    status = int(_number(status_object.get("code")))
    raw_details = status_object.get("details")
    details: dict[str, Any] = raw_details if isinstance(raw_details, dict) else {}
    message, causes = (
        faults.printable_message(status_object.get("message"), secrets),
        _causes(details, secrets),
    )
    if status == 404:
        absent = faults.NotFound if details.get("name") else faults.KindNotServed
        return absent(message, status=status)
    if status == 409:
        return _conflict(status_object.get("reason"), message, causes)
    wait = _number(retry_after) or _number(details.get("retryAfterSeconds"))
    if status == 429 or (status == 503 and wait):
        return faults.TooBusy(message, status=status, retry_after=wait)
    if status == 500 and "not declared in schema" in message:
        # Server-side apply of a field that the CRD does not have.
        return faults.Rejected(message, status=status, causes=causes)
    if status in _STATUS:
        return _STATUS[status](message, status=status, causes=causes)
    if 300 <= status < 400:
        return faults.MalformedResponse(
            "the response is a redirect, which is not followed", status=status
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


def _causes(details: dict[str, Any], secrets: Iterable[str]) -> tuple[faults.Cause, ...]:
    raw_causes = details.get("causes")
    return tuple(
        faults.Cause(
            faults.printable_message(cause.get("field"), secrets),
            faults.printable_message(cause.get("message"), secrets),
            faults.printable_message(cause.get("reason"), secrets),
        )
        for cause in (raw_causes if isinstance(raw_causes, list) else [])[:100]
        if isinstance(cause, dict)
    )


def _number(text: object) -> float:
    """Return the number in a header or a Status; 0 for any other value, such as a date."""
    word = str(text).strip()
    return float(word) if word.isascii() and word.isdigit() and len(word) < 16 else 0


# /openapi/v2 has all kinds in one response and comes last; /openapi/v3 exists since Kubernetes 1.24.
Schema = dict[str, Any]
_DEFINITIONS = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"


def schema_endpoints(
    resource: Resource,
) -> list[tuple[str, Callable[[Schema, Resource], Schema | None]]]:
    """Return the URL paths in order of preference, each with a function that extracts the schema."""
    return [
        (f"{_DEFINITIONS}/{resource.plural}.{resource.group}", _schema_of_definition),
        (f"/openapi/v3/apis/{resource.group}/{resource.version}", _schema_of_openapi3),
        ("/openapi/v2", _schema_of_openapi2),
    ]


def _schema_of_definition(answer: Schema, resource: Resource) -> Schema | None:
    for version in _list(_dict(answer.get("spec")).get("versions")):
        if version.get("name") == resource.version:
            return _dict(_dict(version.get("schema")).get("openAPIV3Schema")) or None
    return None


def _schema_of_openapi3(answer: Schema, resource: Resource) -> Schema | None:
    return _find_definition(_dict(_dict(answer.get("components")).get("schemas")), resource)


def _schema_of_openapi2(answer: Schema, resource: Resource) -> Schema | None:
    return _find_definition(_dict(answer.get("definitions")), resource)


def _find_definition(definitions: Schema, resource: Resource) -> Schema | None:
    group_version_kind = {
        "group": resource.group,
        "version": resource.version,
        "kind": resource.kind,
    }
    for definition in definitions.values():
        if group_version_kind in _list(_dict(definition).get("x-kubernetes-group-version-kind")):
            return _dict(definition)
    return None


def _dict(value: object) -> Schema:
    return value if isinstance(value, dict) else {}


def _list(value: object) -> list[Schema]:
    return [entry for entry in value if isinstance(entry, dict)] if isinstance(value, list) else []
