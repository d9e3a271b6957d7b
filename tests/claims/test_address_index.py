"""Who names which address: the index, its flags, and the blocks that follow it."""

from ipaddress import ip_address

import pytest

from claims import tasks
from claims.address_index import conflicts, duplicates, index
from claims.models import Entry, IndexEntry, IPPool, Network
from pools.core.addresses import AddressRange
from pools.models import Block, BlockState
from pools.platform import events
from pools.register import block_sync, pools
from tests.claims import worlds

A, B, C = "00:1a:4b:00:00:0a", "00:1a:4b:00:00:0b", "00:1a:4b:00:00:0c"


def _flags(**owner: int) -> set[str]:
    rows = IndexEntry.objects.filter(**owner)
    flags = {"mac": rows.filter(duplicate_mac=True), "ip": rows.filter(duplicate_ip=True)}
    return {name for name, flagged in flags.items() if flagged.exists()}


def _held() -> dict[str, tuple[str, str]]:
    rows = Block.objects.filter(state=BlockState.HELD)
    return {str(row.cidr): (row.holder_kind, row.holder_id) for row in rows}


def test_two_entries_of_one_mac(ippool: IPPool) -> None:
    first = worlds.entry(ippool, A, "10.0.0.5/24")
    assert _flags(entry=first.pk) == set()
    second = worlds.entry(ippool, A.upper(), "10.0.0.6/24")
    assert _flags(entry=first.pk) == _flags(entry=second.pk) == {"mac"}
    ippool.refresh_from_db()
    assert (ippool.duplicate_macs, ippool.duplicate_ips) == (1, 0)
    assert conflicts.entry_duplicates(ippool) == ([(A, 2)], [])


def test_one_address_of_two_macs(ippool: IPPool) -> None:
    first = worlds.entry(ippool, A, "10.0.0.5/24", vm="one", namespace="blue")
    second = worlds.entry(ippool, B, "10.0.0.5/24", vm="two", namespace="blue")
    assert _flags(entry=first.pk) == _flags(entry=second.pk) == {"ip"}
    assert conflicts.entry_duplicates(ippool) == ([], [("10.0.0.5", [A, B])])
    (result,) = duplicates.of_entries([first])[first.pk]
    other = {"type": "entry", "id": second.pk, "name": "blue", "namespace": "blue"}
    other |= {"vm": "two", "mac": B}
    assert result.as_json() == {"kind": "ip", "value": "10.0.0.5", "with": [other]}


def test_an_address_twice_in_one_entry() -> None:
    entry = worlds.entry(worlds.ippool(worlds.network()), A, "10.0.0.5/24", "10.0.0.5/24")
    assert _flags(entry=entry.pk) == {"ip"}


def test_same_mac_and_address_in_two_entries_is_a_duplicate_mac_only(ippool: IPPool) -> None:
    first, second = (worlds.entry(ippool, A, "10.0.0.5/24") for _ in range(2))
    assert _flags(entry=first.pk) == _flags(entry=second.pk) == {"mac"}


@pytest.mark.sample(7)
@pytest.mark.parametrize(
    ("entry", "claim", "expected"),
    [
        ({}, {}, set()),
        ({"vm": "one", "namespace": "blue"}, {}, set()),
        ({"vm": "two", "namespace": "blue"}, {}, {"ip"}),
        ({"vm": "one", "namespace": "red"}, {}, {"ip"}),
        ({}, {"mac": B}, {"ip"}),
        ({}, {"mac": A}, set()),
        ({"vm": "two", "namespace": "blue"}, {"mac": A}, {"mac"}),
    ],
)
def test_an_entry_and_a_claim(
    entry: dict[str, str], claim: dict[str, str], expected: set[str], network: Network
) -> None:
    created = worlds.entry(worlds.ippool(network), A, "10.0.0.5/24", **entry)
    other = worlds.claim(network, "one", "10.0.0.5/24", **claim)
    assert _flags(entry=created.pk) == _flags(claim=other.pk) == expected
    assert {item.kind for item in duplicates.of_entries([created])[created.pk]} == expected
    assert {item.kind for item in duplicates.of_claims([other])[other.pk]} == expected


