"""Tags, owner and custom fields of objects in REST: fields of serializers, and filters of lists."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from django.db.models import Expression, QuerySet
from drf_spectacular.utils import OpenApiParameter, extend_schema_field

from pools.core import custom_fields as core
from pools.platform.attributes import registry, sort_keys, values
from pools.platform.rest import fields, filters

PREFIX = "cf_"
CUSTOM_FIELD_FILTERS = OpenApiParameter(
    f"{PREFIX}NAME",
    {"type": "object", "additionalProperties": {"type": "string"}},
    style="form",
    explode=True,
    description="`cf_NAME=value`: objects whose custom field NAME has this value; several must all match.",
)


class TagsField(fields.ListField):
    """Tags, normalized to slugs; a change replaces all of them."""

    def __init__(self, **options: Any) -> None:
        options.setdefault("required", False)
        super().__init__(core.parse_tags, **{"child": fields.TextField(), **options})


class OwnerField(fields.TextField):
    """A team or person: a name or a mail address."""

    def __init__(self, **options: Any) -> None:
        options.setdefault("required", False)
        super().__init__(core.parse_owner, **options)


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
    """The raw values of custom fields; `pools.platform.attributes.values` reads them in the change."""

    def __init__(self, **options: Any) -> None:
        options.setdefault("required", False)
        super().__init__(**options)


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
            f"{PREFIX}{field.name}": sort_keys.sort_key(field)
            for field in registry.custom_fields_of(model)
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
        return values.parse_filter(self.queryset.model, name, text, parameter)
