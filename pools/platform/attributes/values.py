"""The tags, the owner and the values of custom fields of objects: which have them, and how they are set and ordered."""

from collections.abc import Mapping, Sequence
from decimal import Decimal
from typing import Any

from django.db.models import Case, DecimalField, Expression, TextField, Value, When
from django.db.models.fields.json import KeyTextTransform
from django.db.models.functions import Cast, Coalesce, Left
from django.db.models.lookups import Regex

from pools.core import custom_fields as core, errors, object_reader
from pools.models import ATTRIBUTES, CustomField, CustomFieldType
from pools.platform import database

MODELS: dict[str, Any] = {}  # by their names in REST; filled by pools.extension

_LOCK = "SELECT id FROM pools_customfield WHERE %s = ANY (object_types) ORDER BY id FOR SHARE"
_NUMBER = DecimalField(max_digits=46, decimal_places=15)  # what core.parse_value accepts
_NO_NUMBER = Decimal(-(10**30))  # less than any value
_LENGTH = 150  # characters of a text that count in an order: cursors of REST have them


def custom_fields_of(model: Any) -> Sequence[CustomField]:
    """Return the custom fields that objects of a model have, in the order of their names."""
    return list(CustomField.objects.filter(object_types__contains=[_object_type(model)]))


def _object_type(model: Any) -> str:
    return next(name for name, attributed in MODELS.items() if attributed is model)


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


def split(values: Mapping[str, Any], *, new: bool = False) -> tuple[dict[str, Any], dict[str, Any]]:
    """Return the attributes among some values, and the others; those of a `new` object must have the required fields."""
    attributes = {name: value for name, value in values.items() if name in ATTRIBUTES}
    if new:
        attributes.setdefault("custom_fields", {})
    return attributes, {name: value for name, value in values.items() if name not in ATTRIBUTES}


def _merge(row: Any, changes: Mapping[str, Any]) -> dict[str, str]:
    model = type(row)
    database.rows(_LOCK, [_object_type(model)])
    defined = {field.name: field for field in custom_fields_of(model)}
    report = object_reader.ProblemReport()
    values = dict(row.custom_fields)
    for name, value in changes.items():
        if name not in defined:
            names = ", ".join(defined) or "none"
            report.add(name, "unknown_custom_field", f"unknown custom field; defined here: {names}")
            continue
        with report.collect():
            values[name] = core.parse_value(defined[name].type, defined[name].choices, value, name)
    values = {name: value for name, value in values.items() if value}
    for name, field in defined.items():
        if field.required and name not in values:
            report.add(name, "required", f"{field.label} is required")
    report.raise_any()
    return values


def parse_filter(model: Any, name: str, text: str, parameter: str) -> dict[str, str]:
    """Return what `custom_fields` of matching rows contains. Raises InvalidInput."""
    for field in custom_fields_of(model):
        if field.name == name:
            return {name: core.parse_value(field.type, field.choices, text, parameter)}
    raise errors.InvalidInput.for_field(
        parameter, "unknown_custom_field", "there is no such custom field", name
    )


def sort_key(field: CustomField) -> Expression:
    """Return numbers in their order, other values as texts; objects without a value come first."""
    text = KeyTextTransform(field.name, "custom_fields")
    if field.type != CustomFieldType.NUMBER:
        return Coalesce(Left(text, _LENGTH), Value(""), output_field=TextField())
    return Case(
        When(Regex(text, r"^-?[0-9]{1,30}(\.[0-9]{1,15})?$"), then=Cast(text, _NUMBER)),
        default=Value(_NO_NUMBER, output_field=_NUMBER),
        output_field=_NUMBER,
    )
