"""Requests to the REST API and their answers, recorded once and compared with those of today.

    python -m pytest tests/edges/test_api_recorded.py --record-answers

writes `recorded_answers.json.gz` anew; with RECORDED_ONLY=<pattern> only paths that match it are compared. The requests are made from the OpenAPI description: each valid request of
`tests/security/requests.py`, each query parameter and each field of a body with odd values.
"""

import gzip
import itertools
import json
import os
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.parse import urlencode

from django.db import transaction

from tests.claims.access import answers
from tests.edges import api as apis
from tests.security import requests
from tests.security.everything import KUBECONFIG, Everything

FILE = Path(__file__).with_name("recorded_answers.json.gz")
ODD_VALUES: list[Any] = [None, "", "x", "10.0.0.1/8", -1, True, [], {"x": 1}, "\u0000"]
ODD_PARAMETERS = ("", "x", "1", "10.0.0.1/8", "2999-01-01T00:00:00Z", "\u0000", "prod")
_KUBECONFIG = (
    '"<kubeconfig>"'  # in the file, because KUBECONFIG has a new certificate in each process
)
_VOLATILE = (
    (re.compile(r"\d{4}-\d\d-\d\d[T ][\d:.]+(?:Z|\+00:00)?"), "<time>"),
    (re.compile(r"\b\d{4}-\d\d-\d\d\b"), "<date>"),  # in sentences: `valid until 2027-11-27`
    (re.compile(r"[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}"), "<uuid>"),
    (re.compile(r"cursor=[\w%-]+"), "cursor=<cursor>"),
    (re.compile(r"\b[0-9a-f]{32,64}\b"), "<digest>"),
    (re.compile(r"(?<!\d)3\d{6}(?!\d)"), "<id>"),
    (re.compile(r"(?<= hostmaster\.example\.org\. )\d+"), "<serial>"),  # of a zone: the time
    (re.compile(r"\btool-\d+\b"), "<user>"),  # numbered by the process (tests/edges/api.py)
)
_VOLATILE_KEYS = re.compile(
    r"(?:^|_)(?:id|ids|uid|secret|key|digest|token|age|seconds_ago)$|^request_id$|^sequence$|^today$"
)


def requests_of_today(world: Everything) -> Iterator[dict[str, Any]]:
    """Every request that is recorded: method, path with its query, body; placeholders for ids."""
    document = apis.document()
    for address in answers.addresses("api/v1/"):
        operations = document["paths"].get(address.route, {})
        for verb in ("get", "post", "put", "patch", "delete"):
            if (operation := operations.get(verb)) is None or address.route.endswith("/schema/"):
                continue
            key = f"{verb.upper()} {address.route.removeprefix('/api/v1')}"
            for case in (
                requests.API.get(key, requests.Case()),
                requests.API.get(f"{key} (register)"),
            ):
                if case is None:
                    continue
                path = address.filled(
                    *(f"{{{case.use.get(name, name)}}}" for name in address.names)
                )
                yield from _requests(document, verb.upper(), path, case, operation)


def _requests(
    document: Any, method: str, path: str, case: requests.Case, operation: Any
) -> Iterator[dict[str, Any]]:
    yield {"method": method, "path": path + case.query, "body": case.body}
    if method == "GET":
        names = [item["name"] for item in operation.get("parameters", []) if item["in"] == "query"]
        for name, value in itertools.product([*names, "nope"], ODD_PARAMETERS):
            yield {"method": method, "path": path, "parameters": [[name, value]]}
        for name in names[:2]:
            yield {
                "method": method,
                "path": path,
                "parameters": [[name, "1"], [name, "1"], ["nope", "x"]],
            }
        return
    if method == "DELETE":
        return
    content = operation.get("requestBody", {}).get("content", {}).get("application/json", {})
    properties = apis.properties(document, content.get("schema", {}))
    base = case.body if isinstance(case.body, dict) else {}
    for body in ({}, [], "x", None, 1, {"nope": 1}, {**base, "nope": 1}):
        yield {"method": method, "path": path, "body": body}
    for name, value in itertools.product(properties, ODD_VALUES):
        yield {"method": method, "path": path, "body": {**base, name: value}}
        parts = apis.properties(document, properties[name])
        nested = base.get(name)
        for part in parts if isinstance(nested, dict) else ():
            yield {"method": method, "path": path, "body": {**base, name: {**nested, part: value}}}


def answer(api: apis.Api, world: Everything, request: dict[str, Any]) -> dict[str, Any]:
    """Status and content of an answer, without what differs each time; the request's changes are undone."""
    path = request["path"].removeprefix("/api/v1/").format(**{**world.values, "id": "{id}"})
    body = re.sub(
        r'"{(\w+)}"', lambda name: str(world.values[name[1]]), json.dumps(request.get("body"))
    )
    with transaction.atomic():
        if "parameters" in request:
            query = urlencode([tuple(pair) for pair in request["parameters"]])
            result = api("GET", f"{path}?{query}")
        elif request.get("body") is None and request["method"] in {"GET", "DELETE"}:
            result = api(request["method"], path)
        else:
            result = api(request["method"], path, body)
        raw = b"".join(result.streaming_content) if result.streaming else result.content
        transaction.set_rollback(True)
    kind = result.headers.get("Content-Type", "") if raw else ""
    content = (
        _plain(json.loads(raw)) if "json" in kind and raw else _text(raw.decode(errors="replace"))
    )
    if "history/" in request["path"] and isinstance(content, dict) and "next" in content:
        content["next"] = (
            "<link>"  # whether the search goes on depends on how far it came in its time
        )
    return {"status": result.status_code, "type": kind, "content": content}


def _plain(value: Any, key: str = "") -> Any:
    if isinstance(value, dict):
        return {name: _plain(item, name) for name, item in value.items()}
    if isinstance(value, list):
        return [_plain(item, key) for item in value]
    if _VOLATILE_KEYS.search(key) and value not in (None, ""):
        return f"<{type(value).__name__}>"
    if isinstance(value, int) and value >= 3_000_000:  # ids of the owner (two_worlds.py)
        return "<int>"
    return _text(value) if isinstance(value, str) else value


def _text(text: str) -> str:
    for pattern, name in _VOLATILE:
        text = pattern.sub(name, text)
    return text


def read() -> list[dict[str, Any]]:
    with gzip.open(FILE, "rt") as file:
        text = file.read().replace(_KUBECONFIG, json.dumps(KUBECONFIG))
    recorded: list[dict[str, Any]] = json.loads(text)
    only = re.compile(os.environ.get("RECORDED_ONLY", ""))
    return [request for request in recorded if only.search(request["path"])]


def write(recorded: list[dict[str, Any]]) -> None:
    text = json.dumps(recorded, indent=0, ensure_ascii=False)
    text = text.replace(json.dumps(KUBECONFIG), _KUBECONFIG)
    FILE.write_bytes(gzip.compress(text.encode(), mtime=0))
