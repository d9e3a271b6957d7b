"""The tags, the owner and the custom fields of objects: how they are set and ordered, and the definitions of the fields.

No change of a definition loses a value: a renamed field takes its values along, and what objects still use is not removed.
"""

from collections.abc import Mapping, Sequence
from copy import copy
from decimal import Decimal
from typing import Any

from django.db import models
from django.db.models.expressions import RawSQL
from django.db.models.fields.json import KeyTextTransform
from django.db.models.functions import Cast, Coalesce, Left
from django.db.models.lookups import Regex

from pools.core import custom_fields as core, errors, object_reader
from pools.models import ATTRIBUTES, CustomField, CustomFieldType
from pools.platform import database, events

MODELS: dict[str, Any] = {}  # by their names in REST; filled by pools.extension

_LOCK = "SELECT id FROM pools_customfield WHERE %s = ANY (object_types) ORDER BY id FOR SHARE"
_NUMBER = models.DecimalField(max_digits=46, decimal_places=15)  # what core.parse_value accepts
_NO_NUMBER = Decimal(-(10**30))  # less than any value
_LENGTH = 150  # characters of a text that count in an order: cursors of REST have them


def custom_fields_of(model: Any) -> Sequence[CustomField]:
    """Return the custom fields that objects of a model have, in the order of their names."""
    return list(CustomField.objects.filter(object_types__contains=[_object_type(model)]))


def _object_type(model: Any) -> str:
    return next(name for name, attributed in MODELS.items() if attributed is model)


def lock_definitions(values: Mapping[str, Any] | None = None) -> None:
    """Keep custom fields as they are until the transaction ends, if `values` has some or is None.

    Call it before a row that has values of custom fields is locked: a field is renamed before the values of all rows.
    """
    if values is None or values.get("custom_fields") is not None:
        database.rows("SELECT id FROM pools_customfield ORDER BY id FOR SHARE", [])


def assign(row: Any, values: Mapping[str, Any]) -> None:
    """Set what `values` has of the attributes and other columns of a row, without saving it.

    None keeps an attribute. `custom_fields` has raw values by name: a field that it leaves out keeps its value, and None or "" removes
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
    for name in values.keys() - {*ATTRIBUTES}:
        setattr(row, row._meta.get_field(name).name, values[name])  # a name of no column is refused


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


def sort_key(field: CustomField) -> models.Expression:
    """Return numbers in their order, other values as texts; objects without a value come first."""
    text = KeyTextTransform(field.name, "custom_fields")
    if field.type != CustomFieldType.NUMBER:
        return Coalesce(Left(text, _LENGTH), models.Value(""), output_field=models.TextField())
    return models.Case(
        models.When(Regex(text, r"^-?[0-9]{1,30}(\.[0-9]{1,15})?$"), then=Cast(text, _NUMBER)),
        default=models.Value(_NO_NUMBER, output_field=_NUMBER),
        output_field=_NUMBER,
    )


# --- definitions ----------------------------------------------------------------------------------

MOST = 100  # custom fields
_RENAMED = """
    (custom_fields - %s::text) || jsonb_build_object(%s::text, custom_fields -> %s::text)
"""


def create(values: Mapping[str, Any], *, author: events.Author) -> CustomField:
    """Define a custom field. Raises AlreadyExists, Conflict (too many), InvalidInput (its choices)."""
    with events.recorded_by(author):
        if CustomField.objects.count() >= MOST:
            raise errors.Conflict(f"The limit of {MOST} custom fields is reached.")
        row = CustomField(**values)
        _save(row)
    return row


def change(
    custom_field: CustomField,
    values: Mapping[str, Any],
    *,
    author: events.Author,
    version: database.Version = None,
) -> CustomField:
    """Change a definition; a new name is that of all stored values, too.

    Raises CustomFieldInUse if values of another type, of a removed choice or of a removed kind of object are
    stored, VersionMismatch, AlreadyExists, InvalidInput (its choices).
    """

    def save_change() -> CustomField:
        with events.recorded_by(author):
            row = _locked(custom_field.pk)
            database.require_version(row, version)
            before = copy(row)
            for name, value in values.items():
                setattr(row, name, value)
            _refuse_loss(before, row)
            _save(row)
            if row.name != before.name:
                _rename_values(before.name, row.name)
        return row

    return database.with_retries(save_change)


def delete(custom_field: CustomField, *, author: events.Author) -> None:
    """Delete a definition that no object has a value of. Raises CustomFieldInUse."""

    def remove() -> None:
        with events.recorded_by(author):
            row = _locked(custom_field.pk)
            _refuse_loss(row, None)
            row.delete()

    database.with_retries(remove)


def count_values(custom_field: CustomField) -> int:
    """Return the number of objects that have a value of the field."""
    return sum(_users(model, custom_field.name).count() for model in MODELS.values())


def _users(model: Any, name: str) -> models.QuerySet[Any]:
    rows: models.QuerySet[Any] = model._default_manager.filter(custom_fields__has_key=name)
    return rows


def _refuse_loss(before: CustomField, after: CustomField | None) -> None:
    """Refuse a change or, without `after`, a deletion of a definition whose values would be lost."""
    counts = []
    for kind, model in MODELS.items():
        rows = _users(model, before.name)
        if after is not None and after.type == before.type and kind in after.object_types:
            removed = [choice for choice in before.choices if choice not in after.choices]
            rows = rows.filter(**{f"custom_fields__{before.name}__in": removed})
        if count := rows.count():
            meta = model._meta
            counts.append(f"{count} {meta.verbose_name_plural if count > 1 else meta.verbose_name}")
    if counts:
        raise errors.CustomFieldInUse(
            f"The custom field {before.name} is used by {', '.join(counts)}, whose values would be lost."
            " Remove the values first."
        )


def _rename_values(before: str, after: str) -> None:
    """Move the values of all objects to the new name of their field."""
    renamed = RawSQL(_RENAMED, [before, after, before], output_field=models.JSONField())  # noqa: S611  # values are bound
    for model in MODELS.values():
        changes: dict[str, Any] = {"custom_fields": renamed}
        if hasattr(model, "version"):
            changes["version"] = models.F("version") + 1
        _users(model, before).update(**changes)


def _save(row: CustomField) -> None:
    row.object_types = sorted({*row.object_types})
    core.check_choices(row.type, row.choices)
    database.save(row)


def _locked(field_id: int) -> CustomField:
    row = CustomField.objects.select_for_update().filter(pk=field_id).first()
    if row is None:
        raise errors.NotFound("There is no such custom field.")
    return row
