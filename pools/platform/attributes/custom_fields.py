"""Create, change and delete the definitions of custom fields.

No change loses a value: a renamed field takes its values along, and what objects still use is not removed.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from django.db import connection
from django.db.models import Model, QuerySet

from pools.core import custom_fields as core
from pools.core import errors
from pools.models import CustomField
from pools.platform import database, events, versions
from pools.platform.attributes import registry

MOST = 100  # custom fields


def create(values: Mapping[str, Any], *, author: events.Author) -> CustomField:
    """Define a custom field. Raises AlreadyExists, Conflict (too many), InvalidInput (its choices)."""
    with events.recorded_by(author):
        if CustomField.objects.count() >= MOST:
            raise errors.Conflict(f"The limit of {MOST} custom fields is reached.")
        row = CustomField(**values)
        _refuse_second(row)
        core.check_choices(row.type, row.choices)
        database.save(row)
    return row


def change(
    custom_field: CustomField,
    values: Mapping[str, Any],
    *,
    author: events.Author,
    version: versions.Version = None,
) -> CustomField:
    """Change a definition; a new name is that of all stored values, too.

    Raises CustomFieldInUse if values of another type, of a removed choice or of a removed kind of object are
    stored, VersionMismatch, AlreadyExists, InvalidInput (its choices).
    """
    return database.with_retries(lambda: _change(custom_field.pk, values, author, version))


def _change(
    field_id: int, values: Mapping[str, Any], author: events.Author, version: versions.Version
) -> CustomField:
    with events.recorded_by(author):
        row = _locked(field_id)
        versions.require(row, version)
        before = CustomField(name=row.name, type=row.type, choices=row.choices)
        removed_types = {*row.object_types} - {*values.get("object_types", row.object_types)}
        for name, value in values.items():
            setattr(row, name, value)
        _refuse_second(row)
        core.check_choices(row.type, row.choices)
        if row.type != before.type:
            _refuse_used(before, f"its type cannot change from {before.type} to {row.type}")
        for choice in [choice for choice in before.choices if choice not in row.choices]:
            _refuse_used(before, f"the choice {choice} cannot be removed", choice=choice)
        for kind in sorted(removed_types):
            _refuse_used(before, f"it cannot be removed from the kind {kind}", kinds=[kind])
        database.save(row)
        if row.name != before.name:
            _rename_values(before.name, row.name)
    return row


def delete(custom_field: CustomField, *, author: events.Author) -> None:
    """Delete a definition that no object has a value of. Raises CustomFieldInUse."""

    def remove() -> None:
        with events.recorded_by(author):
            row = _locked(custom_field.pk)
            _refuse_used(row, "it cannot be deleted")
            row.delete()

    database.with_retries(remove)


def count_values(name: str) -> dict[str, int]:
    """Return the number of objects that have a value of the field, by their kinds; kinds without are left out."""
    return {
        kind: count
        for kind, model in registry.MODELS.items()
        if (count := _users(model, name).count())
    }


def _users(model: type[Model], name: str, choice: str | None = None) -> QuerySet[Any]:
    rows: QuerySet[Any] = model._default_manager.all()
    if choice is not None:
        return rows.filter(custom_fields__contains={name: choice})
    return rows.filter(custom_fields__has_key=name)


def _refuse_used(
    row: CustomField,
    refusal: str,
    *,
    choice: str | None = None,
    kinds: list[str] | None = None,
) -> None:
    counts = [
        f"{count} {model._meta.verbose_name_plural if count > 1 else model._meta.verbose_name}"
        for kind, model in registry.MODELS.items()
        if kinds is None or kind in kinds
        if (count := _users(model, row.name, choice).count())
    ]
    if counts:
        raise errors.CustomFieldInUse(
            f"The custom field {row.name} is used by {', '.join(counts)}: {refusal}. Remove the values first."
        )


def _rename_values(before: str, after: str) -> None:
    """Move the values of all objects to the new name of their field."""
    for model in registry.MODELS.values():
        columns = {column.name for column in model._meta.get_fields()}
        version = ", version = version + 1" if "version" in columns else ""
        statement = f"""
            UPDATE {model._meta.db_table} SET custom_fields = (custom_fields - %(before)s::text)
                || jsonb_build_object(%(after)s::text, custom_fields -> %(before)s::text){version}
            WHERE jsonb_exists(custom_fields, %(before)s::text)
        """  # noqa: S608  # names of our own tables
        with connection.cursor() as cursor:
            cursor.execute(statement, {"before": before, "after": after})


def _locked(field_id: int) -> CustomField:
    row = CustomField.objects.select_for_update().filter(pk=field_id).first()
    if row is None:
        raise errors.NotFound("There is no such custom field.")
    return row


def _refuse_second(row: CustomField) -> None:
    if CustomField.objects.filter(name=row.name).exclude(pk=row.pk).exists():
        raise errors.AlreadyExists(f"There is a custom field {row.name}.")
