"""What a draft says of each row, before anything is written."""

from typing import Any

import pytest

from claims.imports import drafts as import_drafts
from claims.models import Entry, Network, VMImport
from pools.core import errors
from pools.models.imports import ImportStatus as Status
from pools.register import pools
from tests import factories
from tests.claims import worlds
from tests.claims.imports import drafts
from tests.claims.imports.drafts import mac, row


def test_new_changed_unchanged_and_nothing_is_written(network: Network) -> None:
    blue = worlds.ippool(network)
    worlds.entry(blue, mac(1), "10.0.0.11/24", vm="one", namespace="blue")
    worlds.entry(blue, mac(2), "10.0.0.12/24", vm="two", namespace="blue")
    of = drafts.draft(
        network,
        row("one", mac(1), "10.0.0.11"),
        row("two", mac(2), "10.0.0.22/24"),
        row("Three 3", "00-50-56-00-00-03", "10.0.0.13"),
    )
    assert (of.status, of.format) == (Status.DRAFTED, "rows")
    assert of.counts == {"new": 1, "changed": 1, "unchanged": 1, "conflict": 0, "invalid": 0}
    assert drafts.statuses(of) == {
        1: ("unchanged", set()),
        2: ("changed", {"differs"}),
        3: ("new", {"vm_name_changed"}),
    }
    changed, new = of.rows.filter(number__gt=1)
    assert changed.before["ips"] == ["10.0.0.12/24"]
    assert "10.0.0.12/24 become 10.0.0.22/24" in changed.reasons[0]["message"]
    assert (new.vm, new.mac, new.ips) == ("three-3", mac(3), ["10.0.0.13/24"])
    assert {reason["code"] for reason in new.reasons} == {"vm_name_changed", "prefix_added"}
    assert Entry.objects.count() == 2


def _register(network: Any) -> None:
    blue = worlds.ippool(network)
    worlds.entry(blue, mac(1), "10.0.0.11/24", vm="one", namespace="blue")
    worlds.claim(network, "claimed", "10.0.0.20/24", mac=mac(20))
    worlds.workload(network, "runs", mac(30), "10.0.0.30")


@pytest.mark.sample(24)
@pytest.mark.parametrize(
    ("given", "status", "codes"),
    [
        (row("other", mac(9), "10.0.0.11"), "conflict", {"duplicate_ip"}),
        (row("other", mac(20), "10.0.0.90"), "conflict", {"duplicate_mac"}),
        (row("other", mac(9), "10.0.0.20"), "conflict", {"duplicate_ip"}),
        (row("claimed", mac(20), "10.0.0.20"), "new", set()),
        (row("other", mac(30), "10.0.0.90"), "conflict", {"duplicate_mac"}),
        (row("runs", mac(30), "10.0.0.30"), "new", set()),
        (row("other", mac(9), "10.0.0.248"), "conflict", {"gateway", "infrastructure"}),
        (row("other", mac(9), "10.0.0.249"), "conflict", {"management", "infrastructure"}),
        (row("other", "0a:58:0a:00:00:f8", "10.0.0.90"), "conflict", {"gateway_mac"}),
        (row("other", "0a:58:0a:00:00:f9", "10.0.0.90"), "conflict", {"management_mac"}),
        (row("other", mac(9), "10.0.0.250"), "conflict", {"infrastructure"}),
        (row("other", mac(9), "10.0.0.1"), "new", set()),
        (row("other", mac(9), "10.0.0.241"), "new", {"reserved_subnet"}),
        (row("other", mac(9), "10.0.0.0"), "invalid", {"network_address_not_host"}),
        (row("other", mac(9), "10.0.0.255"), "invalid", {"broadcast_address_not_host"}),
        (row("other", mac(9), "10.0.1.5"), "invalid", {"outside_subnet"}),
        (row("other", mac(9), "10.0.0.5/16"), "invalid", {"prefix_mismatch"}),
        (row("other", mac(9), "10.0.0.5", "10.0.0.6"), "invalid", {"too_many_addresses"}),
        (row("other", mac(9), "10.0.0.5", "10.0.0.5/24"), "invalid", {"repeated_address"}),
        (row("other", "11:22:33:44:55:66", "10.0.0.5"), "invalid", {"multicast_mac"}),
        (row("other", "00:00:00:00:00:00", "10.0.0.5"), "invalid", {"zero_mac"}),
        (row("other", "", "10.0.0.5"), "invalid", {"mac_missing"}),
        (row("other", mac(9)), "invalid", {"no_address"}),
        (row("a" * 70, mac(9), "10.0.0.5"), "new", {"vm_name_changed"}),
        (row(f"{'a' * 40}.{'b' * 40}", mac(9), "10.0.0.5"), "new", set()),
        (row("Ωmega", mac(9), "10.0.0.5"), "new", {"vm_name_changed"}),
        (row("§§", mac(9), "10.0.0.5"), "invalid", {"vm_name"}),
        (row("other", mac(9), "10.0.0.5", namespace="Not A Name"), "invalid", {"k8s_name"}),
    ],
)  # fmt: skip
def test_against_the_register(given: Any, status: str, codes: set[str]) -> None:
    network = worlds.network(
        infrastructure_subnets=["10.0.0.248/30"], reserved_subnets=["10.0.0.240/30"]
    )
    _register(network)
    of = drafts.draft(network, given)
    assert drafts.statuses(of) == {1: (status, codes)}


