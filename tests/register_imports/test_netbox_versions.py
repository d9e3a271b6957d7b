"""The objects of NetBox's API in the form of each version: 3.0 has fewer fields, 4.2 has scopes, 4.5 has owners.

The fields are those of netbox/ipam/api/serializers.py of v3.0.12, v3.7.8 and v4.1.11, and of serializers_/ of v4.6.8.
"""

from __future__ import annotations

from typing import Any

import pytest

from pools.register.imports import netbox
from tests.register_imports.netbox_server import NetBox, choice
from tests.register_imports.sources import counts, rows_of
from tests.register_imports.test_netbox_mirror import run, source

pytestmark = pytest.mark.django_db(transaction=True)


def nested(name: str | None, **more: Any) -> dict[str, Any]:
    return {
        "id": 7,
        "url": "https://netbox/7/",
        "display": name or "MX480 (7)",
        "name": name,
        **more,
    }


FAMILY = {"value": 4, "label": "IPv4"}
TIMES = {"created": "2021-09-01", "last_updated": "2021-09-01T08:00:00Z"}
TAG = nested("Old One", slug="old-one", color="9e9e9e")
VRF = nested("Blue", rd="65000:1", prefix_count=2)
VLAN = nested("Data", vid=100) | {"display": "Data (100)"}
SITE = nested("Berlin", slug="berlin")
SHARED_3_0 = {
    "url": "x", "display": "x", "family": FAMILY, "vrf": VRF, "tenant": nested("Acme", slug="acme"), "description": "d",
    "tags": [TAG], "custom_fields": {"stage": "live", "none": None}, **TIMES,
}  # fmt: skip
SHARED = SHARED_3_0 | {"comments": "note"}
SHARED_4_0 = SHARED | {"display_url": "x"}
PREFIX = {
    "id": 2, "prefix": "10.1.1.0/24", "site": SITE, "vlan": VLAN, "status": choice("active"),
    "role": nested("Access", slug="access"), "is_pool": False, "mark_utilized": True, "children": 0, "_depth": 0,
}  # fmt: skip
SCOPED = {name: value for name, value in PREFIX.items() if name != "site"} | {
    "scope_type": "dcim.site", "scope_id": 7, "scope": SITE,
}  # fmt: skip
RANGE = {
    "id": 3, "start_address": "10.1.1.100/24", "end_address": "10.1.1.109/24", "size": 10,
    "status": choice("reserved"), "role": None,
}  # fmt: skip
INTERFACE = nested("eth0", cable=None, _occupied=False, device=nested("sw-1"))
ADDRESS = {
    "id": 4, "address": "10.1.1.5/24", "status": choice("active"), "role": choice("loopback"), "nat_inside": None,
    "nat_outside": [], "dns_name": "a.example", "assigned_object_type": "dcim.interface", "assigned_object_id": 7,
    "assigned_object": INTERFACE,
}  # fmt: skip
TEXTS = {"vrf": "Blue", "tenant": "Acme", "description": "d", "tags": "old-one", "cf_stage": "live"}
NEWER = TEXTS | {"note": "note"}


@pytest.mark.sample(4)
@pytest.mark.parametrize(
    ("shared", "prefix", "texts"),
    [
        (SHARED_3_0, PREFIX, TEXTS),
        (SHARED, PREFIX, NEWER),
        (SHARED_4_0, PREFIX, NEWER),
        (SHARED_4_0 | {"owner": nested("Net Team")}, SCOPED, NEWER | {"owner": "Net Team"}),
    ],
    ids=["3.0", "3.7", "4.1", "4.6"],
)
def test_objects_of_each_version_say_the_same(
    server: NetBox, shared: dict[str, Any], prefix: dict[str, Any], texts: dict[str, str]
) -> None:
    server.objects |= {
        "prefixes": [shared | prefix],
        "ip-ranges": [shared | RANGE],
        "ip-addresses": [shared | ADDRESS],
    }
    mirror = source(server)
    first = run(mirror)
    assert (first.error, counts(first)) == ("", {"new": 3})
    assert [row.texts for row in rows_of(first)] == [
        texts | {
            "external_id": "2", "prefix": "10.1.1.0/24", "site": "Berlin", "vlan": "Data (100)", "status": "active",
            "role": "Access", "mark_utilized": "yes",
        },
        texts | {"external_id": "3", "first": "10.1.1.100/24", "last": "10.1.1.109/24", "status": "reserved"},
        texts | {
            "external_id": "4", "address": "10.1.1.5/24", "status": "active", "role": "loopback",
            "dns_name": "a.example", "holder": "sw-1", "interface": "eth0",
        },
    ]  # fmt: skip
    assert counts(run(mirror)) == {"unchanged": 3}


def test_interfaces_of_virtual_machines_of_nameless_devices_and_groups(server: NetBox) -> None:
    server.prefix("10.1.1.0/24")
    assigned = [
        nested("eth0", virtual_machine=nested("vm-1")),
        nested("eth0", device=nested(None)),
        {"id": 1, "url": "x", "display": "VRRP: 10", "protocol": "vrrp", "group_id": 10},
    ]
    for number, item in enumerate(assigned, start=5):
        server.address(f"10.1.1.{number}/24", dns_name="a.example", assigned_object=item)
    holders = [row.holder_id for row in rows_of(run(source(server))) if row.kind == "address"]
    assert holders == ["vm-1", "MX480 (7)", "a.example"]


def test_a_netbox_that_sorts_its_own_way_is_read_completely(server: NetBox) -> None:
    """Until 3.3 the parameter `ordering` is unknown, and pages come by VRF and prefix."""
    for number in (3, 1, 2, 5, 4):
        server.prefix(f"10.1.{number}.0/24")
    server.order = lambda item: item["prefix"]
    server.before_page = lambda name, offset: (
        server.statuses.extend([502, 429]) if (name, offset) == ("prefixes", 0) else None
    )
    waits: list[float] = []
    rows = netbox.read(server.access(), sleep=waits.append).rows
    assert [row.texts["prefix"] for row in rows] == [f"10.1.{n}.0/24" for n in range(1, 6)]
    assert waits == [2.0, 3.0]
