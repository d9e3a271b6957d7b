"""A VM is judged as a whole, and what a file says is in use stays in use."""

from typing import Any

import pytest

from claims.imports import drafts as import_drafts
from claims.models import Entry, Network, VMImport
from claims.waves import readiness, waves
from tests.claims import worlds
from tests.claims.imports import corpus, drafts
from tests.claims.imports.drafts import counts, mac, row, statuses
from tests.claims.worlds import BY

CROWDED = "several_primary_interfaces"
TWO_NICS = {
    "one port group": [row("db", mac(1), "10.0.0.11"), row("db", mac(2), "10.0.0.12")],
    "two port groups": [
        row("db", mac(1), "10.0.0.11", network="vlan1"),
        row("db", mac(2), "10.0.0.12", network="vlan2"),
    ],
    "one without address": [row("db", mac(1), "10.0.0.11"), row("db", mac(2))],
}


def committed(network: Network, *rows: dict[str, Any]) -> Any:
    return import_drafts.IMPORTS.commit(drafts.draft(network, *rows).pk, author=BY)


@pytest.mark.parametrize("rows", TWO_NICS.values(), ids=TWO_NICS)
def test_two_interfaces_on_a_primary_network(network: Network, rows: list[Any]) -> None:
    found = statuses(drafts.draft(network, *rows))
    assert all(CROWDED in codes for _status, codes in found.values())
    assert "new" not in {status for status, _codes in found.values()}
    Network.objects.update(role="secondary")
    assert not any(CROWDED in codes for _, codes in statuses(drafts.draft(network, *rows)).values())


@pytest.mark.parametrize("role", ["primary", "secondary"])
def test_two_vms_of_one_name_in_two_folders(network: Network, role: str) -> None:
    """The ids of the source tell them apart; an interface of one of them has no conflict with its others."""
    Network.objects.update(role=role)
    numbers = {1: "vm-1", 2: "vm-1", 3: "vm-2"} if role == "secondary" else {1: "vm-1", 3: "vm-2"}
    nics = [
        corpus.nic(n, VM="web", **{"VM ID": vm, "IPv4 Address": f"10.0.0.1{n}", "IPv6 Address": ""})
        for n, vm in numbers.items()
    ]
    new = VMImport(cluster=network.cluster, network=network, namespace="blue")
    file = corpus.to_csv(corpus.rows(*nics)).encode()
    of = import_drafts.IMPORTS.create([("", file)], new, author=BY)
    assert statuses(of) == dict.fromkeys(statuses(of), ("conflict", {"vm_name_collision"}))
    assert "web (vm-1), web (vm-2)" in of.rows.first().reasons[0]["message"]
    for other in of.rows.filter(texts__vm_id="vm-2"):
        import_drafts.IMPORTS.correct_row(of.pk, other.number, {"vm": "web-2"}, author=BY)
    renamed = {number: ("new", set()) for number in statuses(of)}
    assert statuses(of) == renamed


def test_the_second_interface_in_another_import(network: Network) -> None:
    committed(network, row("db", mac(1), "10.0.0.11"))
    second = drafts.draft(network, row("db", mac(2), "10.0.0.12"))
    assert statuses(second) == {1: ("conflict", {CROWDED})}
    import_drafts.IMPORTS.skip_rows(second.pk, [1], skipped=True, author=BY)
    again = drafts.draft(network, row("db", mac(1), "10.0.0.21"))
    assert statuses(again) == {1: ("changed", {"differs"})}