def test_an_entry_and_what_runs(network: Network) -> None:
    entry = worlds.entry(worlds.ippool(network), A, "10.0.0.5/24", vm="one", namespace="blue")
    running = worlds.workload(network, "one", A, "10.0.0.5/24")
    assert _flags(entry=entry.pk) == set()
    worlds.workload(network, "stranger", B, "10.0.0.5/24", kind="pod")
    assert _flags(entry=entry.pk) == _flags(workload=running.pk) == {"ip"}


def test_networks_do_not_meet() -> None:
    first = worlds.entry(worlds.ippool(worlds.network()), A, "10.0.0.5/24")
    other = worlds.network("cluster_udn_red")
    second = worlds.entry(worlds.ippool(other, "red"), A, "10.0.0.5/24")
    assert _flags(entry=first.pk) == _flags(entry=second.pk) == set()


@pytest.mark.sample(3)
@pytest.mark.parametrize(
    ("more", "address", "type_", "flagged"),
    [
        ({}, "10.0.0.1", "gateway", True),
        ({"default_gateways": ["10.0.0.254"]}, "10.0.0.254", "gateway", True),
        ({}, "10.0.0.2", "management", True),
        ({"default_gateways": ["10.0.0.2"]}, "10.0.0.1", "management", True),
        ({"infrastructure_subnets": ["10.0.0.8/29"]}, "10.0.0.11", "infrastructure", True),
        ({"exclude_subnets": ["10.0.0.8/29"]}, "10.0.0.9", "excluded", True),
        ({"reserved_subnets": ["10.0.0.16/28"]}, "10.0.0.17", "reserved_subnet", False),
    ],
)
def test_what_the_network_uses_itself(
    more: dict[str, list[str]], address: str, type_: str, flagged: bool
) -> None:
    network = worlds.network(**more)
    entry = worlds.entry(worlds.ippool(network), A, f"{address}/24")
    assert _flags(entry=entry.pk) == ({"ip"} if flagged else set())
    (result,) = duplicates.of_entries([entry])[entry.pk]
    assert [occurrence.type for occurrence in result.occurrences] == [type_]
    assert result.note is not flagged


@pytest.mark.sample(4)
@pytest.mark.parametrize(
    ("subnets", "more", "mac"),
    [
        (["10.0.0.0/24"], {}, "0a:58:0a:00:00:01"),
        (["10.0.0.0/24"], {"default_gateways": ["10.0.0.254"]}, "0a:58:0a:00:00:fe"),
        (["10.0.0.0/24"], {"infrastructure_subnets": ["10.0.0.240/28"]}, "0a:58:0a:00:00:f0"),
        (["fd00::/64"], {}, "0a:58:cb:2a:2b:4d"),
    ],
)
def test_the_mac_of_the_gateway(subnets: list[str], more: dict[str, list[str]], mac: str) -> None:
    network = worlds.network(subnets=tuple(subnets), **more)
    address = "10.0.0.5/24" if "." in subnets[0] else "fd00::5/64"
    entry = worlds.entry(worlds.ippool(network), mac, address)
    running = worlds.workload(network, "one", mac)
    claim = worlds.claim(network, "two", mac=mac)
    for owner in ({"entry": entry.pk}, {"workload": running.pk}, {"claim": claim.pk}):
        assert _flags(**owner) == {"mac"}
    (result,) = duplicates.of_entries([entry])[entry.pk]
    assert (result.kind, result.value) == ("mac", mac)
    assert [occurrence.type for occurrence in result.occurrences] == ["gateway"]
    IndexEntry.objects.update(duplicate_mac=False)
    assert conflicts.recheck_network(network) == 3
    other = worlds.network("cluster_udn_red", subnets=("10.1.0.0/24",))
    assert _flags(entry=worlds.entry(worlds.ippool(other, "red"), mac, "10.1.0.5/24").pk) == set()


