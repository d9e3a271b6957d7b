"""custom-fields/: the definitions of custom fields."""

from __future__ import annotations

from typing import Any

from drf_spectacular.utils import OpenApiExample, extend_schema
from rest_framework.request import Request
from rest_framework.response import Response

from pools.core import custom_fields as core
from pools.models import CustomField, CustomFieldType
from pools.platform.attributes import custom_fields, values
from pools.platform.rest import fields, filters, generics, parsing, schema
from pools.platform.rest.serializers import Serializer

_EXAMPLE = OpenApiExample(
    "a choice",
    {
        "name": "environment",
        "label": "Environment",
        "type": "choice",
        "choices": ["production", "test"],
        "object_types": ["cluster", "pool"],
    },
    request_only=True,
)


def _parse_object_type(value: object, path: str) -> str:
    return parsing.choice(value, path, tuple(values.MODELS))


class CustomFieldSerializer(Serializer):
    """A custom field: its values are those of `custom_fields` under its name."""

    id = fields.IntegerField(read_only=True)
    name = fields.TextField(core.parse_name)
    label: Any = fields.TextField(core.parse_label)
    type = fields.ChoiceField(CustomFieldType.values)
    choices = fields.ListField(child=fields.TextField(core.parse_label), required=False)
    object_types = fields.ListField(child=fields.TextField(_parse_object_type))
    required: Any = fields.FlagField(required=False)
    description = fields.DescriptionField(required=False)
    created_at = fields.TimeField(read_only=True)


class CustomFieldFilter(filters.FilterSet):
    name = filters.Filter(help_text="The exact name.")
    object_type = filters.Filter(
        lambda text, name: [_parse_object_type(text, name)],
        field_name="object_types",
        lookup_expr="contains",
        help_text="Fields of this kind of object: cluster, pool, cidr or network.",
    )


class _CustomFieldView(generics.GenericView):
    queryset = CustomField.objects.all()
    serializer_class: Any = CustomFieldSerializer
    lookup_url_kwarg = "custom_field_id"
    absent = "There is no such custom field."


class CustomFields(_CustomFieldView, generics.ListView):
    """Custom fields."""

    idempotent = ("POST",)
    filterset_class = CustomFieldFilter
    orderings = {"id": ("id",), "name": ("name",)}

    @extend_schema(responses={201: CustomFieldSerializer}, examples=[_EXAMPLE])
    def post(self, request: Request) -> Response:
        """Define a custom field."""
        definition = self.read(request)
        return self.create(lambda: custom_fields.create(definition, author=self.author()))


class CustomFieldView(_CustomFieldView, generics.DetailView):
    """A custom field."""

    @extend_schema(examples=schema.example({"label": "Rack"}))
    def patch(self, request: Request, custom_field_id: int) -> Response:
        """Change a custom field; a new name is that of the stored values, too."""
        row = self.get_object()
        changes = self.read(request, partial=True)
        return self.respond(custom_fields.change(row, changes, author=self.author()))

    def delete(self, request: Request, custom_field_id: int) -> Response:
        """Delete a custom field that no object has a value of."""
        custom_fields.delete(self.get_object(), author=self.author())
        return Response(status=204)
