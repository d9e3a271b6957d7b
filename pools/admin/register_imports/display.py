"""What an imported register says about an address."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from django.utils.translation import gettext_lazy as _
from django_stubs_ext import StrOrPromise

from pools.core.register_import import attributes as core

# Of the details that an import keeps beside an object (core/register_import/parsing.py).
_DETAILS: dict[str, StrOrPromise] = {
    "status": _("Status"),
    "role": _("Role"),
    "dns_name": _("DNS name"),
    "tenant": _("Tenant"),
    "owner": _("Owner"),
    "vrf": "VRF",
    "site": _("Site"),
    "vlan": "VLAN",
    "mac": _("MAC address"),
    "interface": _("Interface"),
    "device": _("Device"),
    "note": _("Note"),
}


def imported_facts(record: Mapping[str, Any] | None) -> Iterator[tuple[StrOrPromise, str]]:
    """Yield (label, text) of what an imported register says about an address."""
    if record is None:
        return
    if record["description"]:
        yield _("Description"), record["description"]
    yield from (
        (label, record["details"][name])
        for name, label in _DETAILS.items()
        if name in record["details"]
    )
    yield from attributes(record["details"])


def attributes(details: Mapping[str, str]) -> Iterator[tuple[StrOrPromise, str]]:
    """Yield (label, text) of the tags and custom fields of an imported register."""
    if tags := details.get("tags"):
        yield _("Tags"), tags.replace(",", ", ")
    for name in filter(core.is_custom, details):
        yield name.removeprefix(core.PREFIX), details[name]
