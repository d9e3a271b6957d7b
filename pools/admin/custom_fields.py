"""Custom fields: list, and forms to add, edit and delete their definitions."""

from __future__ import annotations

from typing import Any

from django import forms
from django.contrib import admin
from django.http import HttpRequest, HttpResponse, HttpResponseBase
from django.urls import reverse
from django.utils.text import capfirst
from django.utils.translation import gettext
from django.utils.translation import gettext_lazy as _

from pools.core import custom_fields as core
from pools.core import errors
from pools.models import CustomField
from pools.models.attributes import CustomFieldType
from pools.platform.admin import columns, display, lists, pages, row_forms
from pools.platform.admin import forms as fields
from pools.platform.admin.columns import Column
from pools.platform.admin.lists import Page
from pools.platform.attributes import custom_fields, values

LIST = "admin:pools_customfield_changelist"
_NAMES = ("name", "label", "type", "object_types", "required", "description")


def _object_types() -> list[tuple[str, str]]:
    return [
        (name, capfirst(str(model._meta.verbose_name_plural)))
        for name, model in values.MODELS.items()
    ]


class CustomFieldForm(row_forms.RowForm):
    name = fields.ParsedField(
        core.parse_name,
        label=_("Name"),
        widget=fields.text(placeholder="cost_center"),
        help_text=_(
            "The name in REST, exports and metrics: lower-case letters, digits and underscores."
        ),
    )
    label = fields.ParsedField(core.parse_label, label=_("Label"), widget=fields.text())
    type = forms.ChoiceField(
        label=_("Type"), choices=CustomFieldType.choices, widget=fields.select()
    )
    choices = fields.LinesField(
        core.parse_label,
        label=_("Choices"),
        widget=fields.lines(4),
        help_text=_("One per line, only for the type choice."),
    )
    object_types = forms.MultipleChoiceField(
        label=_("Objects"), choices=_object_types, widget=fields.ticks()
    )
    required = forms.BooleanField(
        label=_("Required"),
        required=False,
        widget=fields.tick(),
        help_text=_("Forms and requests that set custom fields must have a value then."),
    )
    description = fields.description_field()

    def clean(self) -> dict[str, Any]:
        cleaned = super().clean() or self.cleaned_data
        return {
            **cleaned,
            "choices": [*cleaned.get("choices", ())],
            "description": cleaned.get("description") or "",
        }


def _shown_values(row: CustomField) -> dict[str, Any]:
    return {**{name: getattr(row, name) for name in _NAMES}, "choices": "\n".join(row.choices)}


def _field_of_problem(problem: errors.FieldProblem) -> str:
    return "name" if problem.code == errors.AlreadyExists.code else problem.field


def _form(request: HttpRequest, row: CustomField | None = None) -> HttpResponse:
    """Add a custom field, or change this one."""
    form = CustomFieldForm(request.POST or None)
    title = gettext("Add custom field")
    if row is not None:
        form.show_row(row, _shown_values)
        title = gettext("Edit custom field %(field)s") % {"field": row}
    if request.method == "POST" and form.is_valid():
        definition, author = form.cleaned_data, pages.author(request)
        with pages.errors_at_field(form, _field_of_problem):
            saved = (
                custom_fields.change(row, definition, author=author, version=form.check_version)
                if row
                else custom_fields.create(definition, author=author)
            )
            message = gettext("Custom field %(field)s was saved.") % {"field": saved}
            return pages.done(request, message, LIST)
    intro = gettext(
        "A custom field appears in the forms, lists, exports and REST of its objects. A new name"
        " is also that of the stored values; values in use are never lost."
    )
    about = row or CustomField
    return pages.form_page(request, about, form, title=title, intro=intro, back=reverse(LIST))


def _delete(request: HttpRequest, row: CustomField) -> HttpResponseBase:
    return pages.deletion(
        request,
        row,
        lambda: custom_fields.delete(row, author=pages.author(request)),
        title=gettext("Delete the custom field %(field)s?") % {"field": row},
        effects=[gettext("It is deleted only if no object has a value of it.")],
        deleted=gettext("Custom field %(field)s was deleted.") % {"field": row},
        back=reverse(LIST),
    )


def _object_type_names(row: CustomField) -> str:
    labels = dict(_object_types())
    return ", ".join(labels[name] for name in row.object_types)


def _deletion_link(row: CustomField) -> object:
    return display.link(reverse("admin:pools_customfield_delete", args=[row.pk]), gettext("Delete"))


@admin.register(CustomField)
class CustomFieldAdmin(lists.ListAdmin[CustomField]):
    list_display = (
        columns.link("label", _("label"), ordering="label"),
        columns.code("name", _("name")),
        columns.label("type", _("type"), ordering="type"),
        Column("object_types", _("objects"), _object_type_names),
        Column(
            "values",
            _("objects with a value"),
            lambda row: display.number(custom_fields.count_values(row)),
        ),
        Column("delete", _("delete"), _deletion_link),
    )
    search_help_text = _("Name or label")
    list_before_template = "cadastre/custom_fields_intro.html"
    exported = ("id", *_NAMES, "choices")
    ordering = ("name",)
    list_pages = (Page("add", _form, "pools.add_customfield"),)
    row_pages = (
        Page("change", _form, "pools.change_customfield"),
        Page("delete", _delete, "pools.delete_customfield"),
        lists.history(lambda row: {"q": row.name, "type": "custom_field"}, "pools.view_event"),
    )
