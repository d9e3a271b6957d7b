"""Custom fields of the objects that an import makes, and the attributes that their rows give them."""

from collections.abc import Mapping
from typing import Any

from pools.core.register_import import attributes as core, columns
from pools.core.register_import.attributes import Attributes, Definitions
from pools.core.register_import.parsing import CONTAINER, POOL
from pools.models import ATTRIBUTES, Container, CustomField, PoolCIDR, RegisterRow
from pools.platform import attributes as values

MODELS = {CONTAINER: Container, POOL: PoolCIDR}


def definitions(*, lock: bool = False) -> dict[str, Definitions]:
    """Return the custom fields of containers and of CIDRs; `lock` keeps them until the transaction ends."""
    if lock:
        values.lock_definitions()
    return {
        target: {row.name: (row.type, row.choices) for row in values.custom_fields_of(model)}
        for target, model in MODELS.items()
    }


def column_names() -> dict[str, str]:
    """Return the names of custom fields by the names that their column may have: the name and the label."""
    names: dict[str, str] = {}
    for row in CustomField.objects.filter(object_types__overlap=["cidr", "container"]):
        names |= {columns.clean(row.label): row.name, columns.clean(row.name): row.name}
    return names


def of_object(row: Any) -> Attributes:
    return Attributes(**{name: getattr(row, name) for name in ATTRIBUTES})


def assign(row: Any, attributes: Attributes) -> bool:
    """Set the attributes of an object without saving it; return True if that changes anything."""
    changes = attributes != of_object(row)
    for name in ATTRIBUTES:
        setattr(row, name, getattr(attributes, name))
    return changes


def follow(
    row: Any, before: Mapping[str, str], after: Mapping[str, str], defined: Definitions
) -> bool:
    """Set what the source has changed of an object's attributes, without saving it; return True if that is anything."""
    sources = (core.read_attributes(details, defined)[0] for details in (before, after))
    return assign(row, core.merge(of_object(row), *sources))


def revert(row: Any, imported: RegisterRow, defined: Definitions) -> bool:
    """Set the former values of what an import has written, without saving them; return True if that is anything."""
    before = imported.before or {}
    # A custom field may have been deleted since.
    kept = {name: value for name, value in before["custom_fields"].items() if name in defined}
    former = Attributes(before["tags"], before["owner"], kept)
    details = (before.get("details") or {}, imported.details)
    written = core.merge(former, *(core.read_attributes(texts, defined)[0] for texts in details))
    return assign(row, core.merge(of_object(row), written, former, keep=True))
