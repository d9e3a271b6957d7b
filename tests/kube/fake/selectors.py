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
    if found := _SET.fullmatch(text):
        key, wanted = found["key"], found["how"] == "in"
        values = {value.strip() for value in found["values"].split(",")}
        return lambda labels: (labels.get(key) in values) is wanted
    if found := _EQUAL.fullmatch(text):
        key, value, wanted = found["key"], found["value"], found["how"] != "!="
        return lambda labels: (labels.get(key) == value) is wanted
    if found := _EXISTS.fullmatch(text):
        key, wanted = found["key"], not found["not"]
        return lambda labels: (key in labels) is wanted
    raise refusals.bad_request(f"unable to parse requirement: {text!r}")


def _field_test(text: str) -> Test:
    found = _EQUAL.fullmatch(text)
    if found is None:
        raise refusals.bad_request(f"invalid field selector: {text!r}")
    key, value, wanted = found["key"], found["value"], found["how"] != "!="
    if key not in {"metadata.name", "metadata.namespace", "spec.nodeName"}:
        raise refusals.bad_request(f"field label not supported: {key}")
    outer, inner = key.split(".")
    return lambda item: (item.get(outer, {}).get(inner, "") == value) is wanted


def parse(labels: str, fields: str) -> Test | None:
    """A test of whole objects; None when everything is wanted."""
    of_labels = [_label_test(one.strip()) for one in _SPLIT.split(labels) if one.strip()]
    of_fields = [_field_test(one.strip()) for one in fields.split(",") if one.strip()]
    if not of_labels and not of_fields:
        return None

    def test(item: dict[str, Any]) -> bool:
        own = item["metadata"].get("labels") or {}
        return all(one(own) for one in of_labels) and all(one(item) for one in of_fields)

    return test
