"""IPPools of the register: one for each network, their entries, versions and conditions."""

from typing import Any

import pytest
from django.db import IntegrityError, transaction

from claims.core.entries import EntrySpec
from claims.entries import entries, ippools
from claims.models import Entry, EntryEvent, IndexEntry, IPPool
from pools.core import errors
from pools.models import Block
from tests.claims import worlds

A, B, C = "02:00:00:00:00:0a", "02:00:00:00:00:0b", "02:00:00:00:00:0c"


@pytest.fixture
def blue() -> IPPool:
    network = worlds.network()
    return ippools.create(network.cluster, "blue", network.name, author=worlds.BY)


def add(ippool: IPPool, *specs: EntrySpec) -> list[Entry]:
    return entries.add(ippool.pk, specs, source="hand", author=worlds.BY)


def conditions(ippool: IPPool) -> dict[str, tuple[str, str]]:
    ippool.refresh_from_db()
    return {
        condition["type"]: (condition["status"], condition["reason"])
        for condition in ippool.conditions
    }


CLEAN = {
    "Success": ("True", "NoDuplicates"),
    "DuplicateMACAddresses": ("False", "NoMACDuplicates"),
    "DuplicateIPAddresses": ("False", "NoIPDuplicates"),
}


def test_a_network_has_one_ippool(blue: IPPool) -> None:
    with pytest.raises(errors.AlreadyExists, match=r"cluster_udn_blue already has an IPPool: blue"):
        ippools.create(blue.cluster, "second", blue.network.name, author=worlds.BY)
    with pytest.raises(IntegrityError), transaction.atomic():
        IPPool.objects.create(cluster=blue.cluster, network=blue.network, name="second")


def test_entries_hold_their_addresses(blue: IPPool) -> None:
    (created,) = add(blue, EntrySpec(A, ("10.0.0.5/24",), "web", "shop", "old"))
    assert (created.vm, created.namespace, created.note, created.source) == (
        "web",
        "shop",
        "old",
        "hand",
    )
    block = Block.objects.get(pool=blue.network.pool_id, cidr="10.0.0.5/32", state="held")
    assert (block.holder_kind, block.holder_id) == ("vm", "shop/web")
    blue.refresh_from_db()
    assert blue.version == 2
    entries.delete([created.pk], author=worlds.BY)
    assert not IndexEntry.objects.exists()
    assert not Block.objects.filter(state="held").exists()


def test_duplicates_are_taken_and_told(blue: IPPool) -> None:
    add(blue, EntrySpec(A, ("10.0.0.5/24",)), EntrySpec(A, ("10.0.0.6/24",)))
    assert conditions(blue) == CLEAN | {
        "Success": ("False", "DuplicatesExist"),
        "DuplicateMACAddresses": ("True", "DuplicateMACFound"),
    }
    assert blue.conditions[1]["message"] == f"MAC address {A} appears 2 times"
    second = Entry.objects.get(ips=["10.0.0.6/24"])
    entries.change(second.pk, EntrySpec(B, ("10.0.0.5/24",)), author=worlds.BY)
    assert conditions(blue) == CLEAN | {
        "Success": ("False", "DuplicatesExist"),
        "DuplicateIPAddresses": ("True", "DuplicateIPFound"),
    }
    assert f"{A} and {B}" in blue.conditions[2]["message"]
    blue.refresh_from_db()
    assert (blue.duplicate_macs, blue.duplicate_ips) == (0, 1)
    entries.delete([second.pk], author=worlds.BY)
    assert conditions(blue) == CLEAN


def test_replacing_writes_only_what_differs(blue: IPPool) -> None:
    add(blue, *[EntrySpec(mac, (f"10.0.0.{5 + n}/24",)) for n, mac in enumerate((A, B, C))])
    before = EntryEvent.objects.count()
    expected = [
        EntrySpec(A, ("10.0.0.5/24",)),
        EntrySpec(B, ("10.0.0.9/24",), "web", "shop"),
        EntrySpec("02:00:00:00:00:0d", ("10.0.0.10/24",)),
    ]
    entry_diff = entries.replace(blue.pk, expected, source="api", author=worlds.BY)
    assert (len(entry_diff.new), len(entry_diff.changed), len(entry_diff.gone)) == (1, 1, 1)
    assert EntryEvent.objects.count() == before + 3
    assert not entries.replace(blue.pk, expected, source="api", author=worlds.BY)
    assert EntryEvent.objects.count() == before + 3


def test_replacing_keeps_what_a_map_cannot_say(blue: IPPool) -> None:
    (stored,) = add(blue, EntrySpec(A, ("10.0.0.5/24",), "web", "shop", "old"))
    specs = [EntrySpec(A, ("10.0.0.6/24",)), EntrySpec(A, ("10.0.0.5/24",))]
    entries.replace(blue.pk, specs, source="api", author=worlds.BY)
    stored.refresh_from_db()
    assert (stored.ips, stored.vm, stored.note) == (["10.0.0.5/24"], "web", "old")
    assert Entry.objects.count() == 2


def test_deleting_an_ippool_gives_all_back(blue: IPPool) -> None:
    add(blue, EntrySpec(A, ("10.0.0.5/24",)), EntrySpec(B, ("10.0.0.6/24",)))
    ippools.delete(blue.pk, author=worlds.BY)
    assert not (IPPool.objects.exists())
    assert not (Entry.objects.exists())
    assert not IndexEntry.objects.exists()
    assert not Block.objects.filter(state="held").exists()
    assert EntryEvent.objects.filter(pgh_label="deleted").count() == 2


def test_what_a_cluster_decides(blue: IPPool) -> None:
    (created,) = add(blue, EntrySpec(A, ("10.0.0.5/24",)))
    IPPool.objects.filter(pk=blue.pk).update(follows_cluster=True, uid="u")
    calls: list[Any] = [
        lambda: add(blue, EntrySpec(B, ("10.0.0.6/24",))),
        lambda: entries.delete([created.pk], author=worlds.BY),
        lambda: entries.replace(blue.pk, [], source="api", author=worlds.BY),
        lambda: ippools.change(blue.pk, note="x", author=worlds.BY),
        lambda: ippools.delete(blue.pk, author=worlds.BY),
    ]
    for call in calls:
        with pytest.raises(errors.ClusterDecides):
            call()


@pytest.mark.exhaustive
def test_many_entries_come_in_together(blue: IPPool) -> None:
    big = worlds.network("big", subnets=("10.64.0.0/16",))
    ippool = ippools.create(big.cluster, "big", "big", author=worlds.BY)
    specs = [
        EntrySpec(f"02:00:00:00:{n >> 8:02x}:{n & 255:02x}", (f"10.64.{n >> 8}.{n & 255}/16",))
        for n in range(10, 3010)
    ]
    created = add(ippool, *specs)
    assert [row.mac for row in created] == [spec.mac for spec in specs]
    assert Block.objects.filter(pool=big.pool_id, state="held").count() == 3000
    assert EntryEvent.objects.filter(pgh_label="created").count() == 3000