def test_rows_that_the_webhook_would_decline_have_a_way_out() -> None:
    """IPv4 alone on a network of both families, and two IPv4 addresses of one NIC."""
    network = worlds.network(subnets=("10.0.0.0/24", "fd00::/64"))
    worlds.entry(worlds.ippool(network), mac(4), "10.0.0.14/24", vm="four", namespace="blue")
    of = drafts.draft(
        network,
        row("one", mac(1), "10.0.0.11"),
        row("two", mac(2), "10.0.0.12", "fd00::6"),
        row("three", mac(3), "10.0.0.13", "10.0.0.23", "fd00::3"),
        row("four", mac(4), "10.0.0.14"),  # registered just so
        row("five", mac(5), "fd00::4"),
        row("six", mac(6), "10.0.0.16"),
    )
    assert drafts.statuses(of) == {
        1: ("invalid", {"family_missing"}),
        2: ("new", set()),
        3: ("invalid", {"too_many_addresses"}),
        4: ("unchanged", {"family_missing"}),
        5: ("invalid", {"family_missing"}),
        6: ("invalid", {"family_missing"}),
    }
    import_drafts.IMPORTS.correct_row(of.pk, 3, {"ips": ["10.0.0.23", "fd00::3"]}, author=worlds.BY)
    completed = import_drafts.assign_free_addresses(of.pk, 1, author=worlds.BY)
    assert completed.ips == ["10.0.0.11/24", "fd00::5/64"]
    done = import_drafts.assign_missing_families(of.pk, author=worlds.BY)
    assert drafts.counts(done) == {"new": 5, "unchanged": 1}
    rows = {import_row.number: import_row.ips for import_row in of.rows.all()}
    assert rows[5] == ["fd00::4/64", "10.0.0.3/24"]
    assert rows[6] == ["10.0.0.16/24", "fd00::7/64"]
    completed = import_drafts.assign_free_addresses(of.pk, 6, author=worlds.BY)
    assert completed.ips == ["10.0.0.4/24", "fd00::7/64"]


def test_a_full_network_says_what_cools() -> None:
    network = worlds.network(subnets=("10.0.0.0/29",), reserved_subnets=["10.0.0.4/30"])
    of = drafts.draft(network, row("one", mac(1), "10.0.0.5"))
    assert network.pool is not None
    pools.change(network.pool.pk, pools.PoolChange(cooldown_seconds=3600), author=worlds.BY)
    factories.give_back(factories.take(network.pool, factories.holder("x"), cidr="10.0.0.3/32"))
    with pytest.raises(errors.PoolExhausted) as refusal:
        import_drafts.assign_free_addresses(of.pk, 1, author=worlds.BY)
    assert refusal.value.message.startswith(
        f"{network.name} has no free IPv4 address. 1 block is in cooldown; the next one becomes free at 20"
    )


