"""OpenAPI is made from the code without a warning, and its examples are accepted."""

from __future__ import annotations

from typing import Any

import pytest
import yaml

from tests import commands
from tests.edges.api import Api, resolve


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


@pytest.mark.exhaustive
@pytest.mark.django_db
def test_the_examples_are_accepted(document: dict[str, Any]) -> None:
    api = Api()
    order = ["/api/v1/clusters/", "/api/v1/pools/", "/api/v1/pools/{pool_id}/allocations/"]
    for path in order:
        content = document["paths"][path]["post"]["requestBody"]["content"]["application/json"]
        for example in content["examples"].values():
            place = path.removeprefix("/api/v1/")
            if "{pool_id}" in place:
                place = place.format(pool_id=api.pool("instance"))
            assert api("POST", place, example["value"]).status_code == 201, path