def test_removal_clears_the_flags_of_others(ippool: IPPool) -> None:
    first, second = (worlds.entry(ippool, mac, "10.0.0.5/24") for mac in (A, B))
    with events.recorded_by(worlds.BY):
        index.remove(entries=[first.pk])
        first.delete()
    assert _flags(entry=second.pk) == set()
    assert _held() == {"10.0.0.5/32": ("mac", B)}


def test_a_change_moves_the_block() -> None:
    ippool = worlds.ippool(worlds.network(subnets=("10.0.0.0/24", "fd00::/64")))
    entry = worlds.entry(ippool, A, "10.0.0.5/24", "fd00::5/64")
    assert _held() == {"10.0.0.5/32": ("mac", A), "fd00::5/128": ("mac", A)}
    with events.recorded_by(worlds.BY):
        entry.ips, entry.vm, entry.namespace = ["10.0.0.6/24"], "one", "blue"
        entry.save()
        index.write(entries=[entry])
    assert _held() == {"10.0.0.6/32": ("vm", "blue/one")}


def test_names_of_any_length_that_kubernetes_allows_hold_addresses(network: Network) -> None:
    ippool = worlds.ippool(network)
    namespace, long = "n" * 63, "v" * 252
    worlds.entry(ippool, A, "10.0.0.5/24", vm=f"{long}1", namespace=namespace)
    worlds.entry(ippool, B, "10.0.0.6/24", vm=f"{long}2", namespace=namespace)
    names = {"namespace": namespace, "uid": "u-3", "vm_uid": "u-3"}
    worlds.workload(network, f"{long}3", C, "10.0.0.7/24", **names)
    ids = {name for _, name in _held().values()}
    assert len(ids) == 3
    assert all(name.startswith(f"{namespace}/vvv") and len(name) == 253 for name in ids)
    index.remove(entries=list(Entry.objects.values_list("pk", flat=True)))
    assert list(_held()) == ["10.0.0.7/32"]


def test_the_claim_comes_before_what_runs_and_that_before_the_entry(network: Network) -> None:
    worlds.entry(worlds.ippool(network), A, "10.0.0.5/24")
    running = worlds.workload(network, "one", A, "10.0.0.5/24", vm_uid="u1")
    assert _held() == {"10.0.0.5/32": ("vm", "blue/one")}
    claim = worlds.claim(network, "other", "10.0.0.5/24")
    assert _held() == {"10.0.0.5/32": ("vm", "blue/other")}
    with events.recorded_by(worlds.BY):
        index.remove(claims=[claim.pk], workloads=[running.pk])
    assert _held() == {"10.0.0.5/32": ("mac", A)}


def test_a_claim_that_only_asks_holds_nothing() -> None:
    claim = worlds.claim(worlds.network(), "one", ips_requested=["10.0.0.5/24"])
    assert _held() == {}
    assert str(IndexEntry.objects.get(claim=claim.pk).address) == "10.0.0.5"


def test_what_somebody_else_holds_stays_theirs(network: Network, ippool: IPPool) -> None:
    entry = worlds.entry(ippool, A, "10.0.0.5/24")
    Block.objects.update(holder_kind="instance", holder_id="i-1")
    with events.recorded_by(worlds.BY):
        index.remove(entries=[entry.pk])
        entry.delete()
    assert _held() == {"10.0.0.5/32": ("instance", "i-1")}
    again = worlds.entry(ippool, B, "10.0.0.5/24")
    assert _held() == {"10.0.0.5/32": ("instance", "i-1")}
    (result,) = duplicates.of_entries([again])[again.pk]
    assert [occurrence.type for occurrence in result.occurrences] == ["block"]