def test_rows_against_each_other(network: Network) -> None:
    of = drafts.draft(
        network,
        row("one", mac(1), "10.0.0.11"),
        row("one", mac(1), "10.0.0.11"),  # the same again
        row("two", mac(2), "10.0.0.12"),
        row("three", mac(2), "10.0.0.13"),  # the MAC of two
        row("four", mac(4), "10.0.0.14"),
        row("five", mac(5), "10.0.0.14"),  # the address of four
        row("Six", mac(6), "10.0.0.16"),
        row("six", mac(7), "10.0.0.17"),  # two VMs of one name
    )
    assert drafts.statuses(of) == {
        1: ("new", set()),
        2: ("unchanged", {"repeated_row"}),
        3: ("conflict", {"mac_twice_in_file"}),
        4: ("conflict", {"mac_twice_in_file"}),
        5: ("conflict", {"ip_twice_in_file"}),
        6: ("conflict", {"ip_twice_in_file"}),
        7: ("conflict", {"vm_name_changed", "vm_name_collision"}),
        8: ("conflict", {"vm_name_collision"}),
    }


def test_a_corrected_row_leaves_what_others_contradict(network: Network) -> None:
    ips = ("10.0.0.11", "10.0.0.11", "10.0.0.13")
    of = drafts.draft(network, *map(row, "abc", (mac(1), mac(2), mac(2)), ips))
    import_drafts.IMPORTS.correct_row(of.pk, 1, {"ips": ["10.0.0.12"]}, author=worlds.BY)
    twice = ("conflict", {"mac_twice_in_file"})
    assert drafts.statuses(of) == {1: ("new", set()), 2: twice, 3: twice}


def _of_a_segment(*rows: dict[str, Any]) -> VMImport:
    """A draft for two networks of one segment, one of which has a part of the other's subnets."""
    localnet = {"topology": "localnet", "role": "secondary"}
    wide = worlds.network("wide", subnets=("10.0.0.0/24", "fd00::/64"), **localnet)
    part = worlds.network("part", subnets=("10.0.0.0/25", "fd00::/80"), **localnet)
    for network in (wide, part):
        config = {"physicalNetworkName": "physnet"}
        network.nads.create(namespace="blue", name=network.name, config=config)
    return drafts.draft(wide, *rows, mapping={"wide": wide.pk, "part": part.pk})


def test_a_mac_on_two_networks_of_a_segment_is_a_conflict() -> None:
    of = _of_a_segment(
        row("a", mac(1), "10.0.0.11", "fd00::1", network="wide"),
        row("b", mac(1), "10.0.0.12", "fd00::2", network="part"),
    )
    assert drafts.statuses(of) == dict.fromkeys((1, 2), ("conflict", {"mac_twice_in_file"}))


def test_a_correction_ends_a_conflict_with_a_row_of_another_prefix_length() -> None:
    of = _of_a_segment(
        row("a", mac(1), "10.0.0.11", "fd00::1", network="wide"),
        row("b", mac(2), "10.0.0.11", "fd00::2", network="part"),
        row("c", mac(3), "10.0.0.13", "fd00::2", network="wide"),
    )
    conflict = ("conflict", {"ip_twice_in_file"})
    assert drafts.statuses(of) == {1: conflict, 2: conflict, 3: conflict}
    ips = ["10.0.0.12", "fd00::4"]
    import_drafts.IMPORTS.correct_row(of.pk, 2, {"ips": ips}, author=worlds.BY)
    assert drafts.statuses(of) == dict.fromkeys((1, 2, 3), ("new", set()))
