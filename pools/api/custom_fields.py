"""custom-fields/: the definitions of custom fields."""

from typing import Any

from pools.core import custom_fields as core
from pools.models import CustomField, CustomFieldType
from pools.platform import attributes
from pools.platform.rest import fields, filters, generics, parsing, schema
from pools.platform.rest.serializers import Serializer


def _parse_object_type(value: object, path: str) -> str:
    return parsing.choice(value, path, tuple(attributes.MODELS))


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


class CustomFields(generics.ModelViewSet):
    """Custom fields."""

    queryset = CustomField.objects.all()
    serializer_class = CustomFieldSerializer
    filterset_class = CustomFieldFilter
    orderings = {"id": ("id",), "name": ("name",)}
    lookup_url_kwarg = "custom_field_id"
    absent = "There is no such custom field."
    row_text = "A custom field."

    @schema.example(
        {
            "name": "environment",
            "label": "Environment",
            "type": "choice",
            "choices": ["production", "test"],
            "object_types": ["cluster", "pool"],
        },
        "a choice",
    )
    def perform_create(self, definition: dict[str, Any]) -> CustomField:
        """Define a custom field."""
        return attributes.create(definition, author=self.author())

    @schema.example({"label": "Rack"})
    def perform_update(self, row: CustomField, changes: dict[str, Any]) -> CustomField:
        """Change a custom field; a new name is that of the stored values, too."""
        return attributes.change(row, changes, author=self.author())

    def perform_destroy(self, row: CustomField) -> None:
        """Delete a custom field that no object has a value of."""
        attributes.delete(row, author=self.author())
