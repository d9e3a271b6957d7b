"""OpenAPI is made from the code without a warning, and its examples are accepted."""

from typing import Any

import pytest
import yaml

from tests import commands
from tests.edges.api import resolve


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
