"""Set the tags, the owner and the values of custom fields of an object."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from pools.core import custom_fields as core
from pools.core import errors, object_reader
from pools.models import CustomField
from pools.models.attributes import ATTRIBUTES
from pools.platform import database
from pools.platform.attributes import registry

_LOCK = "SELECT id FROM pools_customfield WHERE %s = ANY (object_types) ORDER BY id FOR SHARE"


def set_attributes(row: Any, values: Mapping[str, Any]) -> None:
    """Set the attributes of a row that `values` has, without saving it; other keys are ignored.

    `custom_fields` has raw values by name: a field that it leaves out keeps its value, and None or "" removes
    one. A required field must have a value then. Call it in the transaction that saves the row: no definition
    changes before it ends. Raises InvalidInput with the dotted path of each problem.
    """
    report = object_reader.ProblemReport()
    if values.get("tags") is not None:
        with report.collect():
            row.tags = core.parse_tags(values["tags"], "tags")
    if values.get("owner") is not None:
        with report.collect():
            row.owner = core.parse_owner(values["owner"], "owner")
    if values.get("custom_fields") is not None:
        with report.collect("custom_fields"):
            row.custom_fields = _merge(row, values["custom_fields"])
    report.raise_any()


def split(values: Mapping[str, Any]) -> tuple[dict[str, Any], dict[str, Any]]:
    """Return the attributes among some values, and the others."""
    attributes = {name: value for name, value in values.items() if name in ATTRIBUTES}
    return attributes, {name: value for name, value in values.items() if name not in ATTRIBUTES}


def _merge(row: Any, changes: Mapping[str, Any]) -> dict[str, str]:
    model = type(row)
    database.rows(_LOCK, [registry.object_type(model)])
    defined = {field.name: field for field in registry.custom_fields_of(model)}
    report = object_reader.ProblemReport()
    values = dict(row.custom_fields)
    for name, value in changes.items():
        if name not in defined:
            names = ", ".join(defined) or "none"
            report.add(name, "unknown_custom_field", f"unknown custom field; defined here: {names}")
            continue
        with report.collect():
            values[name] = _parse(defined[name], value, name)
    values = {name: value for name, value in values.items() if value}
    for name, field in defined.items():
        if field.required and name not in values:
            report.add(name, "required", f"{field.label} is required")
    report.raise_any()
    return values


def _parse(field: CustomField, value: object, path: str) -> str:
    return core.parse_value(field.type, field.choices, value, path)


def parse_filter(model: Any, name: str, text: str, parameter: str) -> dict[str, str]:
    """Return what `custom_fields` of matching rows contains. Raises InvalidInput."""
    for field in registry.custom_fields_of(model):
        if field.name == name:
            return {name: _parse(field, text, parameter)}
    raise errors.InvalidInput.for_field(
        parameter, "unknown_custom_field", "there is no such custom field", name
    )
