"""Request bodies, parsed so strictly that each has only one meaning, and answers as JSON.

No compression, no charset but UTF-8, no duplicate or unknown keys, nothing above 2 MiB. The details are
in pools/platform/documents.py and pools/core/object_reader.py.
"""

from datetime import datetime
from email.message import Message
from functools import lru_cache
from typing import Any

import orjson
from django.http import HttpRequest
from rest_framework import exceptions, parsers, renderers
from rest_framework.request import Request

from pools.core import errors, holders
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
    """Declares the media type for the OpenAPI description; `document` reads the body."""

    media_type = JSON

    def parse(self, stream: Any, media_type: Any = None, parser_context: Any = None) -> Any:
        return documents.load_json(stream.read())


class JSONRenderer(renderers.BaseRenderer):
    """Answers by orjson: DRF's own renderer takes four times as long for a page of rows."""

    media_type = "application/json"
    format = "json"
    charset = None

    def render(
        self, data: Any, accepted_media_type: str | None = None, renderer_context: Any = None
    ) -> bytes:
        return b"" if data is None else orjson.dumps(data)


def body(request: Request, *, limit: int = documents.LARGEST) -> bytes:
    """Return the bytes of the body. Raises TooLarge before it reads them."""
    plain: HttpRequest = request._request
    if "chunked" in plain.META.get("HTTP_TRANSFER_ENCODING", "").lower():
        _read_chunks(plain, limit)
    elif (length := int(plain.META.get("CONTENT_LENGTH") or 0)) > limit:
        raise _too_large(limit)
    elif length > documents.LARGEST and not hasattr(plain, "_body"):
        plain._body = plain.read()  # HttpRequest.body has a limit of its own
    return plain.body


def _read_chunks(plain: HttpRequest, limit: int) -> None:
    # Django reads Content-Length bytes, and thus none of a chunked body.
    if hasattr(plain, "_body"):
        return
    if not plain.META.get("wsgi.input_terminated"):
        raise LengthRequired
    chunks = plain.META["wsgi.input"].read(limit + 1)
    if len(chunks) > limit:
        raise _too_large(limit)
    plain._body = chunks  # where HttpRequest.body caches the body


def _too_large(limit: int) -> TooLarge:
    return TooLarge(f"A body has at most {limit} bytes.")


def media_type(request: HttpRequest | Request) -> str:
    """Return the media type of the body in lower case; 415 for another charset or an encoding."""
    content_type = request.META.get("CONTENT_TYPE", "")
    is_utf8, type_name = _media_type(content_type)
    encoded = request.META.get("HTTP_CONTENT_ENCODING", "identity").lower() != "identity"
    if encoded or not is_utf8:
        raise exceptions.UnsupportedMediaType(content_type, "Send UTF-8 without compression.")
    return type_name


@lru_cache(maxsize=64)  # clients use few different headers
def _media_type(content_type: str) -> tuple[bool, str]:
    """Return (True if the charset is UTF-8, media type)."""
    header = Message()
    header["Content-Type"] = content_type
    charset = header.get_param("charset", "utf-8")
    is_utf8 = isinstance(charset, str) and charset.lower() in {"utf-8", "utf8"}
    return is_utf8, header.get_content_type() if content_type else ""


def document(request: Request, *, limit: int = documents.LARGEST) -> Any:
    """The JSON document of the body, {} for an empty body; 411, 413, 415, InvalidInput.

    Not `request.data`: that ends the body of a chunked request at Content-Length.
    """
    content_type = request.META.get("CONTENT_TYPE", "")
    # First, because a form that was read as such has no body any more.
    is_json = media_type(request) == JSON if content_type else True
    text = body(request, limit=limit) if is_json else b""
    if not is_json or (text and not content_type):
        raise exceptions.UnsupportedMediaType(content_type, f"Send the body as {JSON}.")
    return documents.load_json(text, limit=limit) if text else {}


def integer(value: object, field: str, *, least: int, most: int) -> int:
    """Parse an integer between two bounds. Raises InvalidInput wrong_type, out_of_range."""
    if not isinstance(value, int) or isinstance(value, bool):
        raise errors.InvalidInput.for_field(field, "wrong_type", "must be a whole number", value)
    if not least <= value <= most:
        raise errors.InvalidInput.for_field(
            field, "out_of_range", f"must be {least} to {most}", value
        )
    return value


def text(value: object, field: str) -> str:
    """Return a string. Raises InvalidInput wrong_type."""
    if not isinstance(value, str):
        raise errors.InvalidInput.for_field(field, "wrong_type", "a text is expected", value)
    return value


def timestamp(value: object, field: str) -> datetime:
    """Parse an RFC 3339 timestamp with a time zone. Raises InvalidInput wrong_type, time."""
    return holders.parse_timestamp(text(value, field), field)


def choice(value: object, field: str, allowed: tuple[str, ...]) -> str:
    """Parse one of the allowed strings. Raises InvalidInput wrong_type, invalid_choice."""
    if not isinstance(value, str):
        raise errors.InvalidInput.for_field(field, "wrong_type", "must be a text", value)
    if value not in allowed:
        message = f"must be one of {', '.join(allowed)}"
        raise errors.InvalidInput.for_field(field, "invalid_choice", message, value)
    return value
