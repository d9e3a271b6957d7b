"""Tags, owner and custom fields in the admin: fields of forms, and columns, filters and exports of lists."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, TypeVar

from django import forms
from django.db.models import Count, F, Func, Model, Q, QuerySet
from django.http import HttpRequest
from django.utils.html import format_html, format_html_join
from django.utils.safestring import SafeString
from django.utils.translation import gettext
from django.utils.translation import gettext_lazy as _

from pools.core import custom_fields as core
from pools.core import errors
from pools.models import CustomField
from pools.platform.admin import columns, display, filters, lists, row_forms
from pools.platform.admin import forms as fields
from pools.platform.admin.columns import Column
from pools.platform.attributes import registry, sort_keys

PREFIX = "cf_"
MOST = 200  # choices of a filter

Row = TypeVar("Row", bound=Model)


# --- forms ----------------------------------------------------------------------------------------


def _parse_tag_list(text: str) -> list[str]:
    return core.parse_tags([tag for tag in text.split(",") if tag.strip()])


def _tags_field(label: Any, help_text: Any = "") -> forms.Field:
    return fields.ParsedField(
        _parse_tag_list, label=label, help_text=help_text, required=False, widget=fields.text()
    )


def _owner_field() -> forms.Field:
    return fields.ParsedField(
        core.parse_owner,
        label=_("Owner"),
        required=False,
        widget=fields.text(),
        help_text=_("A team or person: a name or a mail address."),
    )


def _value_field(custom_field: CustomField, *, required: bool) -> forms.Field:
    options: dict[str, Any] = {
        "label": custom_field.label,
        "help_text": custom_field.description,
        "required": required,
    }
    if custom_field.type == core.FieldType.CHOICE:
        choices = [("", display.DASH), *((choice, choice) for choice in custom_field.choices)]
        return forms.ChoiceField(choices=choices, widget=fields.select(), **options)
    return fields.ParsedField(
        lambda text: core.parse_value(custom_field.type, custom_field.choices, text),
        widget=fields.text(),
        **options,
    )


class AttributeFields(row_forms.RowForm):
    """The attributes of an object of `attributed`, at the end of a form."""

    attributed: type[Model]

    def __init__(self, *args: Any, **options: Any) -> None:
        super().__init__(*args, **options)
        self.fields["tags"] = _tags_field(_("Tags"), _("Separated by commas."))
        self.fields["owner"] = _owner_field()
        for field in registry.custom_fields_of(self.attributed):
            self.fields[f"{PREFIX}{field.name}"] = _value_field(field, required=field.required)

    def clean(self) -> dict[str, Any]:
        """Keep the values of fields that the page did not have; refuse those that it still has."""
        values = super().clean() or self.cleaned_data
        sent = {name for name in self.data if name.startswith(PREFIX)}
        if sent - {*self.fields}:
            message = gettext(
                "A custom field was renamed or deleted meanwhile. Open the page again."
            )
            raise forms.ValidationError(message, code="unknown_custom_field")
        missing = {name for name in values if name.startswith(PREFIX)} - sent
        return {name: value for name, value in values.items() if name not in missing}

    def _column(self, name: str) -> str:
        return "custom_fields" if name.startswith(PREFIX) else super()._column(name)

    def attributes(self) -> dict[str, Any]:
        """Return the attributes as the services take them."""
        return _attribute_values(self.cleaned_data)

    def remove_attributes(self) -> None:
        for name in [name for name in self.fields if _is_attribute(name)]:
            del self.fields[name]


def _is_attribute(name: str) -> bool:
    return name in {"tags", "owner"} or name.startswith(PREFIX)


def split(values: Mapping[str, Any]) -> tuple[dict[str, Any], dict[str, Any]]:
    """Return the attributes among the values of a form as the services take them, and the others."""
    others = {name: value for name, value in values.items() if not _is_attribute(name)}
    return _attribute_values(values), others


def _attribute_values(values: Mapping[str, Any]) -> dict[str, Any]:
    return {
        "tags": values.get("tags") or [],
        "owner": values.get("owner") or "",
        "custom_fields": _custom_values(values),
    }


def _custom_values(values: Mapping[str, Any]) -> dict[str, Any]:
    return {
        name.removeprefix(PREFIX): value
        for name, value in values.items()
        if name.startswith(PREFIX)
    }


def initial(row: Any) -> dict[str, str]:
    """Return the values of a row as the form shows them."""
    return {
        "tags": ", ".join(row.tags),
        "owner": row.owner,
        **{f"{PREFIX}{name}": value for name, value in row.custom_fields.items()},
    }


def field_of_problem(problem: errors.FieldProblem) -> str:
    """Return the name of the form field of a problem of a service."""
    name, _dot, rest = problem.field.partition(".")
    return (
        f"{PREFIX}{rest}" if name == "custom_fields" else name if name == "tags" else problem.field
    )


# --- changes of several rows ----------------------------------------------------------------------


class BulkAttributeFields(forms.Form):
    """The attributes in a `BulkForm`: name it before this class."""

    attributed: type[Model]
    clearable: frozenset[str] = frozenset()

    def __init__(self, *args: Any, **options: Any) -> None:
        super().__init__(*args, **options)
        self.fields["add_tags"] = _tags_field(_("Add tags"), _("Separated by commas."))
        self.fields["remove_tags"] = _tags_field(_("Remove tags"), _("Separated by commas."))
        self.fields["owner"] = _owner_field()
        optional = {"owner"}
        for field in registry.custom_fields_of(self.attributed):
            name = f"{PREFIX}{field.name}"
            self.fields[name] = _value_field(field, required=False)
            if not field.required:
                optional.add(name)
        self.clearable |= optional


def bulk_values(row: Any, values: Mapping[str, Any]) -> tuple[dict[str, Any], dict[str, Any]]:
    """Return the attributes that a row gets by the values of a bulk form, and the other values."""
    attributes: dict[str, Any] = {}
    if "add_tags" in values or "remove_tags" in values:
        kept = {*row.tags} - {*values.get("remove_tags", ())}
        attributes["tags"] = sorted(kept | {*values.get("add_tags", ())})
    if "owner" in values:
        attributes["owner"] = values["owner"]
    if custom_values := _custom_values(values):
        attributes["custom_fields"] = custom_values
    names = {"add_tags", "remove_tags", "owner"}
    others = {
        name: value
        for name, value in values.items()
        if name not in names and not name.startswith(PREFIX)
    }
    return attributes, others


def show_value(row: Any, name: str) -> str:
    """Return the value of a field of a bulk form as text."""
    if name in {"add_tags", "remove_tags"}:
        return ", ".join(row.tags)
    if name.startswith(PREFIX):
        return str(row.custom_fields.get(name.removeprefix(PREFIX), ""))
    return str(getattr(row, name))


# --- lists and pages ------------------------------------------------------------------------------


def show_tags(tags: Sequence[str]) -> SafeString:
    if not tags:
        return display.DASH
    chips = format_html_join(" ", '<span class="cad-tag">{}</span>', ((tag,) for tag in tags))
    return format_html('<span class="cad-tags">{}</span>', chips)


def show_custom_value(field_type: str, value: str) -> SafeString | str:
    if not value:
        return display.DASH
    if field_type == core.FieldType.LINK:
        return format_html(
            '<a class="cad-link" href="{}" rel="noopener noreferrer">{}</a>', value, value
        )
    return value


def facts(row: Any) -> list[tuple[str, SafeString | str]]:
    """Return (label, value) of the attributes of a row; without values only owner and tags."""
    values = [
        (field.label, show_custom_value(field.type, row.custom_fields.get(field.name, "")))
        for field in registry.custom_fields_of(type(row))
    ]
    return [
        (gettext("Owner"), row.owner or display.DASH),
        (gettext("Tags"), show_tags(row.tags)),
        *values,
    ]


def _custom_column(field: CustomField) -> Column:
    def cell(row: Any) -> SafeString | str:
        return show_custom_value(field.type, row.custom_fields.get(field.name, ""))

    return Column(f"{PREFIX}{field.name}", field.label, cell, ordering=sort_keys.sort_key(field))


class _WordsFilter(filters.ValuesFilter):
    """A filter by values of the rows that the user may see, the most frequent ones."""

    words: Func | F

    def lookups(self, request: HttpRequest, admin: Any) -> list[tuple[str, str]]:
        visible = admin.get_queryset(request).order_by().values("pk")
        rows = admin.model._default_manager.filter(pk__in=visible).order_by()
        counted = rows.annotate(word=self.words).values("word").annotate(uses=Count("pk"))
        frequent = counted.order_by("-uses", "word").values_list("word", flat=True)[:MOST]
        # What is chosen is always offered: else the list would not say that it is filtered.
        return [(word, word) for word in sorted({*filter(None, frequent), *self._values})]


class _TagFilter(_WordsFilter):
    title = _("tags")
    parameter_name = "tag"
    words = Func(F("tags"), function="unnest")

    def queryset(self, request: HttpRequest, rows: QuerySet[Any]) -> QuerySet[Any]:
        """Return the rows that have all of the chosen tags."""
        return rows.filter(tags__contains=self._values) if self._values else rows


class _OwnerFilter(_WordsFilter):
    title = _("owner")
    parameter_name = "owner"
    words = F("owner")
    lookup = "owner"


class _CustomFilter(_WordsFilter):
    name: str

    def queryset(self, request: HttpRequest, rows: QuerySet[Any]) -> QuerySet[Any]:
        if not self._values:
            return rows
        matching = Q(pk__in=[])
        for value in self._values:
            matching |= Q(custom_fields__contains={self.name: value})
        return rows.filter(matching)


def _custom_filter(field: CustomField) -> type[_CustomFilter]:
    return type(
        f"{field.name.title()}Filter",
        (_CustomFilter,),
        {
            "title": field.label,
            "parameter_name": f"{PREFIX}{field.name}",
            "name": field.name,
            "words": F(f"custom_fields__{field.name}"),
        },
    )


class AttributedList(lists.ListAdmin[Row]):
    """A list of objects with attributes; name it before other bases."""

    def offered_columns(self) -> tuple[Any, ...]:
        return (
            *super().offered_columns(),
            columns.text("owner", _("owner"), ordering="owner"),
            Column("tags", _("tags"), lambda row: show_tags(row.tags)),
            *map(_custom_column, registry.custom_fields_of(self.model)),
        )

    def offered_filters(self) -> tuple[Any, ...]:
        custom_filters = map(_custom_filter, registry.custom_fields_of(self.model))
        return (*super().offered_filters(), _TagFilter, _OwnerFilter, *custom_filters)

    def exported_names(self) -> Iterable[str]:
        names = (field.name for field in registry.custom_fields_of(self.model))
        values = (f"custom_fields.{name}" for name in names)
        return (*super().exported_names(), "tags", "owner", *values)
