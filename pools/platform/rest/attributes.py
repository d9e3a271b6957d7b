"""Tags, owner and custom fields of objects in REST: fields of serializers, and filters of lists."""

from collections.abc import Mapping
from typing import Any

from django.db.models import Expression, QuerySet
from drf_spectacular.utils import OpenApiParameter, extend_schema_field

from pools.core import custom_fields as core
from pools.platform import attributes
from pools.platform.rest import fields, filters
from pools.platform.rest.serializers import Serializer

PREFIX = "cf_"
CUSTOM_FIELD_FILTERS = OpenApiParameter(
    f"{PREFIX}NAME",
    {"type": "object", "additionalProperties": {"type": "string"}},
    style="form",
    explode=True,
    description="`cf_NAME=value`: objects whose custom field NAME has this value; several must all match.",
)


@extend_schema_field(
    {
        "type": "object",
        "additionalProperties": {"type": "string", "nullable": True},
        "example": {},  # else the API page sends names that there are not
        "description": (
            "Values by the names of custom fields, all as texts; a number may be sent as a JSON number."
            " A change keeps the fields that it leaves out; null removes a value."
        ),
    }
)
class CustomFieldsField(fields.ObjectField):
    """The raw values of custom fields; `pools.platform.attributes` reads them in the change."""


class AttributedSerializer(Serializer):
    """An object with tags, an owner and custom fields, after its other fields; name it after other bases."""

    def get_fields(self) -> dict[str, Any]:
        tags = fields.ListField(core.parse_tags, child=fields.TextField(), required=False)
        owner = fields.TextField(core.parse_owner, required=False)
        custom_fields = CustomFieldsField(required=False)
        added = {"tags": tags, "owner": owner, "custom_fields": custom_fields}
        return {**super().get_fields(), **added}


class AttributeFilterSet(filters.FilterSet):
    """`tag`, `owner` and `cf_NAME` of a list."""

    tag = filters.Filter(
        core.parse_tag,
        repeated=True,
        field_name="tags",
        lookup_expr="contains",
        schema={"type": "array", "items": {"type": "string"}},
        help_text="`tag=a&tag=b`: objects that have all of these tags.",
    )
    owner = filters.Filter(help_text="The exact owner.")
    sort_key_pattern = f"^-?{PREFIX}[a-z][a-z0-9_]*$"

    @classmethod
    def sort_keys(cls, model: Any) -> Mapping[str, Expression]:
        """The custom fields of the model as `cf_NAME`."""
        return {
            f"{PREFIX}{field.name}": attributes.sort_key(field)
            for field in attributes.custom_fields_of(model)
        }

    @property
    def qs(self) -> QuerySet[Any]:
        rows = super().qs
        for parameter in self.data:
            if parameter.startswith(PREFIX):
                contained = self.parameters.parse(parameter, self._parse_custom_field)
                rows = rows.filter(custom_fields__contains=contained or {})
        return rows

    def _parse_custom_field(self, text: str, parameter: str) -> dict[str, str]:
        name = parameter.removeprefix(PREFIX)
        return attributes.parse_filter(self.queryset.model, name, text, parameter)
