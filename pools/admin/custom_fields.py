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
from pools.platform.attributes import custom_fields, registry

LIST = "admin:pools_customfield_changelist"
_NAMES = ("name", "label", "type", "object_types", "required", "description")


def _object_types() -> list[tuple[str, str]]:
    return [
        (name, capfirst(str(model._meta.verbose_name_plural)))
        for name, model in registry.MODELS.items()
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
        lambda line: core.parse_choices([line.strip()])[0],
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

    def clean_choices(self) -> list[str]:
        with pages.errors_at_field(self, "choices"):
            return core.parse_choices(self.cleaned_data["choices"])
        return []

    def values(self) -> dict[str, Any]:
        return {**self.cleaned_data, "description": self.cleaned_data["description"] or ""}


def _field_of_problem(problem: errors.FieldProblem) -> str:
    return "name" if problem.code == errors.AlreadyExists.code else problem.field


def _add(request: HttpRequest) -> HttpResponse:
    form = CustomFieldForm(request.POST or None)
    if request.method == "POST" and form.is_valid():
        with pages.errors_at_field(form, _field_of_problem):
            row = custom_fields.create(form.values(), author=pages.author(request))
            return pages.done(
                request, gettext("Custom field %(field)s was added.") % {"field": row}, LIST
            )
    return pages.form_page(
        request,
        CustomField,
        form,
        title=gettext("Add custom field"),
        intro=gettext(
            "A custom field appears in the forms, lists, exports and REST of its objects."
        ),
    )


def _shown_values(row: CustomField) -> dict[str, Any]:
    values = {name: getattr(row, name) for name in _NAMES}
    return {**values, "choices": "\n".join(row.choices)}


def _page(request: HttpRequest, row: CustomField) -> HttpResponse:
    """Show the form; who may not change custom fields is answered 403."""
    pages.require(request, "pools.change_customfield")
    form = CustomFieldForm(request.POST or None)
    form.show_row(row, _shown_values)
    if request.method == "POST" and form.is_valid():
        with pages.errors_at_field(form, _field_of_problem):
            custom_fields.change(
                row, form.values(), author=pages.author(request), version=form.check_version
            )
            return pages.done(
                request, gettext("Custom field %(field)s was changed.") % {"field": row}, LIST
            )
    return pages.form_page(
        request,
        row,
        form,
        title=gettext("Edit custom field %(field)s") % {"field": row},
        intro=gettext(
            "A new name is also that of the stored values; values in use are never lost."
        ),
        back=reverse(LIST),
    )


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


def _user_count(row: CustomField) -> object:
    return display.number(sum(custom_fields.count_values(row.name).values()))


def _actions(row: CustomField) -> object:
    return display.link(reverse("admin:pools_customfield_delete", args=[row.pk]), gettext("Delete"))


@admin.register(CustomField)
class CustomFieldAdmin(lists.ListAdmin[CustomField]):
    list_display = (
        columns.link("label", _("label"), ordering="label"),
        columns.code("name", _("name")),
        columns.label("type", _("type"), ordering="type"),
        Column("object_types", _("objects"), _object_type_names),
        Column("values", _("objects with a value"), _user_count),
        Column("delete", _("delete"), _actions),
    )
    search_fields = ("name", "label")
    search_help_text = _("Name or label")
    list_before_template = "cadastre/custom_fields_intro.html"
    exported = ("id", "name", "label", "type", "choices", "object_types", "required", "description")
    ordering = ("name",)
    list_pages = (Page("add", _add, "pools.add_customfield"),)
    row_pages = (
        Page("change", _page),
        Page("delete", _delete, "pools.delete_customfield"),
        lists.history(lambda row: {"q": row.name, "type": "custom_field"}, "pools.view_event"),
    )
