"""The kinds of objects that have tags, an owner and custom fields."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from pools.models import CustomField

MODELS: dict[str, Any] = {}  # by their names in REST; filled by pools.extension


def object_type(model: Any) -> str:
    """Return the name of a model's kind of object."""
    return next(name for name, attributed in MODELS.items() if attributed is model)


def custom_fields_of(model: Any) -> Sequence[CustomField]:
    """Return the custom fields that objects of a model have, in the order of their names."""
    return list(CustomField.objects.filter(object_types__contains=[object_type(model)]))
