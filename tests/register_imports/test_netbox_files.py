"""NetBox's CSV files: prefixes become containers and pools, addresses held blocks, once; and the way back."""

from ipaddress import ip_address

import pytest

from pools.core import errors
from pools.core.addresses import AddressRange
from pools.core.holders import BlockDemand, Holder
from pools.models import (
    Block,
    Cluster,
    Container,
    Event,
    Pool,
    PoolCIDR,
    RegisterRecord,
    ReservedRange,
)
from pools.platform import checks
from pools.register import pools
from pools.register.allocator import requests
from tests import factories
from tests.edges import api as apis
from tests.register_imports import sources
from tests.register_imports.sources import BY, counts, exported, table


def demo(cluster: Cluster, **options: object):
    return sources.draft(
        sources.table(sources.IMPORT_PREFIX, sources.demo_prefixes()),
        sources.table(sources.IMPORT_ADDRESS, sources.demo_addresses()),
        cluster=cluster,
        **options,
    )


@pytest.mark.exhaustive
def test_the_demo_data_is_imported_and_a_second_run_changes_nothing() -> None:
    cluster = factories.cluster()
    draft = demo(cluster)
    assert draft.status == "drafted"
    assert sources.codes(draft) == []
    assert sources.counts(draft) == {"new": 251}
    committed = sources.commit(draft)
    assert committed.status == "committed"
    assert Container.objects.count() == 7
    assert Pool.objects.count() == 49 + 15
    assert Block.objects.filter(state="held").count() == 6 * 29
    assert ReservedRange.objects.count() == 6
    last = Event.objects.order_by("-id")[0].id
    again = sources.commit(demo(cluster))
    assert sources.counts(again) == {"unchanged": 251}
    assert not Event.objects.filter(id__gt=last).exclude(table__icontains="importevent").exists()
    assert violations() == []


def violations() -> list[str]:
    """Return what the checks of the register find."""
    return [text for name, text in checks.run() if name != "triggers"]


def test_an_undo_leaves_nothing() -> None:
    cluster = factories.cluster()
    committed = sources.commit(demo(cluster))
    undone = sources.undo(committed)
    assert undone.status == "undone"
    remaining = (Container, Pool, PoolCIDR, Block, ReservedRange, RegisterRecord)
    assert [model.objects.count() for model in remaining] == [0] * 6
    assert violations() == []


def test_an_undo_is_refused_while_somebody_else_holds_an_address_of_its_pools() -> None:
    cluster = factories.cluster()
    committed = sources.commit(demo(cluster))
    pool = Pool.objects.get(name="10.112.129.0-24")
    requests.allocate(pool.pk, BlockDemand(holders=(Holder("vm", "other", ""),)), author=BY)
    with pytest.raises(errors.ImportInUse, match="is held, by vm other"):
        sources.undo(committed)
    assert Pool.objects.count() == 64


def test_free_addresses_are_allocated_around_what_was_imported() -> None:
    cluster = factories.cluster()
    sources.commit(demo(cluster))
    pool = Pool.objects.get(name="192.168.0.0-22")
    answer = requests.allocate(pool.pk, BlockDemand(holders=(Holder("vm", "new", ""),)), author=BY)
    assert answer.blocks[0]["address"] == "192.168.0.31"  # type: ignore[union-attr]


TABLE_PREFIXES = [
    ("10.0.0.0/8", "Container", 2, "—", "1.0%", "", "", "", "", ""),
    ("10.1.0.0/24", "Active", 0, "Blue (65000:1)", "", "Acme", "Site A", "", "Data", "blue net"),
    ("10.1.0.0/24", "Active", 0, "Global", "", "", "", "", "", ""),
]
TABLE_ADDRESSES = [
    ("10.1.0.5/24", "Blue (65000:1)", "Active", "", "Acme", "True", "a.example", "web"),
    ("10.1.0.6/24", "Global", "DHCP", "VIP", "", "", "", "printer in the hall"),
    ("10.1.0.7/24", "Global", "Deprecated", "", "", "", "", ""),
    ("10.1.0.0/24", "Global", "Active", "", "", "", "", ""),
    ("10.1.0.255/24", "Global", "Active", "", "", "", "", ""),
    ("10.9.0.1/24", "Global", "Active", "", "", "", "", ""),
    ("172.16.0.1/24", "Global", "Active", "", "", "", "", ""),
    ("10.1.0.6/24", "Global", "Active", "", "", "", "twin", ""),
    ("::ffff:10.1.0.8/120", "Global", "Active", "", "", "", "", ""),
    ("fe80::1%eth0/64", "Global", "Active", "", "", "", "", ""),
    ("10.1.0.300/24", "Global", "Active", "", "", "", "", ""),
]