def test_writing_the_same_again_writes_nothing(django_assert_max_num_queries: object) -> None:
    ippool = worlds.ippool(worlds.network())
    entry = worlds.entry(ippool, A, "10.0.0.5/24")
    before = list(IndexEntry.objects.values_list("pk", flat=True))
    with events.recorded_by(worlds.BY), django_assert_max_num_queries(3):  # type: ignore[operator]
        index.write(entries=[entry])
    assert list(IndexEntry.objects.values_list("pk", flat=True)) == before


def test_a_candidate_is_judged_before_it_is_saved(network: Network, ippool: IPPool) -> None:
    entry = worlds.entry(ippool, A, "10.0.0.5/24")
    worlds.entry(ippool, B, "10.0.0.6/24")

    def kinds(**values: object) -> list[tuple[str, str]]:
        result = duplicates.of_candidate(duplicates.Candidate(network, **values))  # type: ignore[arg-type]
        return [(item.kind, item.value) for item in result]

    assert kinds(mac=C, addresses=["10.0.0.7"]) == []
    assert kinds(mac=A, addresses=["10.0.0.6"]) == [("mac", A), ("ip", "10.0.0.6")]
    assert kinds(mac=A, addresses=["10.0.0.5"], entry_id=entry.pk) == []
    assert kinds(mac=None, addresses=[]) == []
    assert kinds(mac=C, addresses=["10.0.0.7", "10.0.0.7"]) == [("ip", "10.0.0.7")]


def test_a_whole_network_is_judged_as_its_changes_were(network: Network, ippool: IPPool) -> None:
    for number, mac in enumerate((A, A, B, C)):
        worlds.entry(ippool, mac, f"10.0.0.{5 + number // 2}/24")
    worlds.entry(ippool, C, "10.0.0.1/24")
    before = set(IndexEntry.objects.values_list("entry", "duplicate_mac", "duplicate_ip"))
    assert conflicts.recheck_network(network) == 0
    IndexEntry.objects.update(duplicate_mac=False, duplicate_ip=False)
    flagged = [item for item in before if item[1] or item[2]]
    assert conflicts.recheck_network(network) == len(flagged)
    assert set(IndexEntry.objects.values_list("entry", "duplicate_mac", "duplicate_ip")) == before


def test_a_reserved_range_that_somebody_makes_in_the_pool_is_seen_by_the_clock() -> None:
    network = worlds.network()
    entry = worlds.entry(worlds.ippool(network), A, "10.0.0.5/24")
    span = AddressRange(ip_address("10.0.0.4"), ip_address("10.0.0.6"))
    cidr = network.pool.cidrs.get().pk
    reserved_range = pools.reserve(cidr, span, author=worlds.BY, reason="printers")
    assert tasks.recheck_duplicates() == 1
    assert _flags(entry=entry.pk) == {"ip"}
    (result,) = duplicates.of_entries([entry])[entry.pk]
    (occurrence,) = result.occurrences
    assert (occurrence.type, occurrence.name) == ("reserved_range", "printers")
    pools.unreserve(reserved_range.pk, author=worlds.BY)
    assert (tasks.recheck_duplicates(), tasks.recheck_duplicates()) == (1, 0)
    assert _flags(entry=entry.pk) == set()


def test_many_at_once_are_judged_in_parts(monkeypatch: pytest.MonkeyPatch, ippool: IPPool) -> None:
    monkeypatch.setattr(conflicts, "_BATCH", 3)
    monkeypatch.setattr(block_sync, "_BATCH", 3)
    with events.recorded_by(worlds.BY):
        created = Entry.objects.bulk_create(
            Entry(ippool=ippool, mac=f"00:1a:4b:00:01:{n:02x}", ips=[f"10.0.0.{10 + n // 2}/24"])
            for n in range(11)
        )
        index.write(entries=created)
    assert IndexEntry.objects.filter(duplicate_ip=True).count() == 10
    assert len(_held()) == 6
