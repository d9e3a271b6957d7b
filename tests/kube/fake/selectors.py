"""labelSelector and fieldSelector."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

from tests.kube.fake import refusals

Test = Callable[[dict[str, Any]], bool]

_SET = re.compile(r"(?P<key>\S+)\s+(?P<how>in|notin)\s*\((?P<values>[^)]*)\)")
_EQUAL = re.compile(r"(?P<key>[^\s=!]+)\s*(?P<how>==|=|!=)\s*(?P<value>[^\s=!]*)")
_EXISTS = re.compile(r"(?P<not>!?)\s*(?P<key>[A-Za-z0-9][-A-Za-z0-9_./]*)")
_SPLIT = re.compile(r",(?![^(]*\))")


def _label_test(text: str) -> Test:
    if result := _SET.fullmatch(text):
        key, expected = result["key"], result["how"] == "in"
        values = {value.strip() for value in result["values"].split(",")}
        return lambda labels: (labels.get(key) in values) is expected
    if result := _EQUAL.fullmatch(text):
        key, value, expected = result["key"], result["value"], result["how"] != "!="
        return lambda labels: (labels.get(key) == value) is expected
    if result := _EXISTS.fullmatch(text):
        key, expected = result["key"], not result["not"]
        return lambda labels: (key in labels) is expected
    raise refusals.bad_request(f"unable to parse requirement: {text!r}")


def _field_test(text: str) -> Test:
    result = _EQUAL.fullmatch(text)
    if result is None:
        raise refusals.bad_request(f"invalid field selector: {text!r}")
    key, value, expected = result["key"], result["value"], result["how"] != "!="
    if key not in {"metadata.name", "metadata.namespace", "spec.nodeName"}:
        raise refusals.bad_request(f"field label not supported: {key}")
    outer, inner = key.split(".")
    return lambda item: (item.get(outer, {}).get(inner, "") == value) is expected


def parse(labels: str, fields: str) -> Test | None:
    """A test of whole objects; None when everything is wanted."""
    of_labels = [_label_test(item.strip()) for item in _SPLIT.split(labels) if item.strip()]
    of_fields = [_field_test(item.strip()) for item in fields.split(",") if item.strip()]
    if not of_labels and not of_fields:
        return None

    def test(item: dict[str, Any]) -> bool:
        item_labels = item["metadata"].get("labels") or {}
        return all(of_label(item_labels) for of_label in of_labels) and all(
            of_field(item) for of_field in of_fields
        )

    return test
