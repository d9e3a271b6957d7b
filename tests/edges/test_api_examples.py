"""What *Try it out* of the API page sends as it is: the server refuses no field and no type of it."""

import json
from collections.abc import Iterator
from typing import Any

import pytest
import yaml
from django.db import connection, transaction

from tests import commands
from tests.claims.access import answers
from tests.edges.api import resolve
from tests.security import everything, requests

REFUSED = {"unknown_field", "wrong_type", "required", "conflicting_fields"}
FORMATS = {
    "date-time": "2026-01-01T00:00:00.000Z", "date": "2026-01-01", "uuid": "3fa85f64-5717-4562-b3fc-2c963f66afa6",
    "uri": "http://example.com", "email": "user@example.com", "ipv4": "198.51.100.42",
    "ipv6": "2001:0db8:5b96:0000:0000:426f:8e17:642a", "hostname": "example.com",
}  # fmt: skip


@pytest.fixture(scope="module")
def document() -> dict[str, Any]:
    result: dict[str, Any] = yaml.safe_load(commands.output("spectacular"))
    return result


def sample(document: dict[str, Any], schema: dict[str, Any]) -> Any:
    """Return what Swagger UI makes of a schema without an example of its own."""
    schema = resolve(document, schema)
    for value in [schema[word] for word in ("example", "default") if word in schema]:
        return value
    for value in schema.get("enum", []):
        return value
    for word in ("oneOf", "anyOf"):
        if word in schema:
            return sample(document, schema[word][0])
    if "allOf" in schema:
        parts = [sample(document, part) for part in schema["allOf"]]
        merged = [part for part in parts if isinstance(part, dict)]
        return {key: value for part in merged for key, value in part.items()} or parts[0]
    kind = schema.get("type", "object" if "properties" in schema else "string")
    kind = kind if isinstance(kind, str) else kind[0]
    if kind == "object":
        return _object(document, schema)
    if kind == "array":
        return [sample(document, schema["items"])]
    simple = {"integer": 0, "number": 0, "boolean": True}
    return simple.get(kind, FORMATS.get(schema.get("format", ""), "string"))


def _object(document: dict[str, Any], schema: dict[str, Any]) -> dict[str, Any]:
    shown = {
        name: sample(document, part)
        for name, part in schema.get("properties", {}).items()
        if not resolve(document, part).get("readOnly")
    }
    more = schema.get("additionalProperties")
    if more:
        value = sample(document, more) if isinstance(more, dict) else {}
        shown |= {f"additionalProp{number}": value for number in (1, 2, 3)}
    return shown


def bodies(document: dict[str, Any]) -> Iterator[tuple[str, str, Any]]:
    """Yield (method, path, body) of what the page sends for each operation that takes JSON."""
    for path, verbs in document["paths"].items():
        for verb in {"post", "put", "patch"} & set(verbs):
            content = verbs[verb].get("requestBody", {}).get("content", {}).get("application/json")
            if content is not None:
                examples = [example["value"] for example in content.get("examples", {}).values()]
                for body in examples or [sample(document, content["schema"])]:
                    yield verb.upper(), path, body


@pytest.mark.exhaustive
def test_no_field_and_no_type_of_an_example_is_refused(document: dict[str, Any]) -> None:
    created = everything.create()
    client = everything.token(created.user("superuser"))
    addresses = {address.route: address for address in answers.addresses("api/v1/")}
    refused = []
    for method, path, body in bodies(document):
        url, _case = requests.request(created, addresses[path], method)
        with transaction.atomic():
            answer = client.generic(method, url, json.dumps(body), "application/json")
            transaction.set_rollback(True)
        connection.needs_rollback = False
        problems = answer.json().get("errors", []) if answer.status_code == 400 else []
        if answer.status_code == 500 or {problem["code"] for problem in problems} & REFUSED:
            refused.append((method, path, body, problems or answer.text))
    assert not refused, "\n".join(map(str, refused))