@pytest.mark.parametrize("by", ["entry", "claim"])
def test_a_wave_is_not_ready(network: Network, by: str) -> None:
    network.nads.create(namespace="blue", name="blue", role="primary", allow_persistent_ips=True)
    committed(network, row("db", mac(1), "10.0.0.11"))
    if by == "entry":
        ippool = Entry.objects.get().ippool
        worlds.entry(ippool, mac(2), "10.0.0.12/24", vm="db", namespace="blue")
    else:
        worlds.claim(network, "db", "10.0.0.12/24", mac=mac(2))
    wave = waves.create(network.cluster, "Saturday", author=BY)
    waves.add(wave.pk, [("blue", "db")], author=BY)
    (machine,) = readiness.wave_readiness(wave).machines
    assert (machine.status, CROWDED in dict(machine.reasons)) == ("not-ready", True)


@pytest.fixture
def dual() -> Network:
    return worlds.network("cluster_udn_dual", subnets=("10.3.0.0/24", "2001:db8:3::/64"))


@pytest.mark.parametrize("ips", [("10.3.0.11",), ()], ids=["one family", "no address"])
def test_a_completed_file_changes_nothing_when_it_comes_again(dual: Network, ips: Any) -> None:
    rows = [row("web", mac(1), *ips), row("db", mac(2), "10.3.0.12", "2001:db8:3::12")]
    first = drafts.draft(dual, *rows)
    import_drafts.assign_free_addresses(first.pk, 1, author=BY)
    import_drafts.IMPORTS.commit(first.pk, author=BY)
    entry = Entry.objects.get(mac=mac(1))
    again = drafts.draft(dual, *rows)
    assert counts(again) == {"unchanged": 2}
    stays = ", ".join(ip for ip in entry.ips if ip.partition("/")[0] not in ips)
    message = again.rows.get(number=1).reasons[0]["message"]
    assert message == f"The registered address {stays} is kept."
    import_drafts.assign_missing_families(again.pk, author=BY)
    import_drafts.IMPORTS.revalidate(again.pk, author=BY)
    assert counts(import_drafts.IMPORTS.commit(again.pk, author=BY)) == {"unchanged": 2}
    assert Entry.objects.get(mac=mac(1)).ips == entry.ips
    moved = drafts.draft(dual, row("web", mac(1), "10.3.0.99"))
    assert counts(moved) == {"changed": 1}
    Entry.objects.filter(pk=entry.pk).update(ips=[entry.ips[0], "2001:db8:3::77/64"])
    import_drafts.IMPORTS.commit(moved.pk, author=BY)
    assert Entry.objects.get(pk=entry.pk).ips == ["10.3.0.99/24", "2001:db8:3::77/64"]


def test_the_one_of_several_addresses_that_was_chosen_stays(network: Network) -> None:
    rows = [row("web", mac(1), "10.0.0.11", "10.0.0.12")]
    first = drafts.draft(network, *rows)
    assert statuses(first) == {1: ("invalid", {"too_many_addresses"})}
    import_drafts.IMPORTS.correct_row(first.pk, 1, {"ips": ["10.0.0.12"]}, author=BY)
    import_drafts.IMPORTS.commit(first.pk, author=BY)
    again = drafts.draft(network, *rows)
    assert statuses(again) == {1: ("unchanged", {"kept_address"})}
    message = again.rows.get().reasons[0]["message"]
    assert message == "The registered address 10.0.0.12/24 is kept."
    assert counts(import_drafts.IMPORTS.commit(again.pk, author=BY)) == {"unchanged": 1}
    Entry.objects.update(ips=["10.0.0.77/24"])
    assert statuses(drafts.draft(network, *rows))[1][0] == "invalid"


def test_no_free_address_is_one_of_the_file(network: Network) -> None:
    skipped, refused = row("skipped", mac(1), "10.0.0.1"), row("refused", mac(2), "10.0.0.2/16")
    odd = row("odd", mac(3), "10.0.0.3:8080")
    draft = drafts.draft(network, skipped, refused, odd, row("new", mac(4)))
    import_drafts.IMPORTS.skip_rows(draft.pk, [1], skipped=True, author=BY)
    import_drafts.assign_free_addresses(draft.pk, 4, author=BY)
    assert draft.rows.get(number=4).ips == ["10.0.0.4/24"]
