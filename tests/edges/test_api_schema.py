"""OpenAPI is made from the code without a warning, and every endpoint answers what it says."""

from collections.abc import Iterator
from typing import Any

import jsonschema
import pytest
import yaml
from django.db import transaction

from pools.models import SyncRun, Trigger
from tests import commands
from tests.claims.access import answers
from tests.edges import api as apis
from tests.edges.api import resolve
from tests.security import everything, requests


@pytest.fixture(scope="module")
def document() -> dict[str, Any]:
    text = commands.output("spectacular", "--fail-on-warn", "--validate")
    result: dict[str, Any] = yaml.safe_load(text)
    return result


def test_every_answer_below_the_api_has_a_problem(document: dict[str, Any]) -> None:
    for path, verbs in document["paths"].items():
        for verb, operation in verbs.items():
            if path.endswith("/schema/"):
                continue
            response = resolve(document, operation["responses"]["401"])
            assert "application/problem+json" in response["content"], (path, verb)


@pytest.mark.django_db
def test_every_endpoint_answers_what_it_says() -> None:
    world, api = everything.create(), apis.Api()
    SyncRun.objects.update(trigger=Trigger.CHANGE)
    components = {"components": _strict(apis.document()["components"])}
    differences = []
    for key, case, path, operation in _operations(world):
        with transaction.atomic():
            answer = api(key.partition(" ")[0], path.removeprefix(apis.ROOT), case.body)
            transaction.set_rollback(True)
        response = resolve(apis.document(), operation["responses"].get(str(answer.status_code), {}))
        kind = answer.headers.get("Content-Type", "").partition(";")[0]
        if kind not in response.get("content", {"": {}}):
            differences.append((key, answer.status_code, kind))
        elif "json" in kind and not answer.streaming:
            schema = {**_strict(response["content"][kind].get("schema", {})), **components}
            errors = jsonschema.Draft202012Validator(schema).iter_errors(answer.json())
            differences += [(key, [*error.path], error.message) for error in errors]
    assert differences == []


def _operations(world: everything.Everything) -> Iterator[tuple[str, requests.Case, str, Any]]:
    """Method and route of each endpoint, the case of who may use it, its path, and its description."""
    for address in answers.addresses(apis.ROOT.removeprefix("/")):
        for verb, operation in apis.document()["paths"].get(address.route, {}).items():
            key = f"{verb.upper()} {address.route}"
            words = [
                name.rpartition("(")[2].rstrip(")")
                for name in requests.API
                if name.startswith(f"{key.replace('/api/v1', '', 1)} (")
            ]
            for word in ["", *words]:
                path, case = requests.request(world, address, verb.upper(), word)
                yield key, case, path, operation


def _strict(schema: Any) -> Any:
    """A schema of OpenAPI 3.0 as JSON Schema: null where it is allowed, and no property without a description."""
    if isinstance(schema, list):
        return [_strict(item) for item in schema]
    if not isinstance(schema, dict):
        return schema
    parts = {name: _strict(part) for name, part in schema.items()}
    if isinstance(parts.get("properties"), dict):
        parts.setdefault("additionalProperties", False)
    if parts.pop("nullable", False) is True:
        return {"anyOf": [parts, {"type": "null"}]}
    return parts


def test_what_heeds_an_idempotency_key_says_so(document: dict[str, Any]) -> None:
    """Whatever is created by the kit's own `create` is answered once under its key."""
    addresses = [
        address
        for address in answers.addresses(apis.ROOT.removeprefix("/"))
        if "create" in (getattr(address.view, "actions", None) or {}).values()
        and hasattr(address.view.cls, "perform_create")
    ]
    assert len(addresses) > 9
    for address in addresses:
        parameters = document["paths"][address.route]["post"]["parameters"]
        assert "Idempotency-Key" in {parameter["name"] for parameter in parameters}, address
