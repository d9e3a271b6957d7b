"""Label selectors."""

from __future__ import annotations

from typing import Any

import pytest

from pools.core import errors
from pools.core.kubernetes import label_selector

LABELS = {"app": "web", "tier": "front", "empty": ""}


def _expression(key: str, operator: str, *values: str) -> dict[str, Any]:
    return {"matchExpressions": [{"key": key, "operator": operator, "values": list(values)}]}


@pytest.mark.parametrize(
    ("selector", "matches"),
    [
        ({}, True),
        ({"matchLabels": {}, "matchExpressions": []}, True),
        ({"matchLabels": None}, True),
        ({"matchLabels": {"app": "web"}}, True),
        ({"matchLabels": {"app": "web", "tier": "back"}}, False),
        ({"matchLabels": {"absent": ""}}, False),
        ({"matchLabels": {"empty": ""}}, True),
        (_expression("app", "In", "api", "web"), True),
        (_expression("absent", "In", "api"), False),
        (_expression("app", "NotIn", "api"), True),
        (_expression("app", "NotIn", "web"), False),
        (_expression("absent", "NotIn", "web"), True),
        (_expression("empty", "Exists"), True),
        (_expression("absent", "Exists"), False),
        (_expression("absent", "DoesNotExist"), True),
        (_expression("app", "DoesNotExist"), False),
        ({"matchLabels": {"app": "web"}, **_expression("tier", "In", "back")}, False),
    ],
)
def test_matches(selector: dict[str, Any], matches: bool) -> None:
    assert label_selector.parse(selector).matches(LABELS) is matches


@pytest.mark.parametrize(
    ("selector", "field", "code"),
    [
        ([], "s", "object_expected"),
        ({"matchLabel": {}}, "s.matchLabel", "unknown_field"),
        ({"matchLabels": {"a": 1}}, "s.matchLabels.a", "wrong_type"),
        (_expression("a", "in", "b"), "s.matchExpressions.0.operator", "selector_operator"),
        ({"matchExpressions": [{"key": "a", "operator": []}]}, None, "selector_operator"),
        (_expression("a", "In"), "s.matchExpressions.0.values", "selector_values"),
        (_expression("a", "Exists", "b"), "s.matchExpressions.0.values", "selector_values"),
        (
            {"matchExpressions": [{"operator": "Exists"}]},
            "s.matchExpressions.0.key",
            "required",
        ),
        (
            {"matchExpressions": [{"key": "a", "operator": "In", "values": [1]}]},
            "s.matchExpressions.0.values.0",
            "wrong_type",
        ),
    ],
)
def test_refused(selector: object, field: str | None, code: str) -> None:
    with pytest.raises(errors.InvalidInput) as caught:
        label_selector.parse(selector, field="s")
    (problem,) = caught.value.problems
    assert (problem.field if field else None, problem.code) == (field, code)
