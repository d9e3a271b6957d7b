"""Custom fields: list, and forms to add, edit and delete their definitions."""

from typing import Any

from django import forms
from django.contrib import admin
from django.http import HttpRequest
from django.urls import reverse
from django.utils.text import capfirst
from django.utils.translation import gettext, gettext_lazy as _

from pools.core import custom_fields as core, errors
from pools.models import CustomField, CustomFieldType
from pools.platform import attributes
from pools.platform.admin import columns, display, forms as fields, lists, objects, pages, row_forms
from pools.platform.admin.columns import Column
from pools.platform.events import Author

LIST = "admin:pools_customfield_changelist"
_NAMES = ("name", "label", "type", "object_types", "required", "description")


def _object_types() -> list[tuple[str, str]]:
    return [
        (name, capfirst(str(model._meta.verbose_name_plural)))
        for name, model in attributes.MODELS.items()
    ]


class CustomFieldForm(row_forms.ObjectForm):
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

    class Meta:
        model = CustomField
        fields = ("name", "label", "type", "choices", "object_types", "required", "description")

    def shown_values(self, row: CustomField) -> dict[str, Any]:
        return {**super().shown_values(row), "choices": "\n".join(row.choices)}

    def clean(self) -> dict[str, Any]:
        cleaned = super().clean() or self.cleaned_data
        return {
            **cleaned,
            "choices": [*cleaned.get("choices", ())],
            "description": cleaned.get("description") or "",
        }


def _object_type_names(row: CustomField) -> str:
    labels = dict(_object_types())
    return ", ".join(labels[name] for name in row.object_types)


def _deletion_link(row: CustomField) -> object:
    return display.link(reverse("admin:pools_customfield_delete", args=[row.pk]), gettext("Delete"))


@admin.register(CustomField)
class CustomFieldAdmin(objects.ObjectAdmin[CustomField]):
    form = CustomFieldForm
    intro = _(
        "A custom field appears in the forms, lists, exports and REST of its objects. A new name"
        " is also that of the stored values; values in use are never lost."
    )
    list_display = (
        columns.link("label", _("label"), ordering="label"),
        columns.code("name", _("name")),
        columns.label("type", _("type"), ordering="type"),
        Column("object_types", _("objects"), _object_type_names),
        Column(
            "values",
            _("objects with a value"),
            lambda row: display.number(attributes.count_values(row)),
        ),
        Column("delete", _("delete"), _deletion_link),
    )
    search_help_text = _("Name or label")
    list_before_template = "cadastre/custom_fields_intro.html"
    exported = ("id", *_NAMES, "choices")
    ordering = ("name",)
    row_pages = (
        lists.history(lambda row: {"q": row.name, "type": "custom_field"}, "pools.view_event"),
    )

    def field_of_problem(self, problem: errors.FieldProblem) -> str:
        return "name" if problem.code == errors.AlreadyExists.code else problem.field

    def save_row(self, row: CustomField | None, form: Any, author: Author) -> CustomField:
        definition = form.cleaned_data
        if row is None:
            return attributes.create(definition, author=author)
        return attributes.change(row, definition, author=author, version=form.check_version)

    def delete_model(self, request: HttpRequest, obj: CustomField) -> None:
        attributes.delete(obj, author=pages.author(request))

    def deletion_effects(self, row: CustomField) -> list[str]:
        return [gettext("It is deleted only if no object has a value of it.")]
