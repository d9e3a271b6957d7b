"""A field that is changed is refused or followed: no PATCH takes a value and leaves it as it was."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from typing import Any

import pytest
from django.db import transaction

from tests.edges import api as apis
from tests.security import everything, requests

pytestmark = pytest.mark.django_db
ODD: list[Any] = [None, "", [], {}, -1, True, "\u0000", ["x"], {"x": 1}]
# Shown with what follows from it: a row's namespace is that of its import where it has none, and a network
# without configured gateways has those of its subnets.
_OTHERWISE = {
    ("/imports/{import_id}/rows/{number}/", "namespace"),
    ("/networks/{network_id}/", "default_gateways"),
}


def _patches() -> Iterator[tuple[str, list[str]]]:
    document = apis.document()
    for path, operations in document["paths"].items():
        body = operations.get("patch", {}).get("requestBody", {}).get("content", {})
        schema = body.get("application/json", {}).get("schema", {})
        if names := list(apis.properties(document, schema)):
            yield path.removeprefix("/api/v1"), names


@pytest.fixture(scope="module")
def world(module_transaction: None) -> everything.Everything:
    """Made once: each request is undone."""
    return everything.create()


@pytest.mark.sample(4)
@pytest.mark.parametrize(("path", "names"), list(_patches()))
def test_each_field(path: str, names: list[str], world: everything.Everything) -> None:
    case = requests.API.get(f"PATCH {path}", requests.Case())
    values = world.values | {key: world.values[used] for key, used in case.use.items()}
    place = path.format(**values).removeprefix("/")
    api = apis.Api()
    for name, value in itertools.product(names, ODD):
        with transaction.atomic():
            answer = api("PATCH", place, {name: value})
            shown = api("GET", place).json() if answer.status_code == 200 else {}
            shown = shown.get(
                "texts", shown
            )  # a row of an import shows beside them what was parsed
            transaction.set_rollback(True)
        context = (name, value, answer.content)
        assert answer.status_code in {200, 400, 403, 404, 409, 422, 502}, context
        if answer.status_code == 200 and name in shown and (path, name) not in _OTHERWISE:
            assert shown[name] == value or not (shown[name] or value), context
        elif answer.status_code == 200:
            assert value is not None, context
