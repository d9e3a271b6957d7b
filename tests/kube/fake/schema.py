"""What a structural schema does to an object: unknown fields, defaults, validation."""

from __future__ import annotations

import copy
import ipaddress
import json
import re
from collections.abc import Callable, Iterator
from typing import Any

Schema = dict[str, Any]
Cause = dict[str, str]

_KEEP = "x-kubernetes-preserve-unknown-fields"
_ROOT = ("apiVersion", "kind", "metadata")


def child(schema: Schema | None, name: str) -> Schema | None:
    """The schema of one field; None where anything goes or nothing is known."""
    if not schema:
        return None
    field_schema: Schema | None = schema.get("properties", {}).get(name)
    if field_schema is not None:
        return field_schema
    more = schema.get("additionalProperties")
    return more if isinstance(more, dict) else None


def items(schema: Schema | None) -> Schema | None:
    return schema.get("items") if schema else None


def keeps(schema: Schema | None) -> bool:
    """Whether fields that the schema does not name stay."""
    return not schema or bool(schema.get(_KEEP)) or schema.get("additionalProperties") is True


def prune(value: Any, schema: Schema | None, *, dropped: list[str], path: str = "") -> Any:
    """The value without unknown fields, whose paths are added to `dropped`."""
    if schema is None or (_KEEP in schema and "properties" not in schema and path):
        return value
    if isinstance(value, list):
        inner = items(schema)
        if inner is None and not keeps(schema):
            inner = {"type": "nothing"}
        return [
            prune(element, inner, dropped=dropped, path=f"{path}[{index}]")
            for index, element in enumerate(value)
        ]
    if not isinstance(value, dict):
        return value
    stored = {}
    for name, field_value in value.items():
        where = f"{path}.{name}" if path else name
        inner = child(schema, name)
        if inner is not None:
            stored[name] = prune(field_value, inner, dropped=dropped, path=where)
        elif keeps(schema) and schema.get("type") != "nothing":
            stored[name] = field_value
        else:
            dropped.append(where)
    return stored


def default(value: Any, schema: Schema | None) -> None:
    """Fills in the defaults, in place."""
    if not schema:
        return
    if isinstance(value, list):
        for item in value:
            default(item, items(schema))
    if not isinstance(value, dict):
        return
    for name, inner in schema.get("properties", {}).items():
        if "default" in inner and (
            name not in value or (value[name] is None and not inner.get("nullable"))
        ):
            value[name] = copy.deepcopy(inner["default"])
    for name, item in value.items():
        default(item, child(schema, name))


def _shown(value: Any) -> str:
    return json.dumps(value, separators=(",", ":"))


def _cause(path: str, complaint: str, value: Any, reason: str = "FieldValueInvalid") -> Cause:
    whole = reason == "FieldValueTypeInvalid" or isinstance(value, list | dict)
    shown = f'"{_type_of(value)}"' if whole else _shown(value)
    message = f"Invalid value: {shown}: {path} in body {complaint}"
    return {"reason": reason, "message": message, "field": path or "<nil>"}


def _type_of(value: Any) -> str:
    if value is None:
        return "null"
    for python, name in (
        (bool, "boolean"),
        (int, "integer"),
        (float, "number"),
        (str, "string"),
        (list, "array"),
    ):
        if isinstance(value, python):
            return name
    return "object"


def _has_type(value: Any, schema: Schema) -> bool:
    if value is None:
        return bool(schema.get("nullable"))
    if schema.get("x-kubernetes-int-or-string"):
        return isinstance(value, int | str) and not isinstance(value, bool)
    expected = schema.get("type")
    result = _type_of(value)
    return not expected or result == expected or (expected == "number" and result == "integer")


_LIMITS: tuple[tuple[str, str, Callable[[Any, Any], bool]], ...] = (
    ("minimum", "should be greater than or equal to {}", lambda v, limit: v >= limit),
    ("maximum", "should be less than or equal to {}", lambda v, limit: v <= limit),
    ("minItems", "should have at least {} items", lambda v, limit: len(v) >= limit),
    ("maxItems", "should have at most {} items", lambda v, limit: len(v) <= limit),
    ("minLength", "should be at least {} chars long", lambda v, limit: len(v) >= limit),
    ("maxLength", "should be at most {} chars long", lambda v, limit: len(v) <= limit),
    ("pattern", "should match '{}'", lambda v, limit: re.search(limit, v) is not None),
    ("multipleOf", "should be a multiple of {}", lambda v, limit: v % limit == 0),
)


def _is_cidr(text: str) -> bool:
    address, slash, length = text.partition("/")
    try:
        ipaddress.ip_network(text, strict=False)
        ipaddress.ip_address(address)
    except ValueError:
        return False
    return slash == "/" and length.isdigit()


def problems(value: Any, schema: Schema | None, path: str = "") -> Iterator[Cause]:
    """What is wrong with a value, as the causes of a 422."""
    if not schema or (value is None and not schema.get("type")):
        return
    if not _has_type(value, schema):
        expected = schema.get("type", "integer,string")
        yield _cause(
            path, f'must be of type {expected}: "{_type_of(value)}"', value, "FieldValueTypeInvalid"
        )
        return
    yield from _beyond(value, schema, path)
    if isinstance(value, list):
        yield from _in_list(value, schema, path)
    if isinstance(value, dict):
        yield from _in_object(value, schema, path)


def _beyond(value: Any, schema: Schema, path: str) -> Iterator[Cause]:
    for word, complaint, holds in _LIMITS:
        if word in schema and value is not None and not holds(value, schema[word]):
            yield _cause(path, complaint.format(schema[word]), value)
    if isinstance(value, str) and schema.get("format") == "cidr" and not _is_cidr(value):
        yield _cause(path, f'must be of type cidr: "{value}"', value)
    if "enum" in schema and value not in schema["enum"]:
        allowed = ", ".join(_shown(item) for item in schema["enum"])
        yield {
            "reason": "FieldValueNotSupported",
            "message": f"Unsupported value: {_shown(value)}: supported values: {allowed}",
            "field": path,
        }


def _in_list(value: list[Any], schema: Schema, path: str) -> Iterator[Cause]:
    for index, element in enumerate(value):
        yield from problems(element, items(schema), f"{path}[{index}]")
    identities = [identity(item, schema) for item in value]
    for index, key in enumerate(identities):
        if key is not None and key in identities[:index]:
            yield {
                "reason": "FieldValueDuplicate",
                "message": f"Duplicate value: {_shown(key)}",
                "field": f"{path}[{index}]",
            }


def identity(value: Any, schema: Schema | None) -> Any:
    """What tells items of a set or a map-like list apart; None in an atomic list."""
    how = (schema or {}).get("x-kubernetes-list-type")
    if how == "set":
        return value
    if how == "map" and isinstance(value, dict):
        keys = (schema or {})["x-kubernetes-list-map-keys"]
        inner = items(schema)
        return {
            key: value.get(key, (child(inner, key) or {}).get("default"))
            for key in sorted(keys)
            if value.get(key, (child(inner, key) or {}).get("default")) is not None
        }
    return None


def _in_object(value: dict[str, Any], schema: Schema, path: str) -> Iterator[Cause]:
    prefix = f"{path}." if path else ""
    for name in schema.get("required", ()):
        if name not in value:
            yield {
                "reason": "FieldValueRequired",
                "message": "Required value",
                "field": prefix + name,
            }
    for name, field_value in value.items():
        if path or name not in _ROOT:
            yield from problems(field_value, child(schema, name), prefix + name)
