"""The value of a custom field as a database expression that orders lists."""

from __future__ import annotations

from decimal import Decimal

from django.db.models import Case, DecimalField, Expression, TextField, Value, When
from django.db.models.fields.json import KeyTextTransform
from django.db.models.functions import Cast, Coalesce, Left
from django.db.models.lookups import Regex

from pools.core import custom_fields as core
from pools.models import CustomField

_NUMBER = DecimalField(max_digits=46, decimal_places=15)  # what custom_fields.parse_value accepts
_NO_NUMBER = Decimal(-(10**30))  # less than any value
_LENGTH = 150  # characters of a text that count: cursors of REST have them


def sort_key(field: CustomField) -> Expression:
    """Return numbers in their order, other values as texts; objects without a value come first."""
    text = KeyTextTransform(field.name, "custom_fields")
    if field.type != core.FieldType.NUMBER:
        return Coalesce(Left(text, _LENGTH), Value(""), output_field=TextField())
    return Case(
        When(Regex(text, r"^-?[0-9]{1,30}(\.[0-9]{1,15})?$"), then=Cast(text, _NUMBER)),
        default=Value(_NO_NUMBER, output_field=_NUMBER),
        output_field=_NUMBER,
    )
