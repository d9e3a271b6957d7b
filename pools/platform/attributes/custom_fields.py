"""Create, change and delete the definitions of custom fields.

No change loses a value: a renamed field takes its values along, and what objects still use is not removed.
"""

from collections.abc import Mapping
from copy import copy
from typing import Any

from django.db.models import F, JSONField, QuerySet
from django.db.models.expressions import RawSQL

from pools.core import custom_fields as core, errors
from pools.models import CustomField
from pools.platform import database, events
from pools.platform.attributes.values import MODELS

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


def _users(model: Any, name: str) -> QuerySet[Any]:
    rows: QuerySet[Any] = model._default_manager.filter(custom_fields__has_key=name)
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
    renamed = RawSQL(_RENAMED, [before, after, before], output_field=JSONField())  # noqa: S611  # values are bound
    for model in MODELS.values():
        changes: dict[str, Any] = {"custom_fields": renamed}
        if hasattr(model, "version"):
            changes["version"] = F("version") + 1
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
