"""Adopting: what would change is said first; then the register says what runs, once."""

import pytest

from claims.api.workloads import AdoptionPlanSerializer
from claims.models import Entry, IPPool, Network
from claims.workloads import adoption, results
from pools.core import errors
from tests.claims import worlds

A, B, C = "02:00:00:00:00:0a", "02:00:00:00:00:0b", "02:00:00:00:00:0c"
FIVE, SIX = "10.0.0.5/24", "10.0.0.6/24"


def actions(plan: adoption.Plan) -> list[str]:
    return [step.action for step in plan.steps]


def entry_rows(network: Network) -> list[tuple[str, list[str], str, str]]:
    rows = Entry.objects.filter(ippool__network=network).order_by("mac", "id")
    return [(row.mac, row.ips, row.vm, row.source) for row in rows]


def test_what_is_unknown_makes_the_ippool_and_its_entries() -> None:
    network = worlds.network(object_name="blue")
    worlds.workload(network, "db", A, FIVE)
    worlds.workload(network, "web", B, SIX, kind="pod")
    planned = adoption.plan(network, result="unknown")
    assert (planned.ippool, planned.makes_ippool, actions(planned)) == ("blue", True, ["create"] * 2)  # fmt: skip
    assert not IPPool.objects.exists()
    done = adoption.adopt(network, result="unknown", author=worlds.BY)
    assert AdoptionPlanSerializer(done).data == AdoptionPlanSerializer(planned).data
    assert entry_rows(network) == [(A, [FIVE], "db", "adopted"), (B, [SIX], "", "adopted")]
    assert results.result_counts(network.pk)["matching"] == 2
    assert adoption.adopt(network, result="unknown", author=worlds.BY).steps == []
    assert IPPool.objects.get().name == "blue"


@pytest.mark.sample(5)
@pytest.mark.parametrize(
    ("entry", "runs", "remaining"),
    [
        ((A, FIVE, "db"), (A, SIX), [(A, [SIX], "db", "adopted")]),
        ((A, FIVE, "db"), (B, SIX), [(B, [SIX], "db", "adopted")]),
        ((A, FIVE, ""), (B, FIVE), [(B, [FIVE], "db", "adopted")]),
        ((A, FIVE, "other"), (A, FIVE), [(A, [FIVE], "db", "adopted")]),
        ((A, FIVE, "other"), (B, FIVE), [(A, [FIVE], "other", "hand"), (B, [FIVE], "db", "adopted")]),
    ],
    ids=["address", "vm", "mac", "other-vm", "address-of-another"],
)  # fmt: skip
def test_what_differs(
    entry: tuple[str, str, str], runs: tuple[str, str], remaining: object
) -> None:
    network = worlds.network()
    mac, ip, vm = entry
    worlds.entry(worlds.ippool(network), mac, ip, vm=vm, namespace="blue" if vm else "")
    worlds.workload(network, "db", *runs)
    assert results.result_counts(network.pk)["different"] == 1
    adoption.adopt(network, result="different", author=worlds.BY)
    assert entry_rows(network) == remaining


def test_an_entry_follows_one_workload_only() -> None:
    network = worlds.network()
    worlds.entry(worlds.ippool(network), A, FIVE, vm="db", namespace="blue")
    for mac, ip, interface in ((B, FIVE, "one"), (C, SIX, "two")):
        worlds.workload(network, "db", mac, ip, interface=interface)
    assert actions(adoption.adopt(network, result="different", author=worlds.BY)) == ["change", "create"]  # fmt: skip
    assert [item[0] for item in entry_rows(network)] == [B, C]


@pytest.mark.parametrize(
    ("mac", "ips", "code"),
    [(None, [FIVE], "nothing_to_adopt"), (A, [], "nothing_to_adopt"), (A, ["10.9.0.5/24"], "outside_subnet")],
)  # fmt: skip
def test_what_cannot_be_adopted_is_told(mac: str, ips: list[str], code: str) -> None:
    network = worlds.network()
    worlds.workload(network, "db", mac, *ips)
    (step,) = adoption.adopt(network, result="unknown", author=worlds.BY).steps
    assert (step.action, step.code) == ("refuse", code)
    assert not IPPool.objects.exists()


def test_a_claim_alone_makes_an_entry() -> None:
    network = worlds.network()
    worlds.claim(network, "db", SIX)
    row = worlds.workload(network, "db", A, FIVE)
    assert actions(adoption.adopt(network, ids=[row.pk], author=worlds.BY)) == ["create"]


def test_workloads_of_another_network() -> None:
    row = worlds.workload(worlds.network(), "db", A, FIVE)
    other = worlds.network("other")
    with pytest.raises(errors.NotFound):
        adoption.adopt(other, ids=[row.pk], author=worlds.BY)