def test_the_export_of_a_table_is_read_and_bad_rows_have_a_code() -> None:
    cluster = factories.cluster()
    draft = sources.draft(
        sources.table(sources.TABLE_PREFIX, TABLE_PREFIXES),
        sources.table(sources.TABLE_ADDRESS, TABLE_ADDRESSES),
        cluster=cluster,
    )
    assert sources.codes(draft) == [
        (5, "invalid", "network_address"),
        (6, "invalid", "broadcast_address"),
        (7, "conflict", "in_container"),
        (8, "invalid", "outside_every_prefix"),
        (9, "conflict", "duplicate_in_file"),
        (10, "invalid", "ipv4_mapped"),
        (11, "invalid", "zone_id_not_allowed"),
        (12, "invalid", "not_an_address"),
    ]
    with pytest.raises(errors.ImportHasBadRows):
        sources.commit(draft)
    sources.commit(draft, skip_bad=True)
    held = Block.objects.filter(state="held").order_by("cidr", "space__name")
    assert [(str(b.cidr), b.space.name, b.holder_kind, b.holder_id, b.org) for b in held] == [
        ("10.1.0.5/32", "Blue", "host", "a.example", "Acme"),
        ("10.1.0.6/32", "", "host", "printer in the hall", ""),
    ]
    record = RegisterRecord.objects.get(first="10.1.0.5")
    assert (record.description, record.details["dns_name"]) == ("web", "a.example")
    reserved = ReservedRange.objects.get()
    assert (reserved.span, reserved.reason) == ("10.1.0.7-10.1.0.7", "deprecated")


@pytest.mark.exhaustive
def test_a_range_with_another_description_is_changed_and_an_undo_restores_it() -> None:
    cluster = factories.cluster()
    prefixes = sources.table(("prefix",), [("10.1.0.0/24",)])

    def ranges(description: str, status: str = "reserved") -> bytes:
        header = ("start_address", "end_address", "status", "description")
        return sources.table(header, [("10.1.0.20/24", "10.1.0.29/24", status, description)])

    sources.commit(sources.draft(prefixes, ranges("printers"), cluster=cluster))
    draft = sources.draft(prefixes, ranges("scanners", "deprecated"), cluster=cluster)
    assert sources.counts(draft) == {"changed": 1, "unchanged": 1}
    second = sources.commit(draft)
    assert ReservedRange.objects.get().reason == "scanners"
    assert RegisterRecord.objects.get(target="reserved").details == {"status": "deprecated"}
    same = sources.draft(prefixes, ranges("scanners", "deprecated"), cluster=cluster)
    assert sources.counts(same) == {"unchanged": 2}
    sources.undo(second)
    assert ReservedRange.objects.get().reason == "printers"
    former = sources.draft(prefixes, ranges("printers"), cluster=cluster)
    assert sources.counts(former) == {"unchanged": 2}
    assert violations() == []


def test_a_range_that_no_import_brought_keeps_its_reason() -> None:
    cluster = factories.cluster()
    prefixes = sources.table(("prefix",), [("10.1.0.0/24",)])
    sources.commit(sources.draft(prefixes, cluster=cluster))
    span = AddressRange(ip_address("10.1.0.20"), ip_address("10.1.0.29"))
    pools.reserve(PoolCIDR.objects.get().pk, span, author=BY, reason="by hand")
    header = ("start_address", "end_address", "status", "description")
    ranges = sources.table(header, [("10.1.0.20/24", "10.1.0.29/24", "reserved", "printers")])
    draft = sources.draft(prefixes, ranges, cluster=cluster)
    assert sources.counts(draft) == {"unchanged": 2}


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
    sources.commit(sources.draft(*files, cluster=cluster))
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
    lists = (prefixes, written, ranges)
    back = [table([*rows[0]], [[*row.values()] for row in rows]) for rows in lists]
    again = sources.draft(*back, cluster=cluster)
    assert counts(again) == {"unchanged": len(sources.demo_prefixes()) + len(addresses) + 1}


def test_over_rest() -> None:
    api = apis.Api()
    answer = api("GET", "netbox-export/prefixes.csv")
    assert answer.status_code == 200
    assert answer.content.startswith(b"prefix,vrf,")
    assert api("GET", "netbox-export/nothing.csv").status_code == 404
