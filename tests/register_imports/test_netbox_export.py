"""The register as CSV for NetBox's import form: what was imported comes back, and imports unchanged."""

from __future__ import annotations

import pytest

from pools.register.imports import drafts
from tests import factories
from tests.edges import api as apis
from tests.register_imports import sources
from tests.register_imports.sources import BY, counts, exported, table

pytestmark = pytest.mark.django_db

# The fields of netbox/ipam/forms/bulk_import.py that a file may name.
PREFIX = {
    "prefix", "vrf", "tenant", "vlan_group", "vlan_site", "vlan", "status", "role", "scope_type", "scope_name",
    "scope_id", "is_pool", "mark_utilized", "description", "owner", "comments", "tags",
}  # fmt: skip
ADDRESS = {
    "address", "vrf", "tenant", "status", "role", "device", "virtual_machine", "interface", "fhrp_group",
    "is_primary", "is_oob", "dns_name", "description", "owner", "comments", "tags",
}  # fmt: skip
RANGE = {
    "start_address", "end_address", "vrf", "tenant", "status", "role", "mark_populated", "mark_utilized",
    "description", "owner", "comments", "tags",
}  # fmt: skip


def test_what_was_imported_comes_back() -> None:
    cluster = factories.cluster()
    addresses = [
        *sources.demo_addresses(),
        ("192.168.1.9/22", "active", "", "Dunder", "web.example", "shop"),
        ("192.168.1.10/22", "dhcp", "", "", "", "printer in the hall"),
    ]
    files = (
        table(sources.IMPORT_PREFIX, sources.demo_prefixes()),
        table(sources.IMPORT_ADDRESS, addresses),
        table(
            ("start_address", "end_address", "status", "description"),
            [("192.168.1.100/22", "192.168.1.149/22", "reserved", "Future use")],
        ),
    )
    drafts.IMPORTS.commit(sources.draft(*files, cluster=cluster).pk, author=BY)
    prefixes, written = exported("prefixes", cluster), exported("ip-addresses", cluster)
    ranges = exported("ip-ranges", cluster)
    assert set(prefixes[0]) <= PREFIX
    assert set(written[0]) <= ADDRESS
    assert set(ranges[0]) <= RANGE
    shown = {(row["prefix"], row["vrf"]): row for row in prefixes}
    assert len(shown) == len(sources.demo_prefixes())
    for prefix, status, vrf, tenant, role, description in sources.demo_prefixes():
        row = shown[prefix, vrf]
        assert (row["status"], row["tenant"], row["role"], row["description"]) == (
            status, tenant, role, description,
        )  # fmt: skip
    by_address = {(row["address"], row["vrf"]): row for row in written}
    assert {key: row["status"] for key, row in by_address.items()} == {
        (address, vrf): status for address, status, vrf, *_ in addresses
    }
    web, printer = by_address["192.168.1.9/22", ""], by_address["192.168.1.10/22", ""]
    assert (web["dns_name"], web["tenant"], web["description"]) == ("web.example", "Dunder", "shop")
    assert (printer["dns_name"], printer["description"]) == ("", "printer in the hall")
    assert [row["description"] for row in ranges] == ["Future use"]
    again = sources.draft(
        *(
            table([*rows[0]], [[*row.values()] for row in rows])
            for rows in (prefixes, written, ranges)
        ),
        cluster=cluster,
    )
    assert counts(again) == {"unchanged": len(sources.demo_prefixes()) + len(addresses) + 1}


def test_over_rest() -> None:
    api = apis.Api()
    answer = api("GET", "netbox-export/prefixes.csv")
    assert answer.status_code == 200
    assert answer.content.startswith(b"prefix,vrf,")
    assert api("GET", "netbox-export/nothing.csv").status_code == 404
