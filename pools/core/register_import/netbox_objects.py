"""Objects of NetBox's REST API, of NetBox 3.x and 4.x: the texts of their rows by field."""

import json
import re
from collections.abc import Callable, Mapping
from typing import Any

from pools.core.register_import import attributes
from pools.core.register_import.columns import ADDRESS, PREFIX, RANGE

Json = Mapping[str, Any]


def _name(value: Any, key: str = "name") -> str:
    """Return a name of a nested object, or the value of a choice; "" for null."""
    if isinstance(value, Mapping):
        value = value.get(key)
    return "" if value is None else str(value)


def _shared(item: Json) -> dict[str, str]:
    tags = [_name(tag, "slug") or _name(tag) for tag in item.get("tags") or ()]
    values = item.get("custom_fields") or {}
    return {
        "tags": ",".join(tags),
        **{f"{attributes.PREFIX}{name}": _custom_text(value) for name, value in values.items()},
        **{
            f"{attributes.REFERENCE}{name}": ",".join(str(item["id"]) for item in _objects(value))
            for name, value in values.items()
        },
        "external_id": _name(item.get("id")),
        "status": _name(item.get("status"), "value"),
        "vrf": _name(item.get("vrf")),
        "tenant": _name(item.get("tenant")),
        "description": str(item.get("description") or ""),
        "note": str(item.get("comments") or ""),
        "owner": _name(item.get("owner")),
        "mark_utilized": "yes" if item.get("mark_utilized") else "",
    }


def _custom_text(value: Any) -> str:
    """Return the value of a custom field as NetBox's CSV export writes it: of objects what is displayed; "" for null."""
    if isinstance(value, str):
        return value
    if objects := _objects(value):
        return ",".join(
            _name(item, "display") or _name(item) or str(item["id"]) for item in objects
        )
    if isinstance(value, list) and all(isinstance(item, str) for item in value):
        return ",".join(value)
    return "" if value is None else json.dumps(value, ensure_ascii=False)


def read_text(value: Any) -> str:
    """Return the text of a field of another register; of an object its name, of PowerShell's addresses the address."""
    if isinstance(value, Mapping):
        names = ("IPAddressToString", "name", "value", "display")
        return next((_name(value, key) for key in names if value.get(key)), "")
    return _custom_text(value)


def _objects(value: Any) -> list[Json]:
    """Return the objects that a custom field refers to, one or several; [] for any other value."""
    items: list[Any] = value if isinstance(value, list) else [value]
    references = [item for item in items if isinstance(item, dict) and {"id", "url"} <= item.keys()]
    return [*references] if len(references) == len(items) else []


# What no text of PostgreSQL can have.
_UNSTORABLE = re.compile("[\0\ud800-\udfff]")


def _clean(texts: dict[str, str]) -> dict[str, str]:
    return {
        _UNSTORABLE.sub("\ufffd", name): _UNSTORABLE.sub("\ufffd", text)
        for name, text in texts.items()
        if text
    }


def _aggregate(item: Json) -> dict[str, str]:
    own = {"prefix": str(item.get("prefix", "")), "rir": _name(item.get("rir"))}
    return _clean({**_shared(item), **own})


def _prefix(item: Json) -> dict[str, str]:
    # Until NetBox 4.1 a prefix has a site, then a scope: a site, a location, a region or a group of sites.
    site = item.get("scope") or item.get("site")
    return _clean(
        {
            **_shared(item),
            "prefix": str(item.get("prefix", "")),
            "site": _name(site),
            "role": _name(item.get("role")),
            "vlan": _name(item.get("vlan"), "display"),
            "is_pool": "yes" if item.get("is_pool") else "",
        }
    )


def _range(item: Json) -> dict[str, str]:
    ends = {"first": str(item.get("start_address", "")), "last": str(item.get("end_address", ""))}
    return _clean({**_shared(item), **ends, "role": _name(item.get("role"))})


def _address(item: Json) -> dict[str, str]:
    assigned = item.get("assigned_object") or {}
    parent = assigned.get("device") or assigned.get("virtual_machine")
    return _clean(
        {
            **_shared(item),
            "address": str(item.get("address", "")),
            "role": _name(item.get("role"), "value"),
            "dns_name": str(item.get("dns_name") or ""),
            # A device may have no name.
            "holder": _name(parent) or _name(parent, "display"),
            "interface": _name(assigned) if parent else "",
        }
    )


LISTS: tuple[tuple[str, str, Callable[[Json], dict[str, str]]], ...] = (
    ("aggregates", PREFIX, _aggregate),
    ("prefixes", PREFIX, _prefix),
    ("ip-ranges", RANGE, _range),
    ("ip-addresses", ADDRESS, _address),
)


def read_object(item: object) -> tuple[str, dict[str, str]] | None:
    """Return the kind of row and the texts of an object that a file has; None for what is no such object of NetBox."""
    if not isinstance(item, Mapping):
        return None
    path = (
        "aggregates" if "rir" in item else _PATHS.get(next(filter(_PATHS.__contains__, item), ""))
    )
    try:
        return next(((kind, texts(item)) for name, kind, texts in LISTS if name == path), None)
    except (AttributeError, KeyError, TypeError):  # a value of another type than NetBox gives it
        return None


_PATHS = {"prefix": "prefixes", "start_address": "ip-ranges", "address": "ip-addresses"}
