"""Tags, owner and custom fields in the admin: fields of forms, and columns, filters and exports of lists."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, TypeVar

from django import forms
from django.db.models import Count, F, Func, Model, QuerySet
from django.http import HttpRequest
from django.utils.html import format_html, format_html_join
from django.utils.safestring import SafeString
from django.utils.translation import gettext, gettext_lazy as _

from pools.core import custom_fields as core
from pools.models import ATTRIBUTES, CustomField, CustomFieldType
from pools.platform import attributes as attribute_values, events
from pools.platform.admin import (
    bulk_edit,
    columns,
    display,
    filters,
    forms as fields,
    lists,
    row_forms,
)
from pools.platform.admin.columns import Column

# The field of a form has the path of the problems that services report.
PATH = "custom_fields."
PREFIX = "cf_"  # of columns and filters
MOST = 200  # choices of a filter

Row = TypeVar("Row", bound=Model)


# --- forms ----------------------------------------------------------------------------------------


def _parse_tag_list(text: str) -> list[str]:
    return core.parse_tags([tag for tag in text.split(",") if tag.strip()])


def _add_fields(
    form: forms.BaseForm, model: type[Model], tags: Mapping[str, Any], *, bulk: bool
) -> None:
    """Add a field for each name of tags with its label, and those of the owner and of the custom fields."""
    for name, label in tags.items():
        form.fields[name] = fields.ParsedField(
            _parse_tag_list,
            label=label,
            help_text=_("Separated by commas."),
            required=False,
            widget=fields.text(),
        )
    form.fields["owner"] = fields.ParsedField(
        core.parse_owner,
        label=_("Owner"),
        required=False,
        widget=fields.text(),
        help_text=_("A team or person: a name or a mail address."),
    )
    for field in attribute_values.custom_fields_of(model):
        form.fields[f"{PATH}{field.name}"] = _value_field(
            field, required=field.required and not bulk
        )


def _value_field(custom_field: CustomField, *, required: bool) -> forms.Field:
    options: dict[str, Any] = {
        "label": custom_field.label,
        "help_text": custom_field.description,
        "required": required,
    }
    if custom_field.type == CustomFieldType.CHOICE:
        choices = [("", display.DASH), *((choice, choice) for choice in custom_field.choices)]
        return forms.ChoiceField(choices=choices, widget=fields.select(), **options)
    return fields.ParsedField(
        lambda text: core.parse_value(custom_field.type, custom_field.choices, text),
        widget=fields.text(),
        **options,
    )


class AttributeFields(row_forms.Versioned):
    """The attributes of an object of `attributed`, at the end of a form; `cleaned_data` has them as services take them.

    Name it before the other bases of the form.
    """

    attributed: type[Model]

    def __init__(self, *args: Any, **options: Any) -> None:
        super().__init__(*args, **options)
        _add_fields(self, self.attributed, {"tags": _("Tags")}, bulk=False)

    def clean(self) -> dict[str, Any]:
        """Leave out the values of fields that the page did not have; refuse those that it still has."""
        values = super().clean() or self.cleaned_data
        sent = {name for name in self.data if name.startswith(PATH)}
        if sent - {*self.fields}:
            message = gettext(
                "A custom field was renamed or deleted meanwhile. Open the page again."
            )
            raise forms.ValidationError(message, code="unknown_custom_field")
        changes, others = _split(values)
        custom_values = {name: value for name, value in changes.items() if f"{PATH}{name}" in sent}
        texts = {"tags": values.get("tags") or [], "owner": values.get("owner") or ""}
        return {**others, **texts, "custom_fields": custom_values}

    def shown_values(self, row: Any) -> dict[str, Any]:
        form: Any = super()
        return {**form.shown_values(row), **initial(row)}

    def _column(self, name: str) -> str:
        return "custom_fields" if name.startswith(PATH) else super()._column(name)

    def attributes(self) -> dict[str, Any]:
        """Return the attributes as the services take them."""
        return {name: self.cleaned_data[name] for name in ATTRIBUTES}

    def remove_attributes(self) -> None:
        for name in [
            name for name in self.fields if name in {"tags", "owner"} or name.startswith(PATH)
        ]:
            del self.fields[name]


def _split(values: Mapping[str, Any]) -> tuple[dict[str, Any], dict[str, Any]]:
    """Return the values of custom fields by their names, and the others."""
    custom = {name: value for name, value in values.items() if name.startswith(PATH)}
    others = {name: value for name, value in values.items() if name not in custom}
    return {name.removeprefix(PATH): value for name, value in custom.items()}, others


def initial(row: Any) -> dict[str, str]:
    """Return the values of a row as the form shows them."""
    values = {f"{PATH}{name}": value for name, value in row.custom_fields.items()}
    return {"tags": ", ".join(row.tags), "owner": row.owner, **values}


# --- changes of several rows ----------------------------------------------------------------------


class BulkAttributeFields(forms.Form):
    """The attributes in a `BulkForm`: name it before this class."""

    attributed: type[Model]
    clearable: frozenset[str] = frozenset()

    def __init__(self, *args: Any, **options: Any) -> None:
        super().__init__(*args, **options)
        tags = {"add_tags": _("Add tags"), "remove_tags": _("Remove tags")}
        _add_fields(self, self.attributed, tags, bulk=True)
        custom_fields = attribute_values.custom_fields_of(self.attributed)
        optional = {f"{PATH}{field.name}" for field in custom_fields if not field.required}
        self.clearable |= {"owner", *optional}


def bulk_values(row: Any, values: Mapping[str, Any]) -> dict[str, Any]:
    """Return the values of a bulk form as the service takes them for a row."""
    custom_values, changes = _split(values)
    added, removed = changes.pop("add_tags", None), changes.pop("remove_tags", None)
    if added or removed:
        changes["tags"] = sorted({*row.tags} - {*(removed or ())} | {*(added or ())})
    if custom_values:
        changes["custom_fields"] = custom_values
    return changes


def bulk_changes(
    model: type[Model],
    change: Callable[[Any, Mapping[str, Any], events.Author], Any],
    *,
    permission: str = "",
    rows: Callable[[HttpRequest], QuerySet[Any]] | None = None,
    show: Callable[[Any, str], str] | None = None,
    **more_fields: forms.Field,
) -> bulk_edit.BulkEdit:
    """Return the change of the attributes of several rows, of their description and of other fields.

    `change` calls the service with a row, its values as `bulk_values` returns them, and the author.
    """
    namespace: dict[str, Any] = {"attributed": model}
    if hasattr(model, "description"):
        namespace["clearable"] = frozenset({"description"})
        namespace["description"] = fields.description_field()
    bases = (bulk_edit.BulkForm, BulkAttributeFields)
    meta = model._meta
    return bulk_edit.BulkEdit(
        model=model,
        permissions=(permission or f"{meta.app_label}.change_{meta.model_name}",),
        rows=rows or (lambda _request: model._default_manager.all()),
        form=type(f"{model.__name__}BulkForm", bases, {**namespace, **more_fields}),
        change=lambda row, values, author: change(row, bulk_values(row, values), author),
        show=show or show_value,
    )


def show_value(row: Any, name: str) -> str:
    """Return the value of a field of a bulk form as text."""
    if name in {"add_tags", "remove_tags"}:
        return ", ".join(row.tags)
    if name.startswith(PATH):
        return str(row.custom_fields.get(name.removeprefix(PATH), ""))
    return str(getattr(row, name))


# --- lists and pages ------------------------------------------------------------------------------


def show_tags(tags: Sequence[str]) -> SafeString:
    if not tags:
        return display.DASH
    chips = format_html_join(" ", '<span class="cad-tag">{}</span>', ((tag,) for tag in tags))
    return format_html('<span class="cad-tags">{}</span>', chips)


def _custom_column(field: CustomField) -> Column:
    def cell(row: Any) -> SafeString | str:
        value = row.custom_fields.get(field.name, "")
        if not value or field.type != CustomFieldType.LINK:
            return value or display.DASH
        return format_html(
            '<a class="cad-link" href="{}" rel="noopener noreferrer">{}</a>', value, value
        )

    name, order = f"{PREFIX}{field.name}", attribute_values.sort_key(field)
    return Column(name, field.label, cell, ordering=order)


def facts(row: Any) -> tuple[list[tuple[str, SafeString | str]], list[str]]:
    """Return (label, value) of the description, or note, and the attributes of a row; and labels without a value."""
    labels = {"description": gettext("Description"), "note": gettext("Note")}
    values = [(label, getattr(row, name)) for name, label in labels.items() if hasattr(row, name)]
    if hasattr(row, "tags"):
        custom_columns = map(_custom_column, attribute_values.custom_fields_of(type(row)))
        values += [
            (gettext("Owner"), row.owner),
            (gettext("Tags"), show_tags(row.tags)),
            *((str(column.short_description), column(row)) for column in custom_columns),
        ]
    filled = [(label, value) for label, value in values if value and value != display.DASH]
    empty = [label for label, _value in values if label not in dict(filled)]
    return filled, empty


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

    @staticmethod
    def select(rows: QuerySet[Any], tags: list[str]) -> QuerySet[Any]:
        """Return the rows that have all of the chosen tags."""
        return rows.filter(tags__contains=tags) if tags else rows.none()


def _words_filter(title: Any, parameter: str, column: str) -> type[_WordsFilter]:
    attributes = {"title": title, "parameter_name": parameter}
    column_attributes = {"lookup": column, "words": F(column)}
    return type(f"{parameter.title()}Filter", (_WordsFilter,), attributes | column_attributes)


class AttributedList(lists.ListAdmin[Row]):
    """A list of objects with attributes; name it before other bases."""

    def offered_columns(self) -> tuple[Any, ...]:
        return (
            *super().offered_columns(),
            columns.text("owner", _("owner"), ordering="owner"),
            Column("tags", _("tags"), lambda row: show_tags(row.tags)),
            *map(_custom_column, attribute_values.custom_fields_of(self.model)),
        )

    def offered_filters(self) -> tuple[Any, ...]:
        custom_filters = (
            _words_filter(field.label, f"{PREFIX}{field.name}", f"custom_fields__{field.name}")
            for field in attribute_values.custom_fields_of(self.model)
        )
        owner_filter = _words_filter(_("owner"), "owner", "owner")
        return (*super().offered_filters(), _TagFilter, owner_filter, *custom_filters)

    def exported_names(self) -> Iterable[str]:
        custom_fields = attribute_values.custom_fields_of(self.model)
        values = (f"custom_fields.{field.name}" for field in custom_fields)
        return (*super().exported_names(), "tags", "owner", *values)
