"""Every address of the site, and answers without what differs between two of them anyway."""

import difflib
import io
import re
import zipfile
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from django.db import connection, transaction
from django.test import Client
from django.urls import URLPattern, URLResolver, get_resolver

_PARAMETER = re.compile(r"<(?:(\w+):)?(\w+)>")
BRACES = re.compile(r"{\w*}")
_NAMED_GROUP = re.compile(r"\(\?P<(\w+)>[^()]*\)")
# Request ids, tokens against forged requests, times, and what a rolled-back change used up.
_PASSING = (
    re.compile(r'"request_id": ?"[^"]*"'),
    re.compile(r'name="csrfmiddlewaretoken" value="[^"]*"'),
    re.compile(r'nonce="[^"]*"'),
    re.compile(r"<time .*?</time>", re.DOTALL),
    re.compile(r"\d{4}-\d\d-\d\d[T ][\d:.]+(?:Z|\+00:00)?"),
    re.compile(r"(?<!\d)3\d{6}(?!\d)"),  # ids of the owner (two_worlds.py)
    re.compile(r"in \d+\.\d\d seconds"),  # of unfold's palette
    re.compile(r"x-csrftoken.*", re.IGNORECASE),
)


@dataclass(frozen=True)
class Address:
    """`path` with `{}` for each parameter; `kinds` their converters, `names` what they are called."""

    path: str
    kinds: tuple[str, ...]
    names: tuple[str, ...]
    view: Any

    @property
    def route(self) -> str:
        """The path with the parameters' names, as docs/reference/permissions.md writes it."""
        return self.filled(*(f"{{{name}}}" for name in self.names))

    def filled(self, *values: object) -> str:
        return self.path.format(*values)


def addresses(prefix: str = "") -> list[Address]:
    """All that the resolver knows below a prefix, in its order."""
    by_path = {address.path: address for address in _walk(get_resolver(), "/", (), ())}
    return [address for path, address in by_path.items() if path.startswith(f"/{prefix}")]


def _walk(
    resolver: URLResolver, before: str, kinds: tuple[str, ...], names: tuple[str, ...]
) -> Iterator[Address]:
    for url_pattern in resolver.url_patterns:
        route = _NAMED_GROUP.sub(r"<word:\1>", str(url_pattern.pattern).removeprefix("^"))
        route = route.removesuffix("$").removesuffix(r"\Z")
        more = kinds + tuple(kind or "str" for kind, _ in _PARAMETER.findall(route))
        more_names = names + tuple(name for _, name in _PARAMETER.findall(route))
        path = before + _PARAMETER.sub("{}", route)
        if isinstance(url_pattern, URLPattern):
            yield Address(path, more, more_names, url_pattern.callback)
        else:
            yield from _walk(url_pattern, path, more, more_names)


@dataclass(frozen=True)
class Answer:
    """`text` begins with the Location; `headers` are those that say something of what was found.

    `statements` is the work that the answer took, without what only the first request of its kind asks.
    """

    status: int
    text: str
    headers: dict[str, str]
    statements: int


# Other with every answer, or with the length of what was asked for.
_PASSING_HEADERS = {"X-Request-Id", "Content-Length", "Expires", "Location", "ETag"}


def answer(client: Client, method: str, path: str, body: str = "{}", kind: str = "application/json") -> Answer:  # fmt: skip
    """What a request is answered, whose changes are undone."""
    with transaction.atomic():
        call = getattr(client, method.lower())
        work = _Work()
        with connection.execute_wrapper(work):
            response = call(path) if method == "GET" else call(path, body, content_type=kind)
            parts = response.streaming_content if response.streaming else [response.content]
            text = _text(b"".join(parts))
        transaction.set_rollback(True)
    client.cookies.pop("messages", None)
    passing = _PASSING_HEADERS
    headers = {name: value for name, value in response.headers.items() if name not in passing}
    location = response.headers.get("Location", "")
    return Answer(response.status_code, location + text, headers, work.statements)


class _Work:
    """Counts statements, but those whose answers Django keeps for the process."""

    def __init__(self) -> None:
        self.statements = 0

    def __call__(self, execute: Any, sql: str, *rest: Any) -> Any:
        self.statements += '"django_content_type"' not in sql
        return execute(sql, *rest)


def ask(client: Client, method: str, path: str, body: str = "{}", kind: str = "application/json") -> tuple[int, str]:  # fmt: skip
    """(status, text with its Location) of a request whose changes are undone."""
    result = answer(client, method, path, body, kind)
    return result.status, result.text


def _text(content: bytes) -> str:
    """A spreadsheet is the texts of its parts."""
    if not content.startswith(b"PK"):
        return content.decode()
    with zipfile.ZipFile(io.BytesIO(content)) as parts:
        return "\n".join(parts.read(name).decode() for name in sorted(parts.namelist()))


def lasting(text: str) -> str:
    """Without what is another with every answer."""
    for pattern in _PASSING:
        text = pattern.sub("", text)
    return text


def difference(actual: tuple[int, str], other: tuple[int, str]) -> list[str]:
    """The lines in which two answers differ; none for the same."""
    if actual == other:
        return []
    first, second = ([str(status), *text.splitlines()] for status, text in (actual, other))
    lines = difflib.unified_diff(first, second, lineterm="", n=0)
    return [line[:300] for line in lines][2:12]
