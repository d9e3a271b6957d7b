"""OpenAPI is made from the code without a warning, and its examples are accepted."""

from collections.abc import Iterator
from typing import Any

import pytest
import yaml
from django.urls import get_resolver

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


def _views(patterns: list[Any]) -> Iterator[Any]:
    for pattern in patterns:
        yield from (
            _views(pattern.url_patterns) if hasattr(pattern, "url_patterns") else [pattern.callback]
        )


def test_what_heeds_an_idempotency_key_says_so(document: dict[str, Any]) -> None:
    """Whatever is created by the kit's own `create` is answered once under its key."""
    views = list(_views(get_resolver().url_patterns))
    lists = [view for view in views if "create" in (getattr(view, "actions", None) or {}).values()]
    own = [view for view in lists if hasattr(view.cls, "perform_create")]
    assert len(own) > 9
    assert [view.cls for view in own if "POST" not in view.cls.idempotent] == []
    parameters = document["paths"]["/api/v1/netbox-sources/"]["post"]["parameters"]
    assert "Idempotency-Key" in {parameter["name"] for parameter in parameters}
