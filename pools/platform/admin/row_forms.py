"""The base of all forms that change a row: who saved the row meanwhile is named before it is overwritten.

The page of a form has the values that it read, as `version`. The service that saves compares them, in its
transaction, with those of the locked row (`check_version`); if they differ, nothing is saved, and the page
shows what changed, who changed it and when. It has the values of now then, so that saving again saves.
"""

import json
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

from django import forms
from django.db.models import QuerySet
from django.utils.translation import gettext

from pools.core import errors
from pools.models import Event
from pools.platform import database
from pools.platform.admin import display
from pools.platform.history import representation

_MOST_EVENTS = 20  # the newest of a row, among which the change of a field is looked for

Values = Mapping[str, Any]
Texts = dict[str, str]


@dataclass(frozen=True)
class FieldChange:
    """A field that somebody changed since the page was opened; without `event` the history does not say who."""

    label: str
    before: str
    now: str
    event: Event | None


class Versioned(forms.BaseForm):
    """A form that says who changed its row since its page was opened; `row` is None while there is no row."""

    row: Any = None
    conflicts: tuple[FieldChange, ...] = ()  # made by others; not empty: nothing was saved
    _values: Callable[[Any], Values]
    _now: Texts | None = None

    _columns: Mapping[str, str] = {}
    _events: Mapping[str, QuerySet[Event]] = {}

    @property
    def version(self) -> str:
        """Return what the page was made from, as the text of its hidden field."""
        if self._now is None and "version" in self.data:
            return str(self.data["version"])
        return json.dumps(self._texts(self.row) if self._now is None else self._now)

    def check_version(self, locked: Any) -> None:
        """Raise VersionMismatch if a shown value of the locked row is another one than the page had."""
        if "version" not in self.data:
            return
        sent = str(self.data["version"])
        before, now = parse_version(sent), self._texts(locked)
        if sent.isdecimal() and len(sent) < 20 and hasattr(locked, "version"):
            self._now = now  # a client of its own that sends the number of the ETag
            database.require_version(locked, int(sent))
            return
        names = [
            name
            for name in {**now, **before}
            if self._shows(name) and before.get(name, "") != now.get(name, "")
        ]
        if not names:
            return
        self._now = now
        events = dict(self._events_by_column())
        self.conflicts = tuple(
            FieldChange(
                self._label(name),
                before.get(name, ""),
                now.get(name, ""),
                self._events[name].first()
                if name in self._events
                else events.get(self._column(name)),
            )
            for name in names
        )
        raise errors.VersionMismatch(self.summary)

    @property
    def summary(self) -> str:
        """Return who changed the row last, and which of the fields: `admin changed this pool 12 s ago: Owner.`"""
        last = max((c.event for c in self.conflicts if c.event), key=lambda e: e.pk, default=None)
        values = {
            "object": self.row._meta.verbose_name,
            "fields": ", ".join(change.label for change in self.conflicts),
        }
        if last is None:
            return gettext("This %(object)s was changed since you opened it: %(fields)s.") % values
        values["actor"] = last.actor or gettext("Somebody")
        values["when"] = display.relative((datetime.now(UTC) - last.at).total_seconds())
        return gettext("%(actor)s changed this %(object)s %(when)s: %(fields)s.") % values

    def _texts(self, row: Any) -> Texts:
        """Return the values of a row as texts, without those that the form does not show."""
        values = self._values(row)
        return {name: _text(value) for name, value in values.items() if self._shows(name)}

    def _shows(self, name: str) -> bool:
        return name in self.fields or name in self._events

    def _column(self, name: str) -> str:
        """Return the column of the row that has the value of a field."""
        return self._columns.get(name, name)

    def _label(self, name: str) -> str:
        return str(self[name].label) if name in self.fields else name

    def _events_by_column(self) -> Iterator[tuple[str, Event]]:
        """Yield each column of the row with an event that changed it, the newest last."""
        table = f"{self.row._meta.model_name}event"
        rows = Event.objects.filter(table=table, object_id=self.row.pk).order_by("-id")
        events = list(rows[:_MOST_EVENTS])
        changes = representation.read_changes((event.table, event.pk) for event in events)
        for event in reversed(events):
            before, after = changes[event.pk].before or {}, changes[event.pk].after or {}
            for column in after:
                if before.get(column) != after[column]:
                    yield column.removesuffix("_id"), event


class RowForm(Versioned, forms.Form):
    """A form that adds a row, or changes the row of `show_row`."""

    def show_row(
        self,
        row: Any,
        values: Callable[[Any], Values],
        *,
        columns: Mapping[str, str] | None = None,
        events: Mapping[str, QuerySet[Event]] | None = None,
    ) -> None:
        """Show the values that `values` reads of a row, by the names of the form's fields.

        `columns` names the column of a field, where it has another name; `events` has those that change a
        field that is no column of the row.
        """
        self.row, self._values = row, values
        self._columns, self._events = columns or {}, events or {}
        self.initial = {**self.initial, **values(row)}


class ObjectForm(Versioned, forms.ModelForm[Any]):
    """The form of an object that a service saves (objects.py), which compares the version in its transaction."""

    request: Any = None

    def __init__(self, *args: Any, **options: Any) -> None:
        super().__init__(*args, **options)
        if self.instance.pk is not None:
            self.row, self._values = self.instance, self.shown_values
            self.initial = {**self.initial, **self.shown_values(self.instance)}

    def shown_values(self, row: Any) -> dict[str, Any]:
        """Return what a row has in the fields of the form."""
        return {name: getattr(row, name) for name in self.fields if hasattr(row, name)}

    def _post_clean(self) -> None:
        """Leave the row as it is: the service checks the whole object."""


class ModelRowForm(Versioned, forms.ModelForm[Any]):
    """The form of a page of Django's own ModelAdmin, which saves in a transaction after `is_valid`.

    Its page includes model_form_version.html.
    """

    def __init__(self, *args: Any, **options: Any) -> None:
        super().__init__(*args, **options)
        if self.instance.pk is not None:
            self.row, self._values = self.instance, self._read

    def _read(self, row: Any) -> Values:
        """Return what the row has in the fields that can be changed; a password is shown by none of them."""
        names = [name for name, field in self.fields.items() if not field.disabled]
        columns = [row._meta.get_field(name) for name in names if hasattr(row, name)]
        return {
            column.name: sorted(map(str, getattr(row, column.name).select_related()))
            if column.many_to_many
            else getattr(row, column.name)
            for column in columns
        }

    def clean(self) -> Any:
        values = super().clean()
        if self.row is not None:
            rows = type(self.row)._default_manager.select_for_update()
            try:
                self.check_version(rows.get(pk=self.row.pk))
            except errors.VersionMismatch as error:
                self.add_error(None, error.message)
        return values


def _text(value: Any) -> str:
    if value is None or value is False:
        return ""
    if value is True:
        return gettext("yes")
    if isinstance(value, datetime):
        return f"{value:%Y-%m-%d %H:%M}"
    if isinstance(value, list | tuple):
        return ", ".join(map(str, value))
    return str(value)


def parse_version(version: str) -> Texts:
    """Return the texts of a hidden field; those that cannot be read are none, so that all fields differ."""
    try:
        texts = json.loads(version)
    except (ValueError, RecursionError):
        return {}
    return {str(name): str(text) for name, text in texts.items()} if isinstance(texts, dict) else {}
