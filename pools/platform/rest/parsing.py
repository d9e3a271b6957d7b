"""The body of a request, read so strictly that it means one thing.

No compression, no other charset than UTF-8, no duplicate or unknown key, nothing above 2 MiB:
facts about odd input are in pools/platform/documents.py and pools/core/object_reader.py.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Collection
from email.message import Message
from functools import lru_cache
from typing import Any

from django.http import HttpRequest
from rest_framework import exceptions, parsers
from rest_framework.request import Request

from pools.core import errors, holders, object_reader
from pools.platform import documents

JSON = "application/json"


class LengthRequired(exceptions.APIException):
    status_code = 411
    default_code = "length_required"
    default_detail = "The length of the body must be known."


class TooLarge(exceptions.APIException):
    status_code = 413
    default_code = "too_large"
    default_detail = f"A body has at most {documents.LARGEST} bytes."


class JSONParser(parsers.BaseParser):
    """Names the media type in the OpenAPI description; `fields` does the reading."""

    media_type = JSON

    def parse(self, stream: Any, media_type: Any = None, parser_context: Any = None) -> Any:
        return documents.load_json(stream.read())


def body(request: Request, *, limit: int = documents.LARGEST) -> bytes:
    """The bytes of the body; TooLarge before they are read."""
    plain: HttpRequest = request._request
    if "chunked" in plain.META.get("HTTP_TRANSFER_ENCODING", "").lower():
        _read_chunks(plain, limit)
    elif (length := int(plain.META.get("CONTENT_LENGTH") or 0)) > limit:
        raise _too_large(limit)
    elif length > documents.LARGEST and not hasattr(plain, "_body"):
        plain._body = plain.read()  # HttpRequest.body has a limit of its own
    return plain.body


def _read_chunks(plain: HttpRequest, limit: int) -> None:
    # Django reads as many bytes as Content-Length says, and so none of these.
    if hasattr(plain, "_body"):
        return
    if not plain.META.get("wsgi.input_terminated"):
        raise LengthRequired
    chunks = plain.META["wsgi.input"].read(limit + 1)
    if len(chunks) > limit:
        raise _too_large(limit)
    plain._body = chunks  # where HttpRequest.body keeps it


def _too_large(limit: int) -> TooLarge:
    return TooLarge(f"A body has at most {limit} bytes.")


def media_type(request: Request) -> str:
    """The media type of the body, in lower case; 415 for a charset or encoding not read here."""
    content_type = request.META.get("CONTENT_TYPE", "")
    plain, found = _media_type(content_type)
    encoded = request.META.get("HTTP_CONTENT_ENCODING", "identity").lower() != "identity"
    if encoded or not plain:
        raise exceptions.UnsupportedMediaType(content_type, "Send UTF-8 without compression.")
    return found


@lru_cache(maxsize=64)  # clients write it in a few ways
def _media_type(content_type: str) -> tuple[bool, str]:
    """(whether its charset is UTF-8, the type)."""
    header = Message()
    header["Content-Type"] = content_type
    charset = header.get_param("charset", "utf-8")
    plain = isinstance(charset, str) and charset.lower() in {"utf-8", "utf8"}
    return plain, header.get_content_type() if content_type else ""


def document(request: Request, *, limit: int = documents.LARGEST) -> Any:
    """The JSON document of the body, {} for an empty body; 411, 413, 415, InvalidInput.

    Not `request.data`: that ends the body of a chunked request at Content-Length.
    """
    text = body(request, limit=limit)
    if (text or request.META.get("CONTENT_TYPE")) and media_type(request) != JSON:
        raise exceptions.UnsupportedMediaType(
            request.META.get("CONTENT_TYPE", ""), f"Send the body as {JSON}."
        )
    return documents.load_json(text, limit=limit) if text else {}


def fields(
    request: Request, *known: str, optional: bool = False, limit: int = documents.LARGEST
) -> object_reader.Fields:
    """The JSON object of the body; its unknown fields are reported, `report.raise_any` ends it.

    A body that says nothing, none or `{}`, is object_expected: rule `empty-body-is-refused`, unless it
    is `optional`.
    """
    data = document(request, limit=limit)
    if not data and not optional:
        message = f"an object with at least one of {', '.join(known)} is expected"
        raise errors.InvalidInput.for_field("", "object_expected", message)
    found = object_reader.Fields(data, "", object_reader.ProblemReport())
    found.only(*known)
    return found


def changes(request: Request, *known: str, nullable: Collection[str] = ()) -> object_reader.Fields:
    """As `fields`, of a PATCH: null is a value for the `nullable` fields only, and wrong_type for others,
    which is told once: such a field is then like one that is not there."""
    found = fields(request, *known)
    nulls = {name for name in known if found.data.get(name, "") is None} - {*nullable}
    for name in sorted(nulls):
        message = "null is no value of this field; leave it out to keep what is there"
        found.report.add(name, "wrong_type", message)
    kept = {name: value for name, value in found.data.items() if name not in nulls}
    return dataclasses.replace(found, data=kept)


def integer(value: object, at: str, *, least: int, most: int) -> int:
    """A whole number between two; wrong_type, out_of_range."""
    if not isinstance(value, int) or isinstance(value, bool):
        raise errors.InvalidInput.for_field(at, "wrong_type", "must be a whole number", value)
    if not least <= value <= most:
        raise errors.InvalidInput.for_field(at, "out_of_range", f"must be {least} to {most}", value)
    return value


def name(value: object, at: str) -> str:
    """The name of a cluster or a pool."""
    return holders.parse_name(value, field=at)


def namespace(value: object, at: str) -> str:
    """The name of a namespace; wrong_type, k8s_name."""
    return holders.parse_name(value, field=at, kind="label")


def text(value: object, at: str) -> str:
    """Any text; wrong_type."""
    if not isinstance(value, str):
        raise errors.InvalidInput.for_field(at, "wrong_type", "a text is expected", value)
    return value


def description(value: object, at: str) -> str:
    """One line about a thing, or nothing."""
    return holders.parse_reason(value, field=at, required=False)


def reason(value: object, at: str) -> str:
    """Why somebody does something."""
    return holders.parse_reason(value, field=at)


def choice(value: object, at: str, allowed: tuple[str, ...]) -> str:
    """One of some words; wrong_type, invalid_choice."""
    if not isinstance(value, str):
        raise errors.InvalidInput.for_field(at, "wrong_type", "must be a text", value)
    if value not in allowed:
        message = f"must be one of {', '.join(allowed)}"
        raise errors.InvalidInput.for_field(at, "invalid_choice", message, value)
    return value
