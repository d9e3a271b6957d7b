"""Pools of other owners are written field by field, and come to rest: the third pass writes nothing."""

from collections.abc import Callable
from typing import Any

import pytest

from pools.models import Drift, ManagedResource
from pools.register import pools
from tests import factories
from tests.handlers.fleet import manifest, reserved
from tests.kube.real import RealCluster
from tests.real.owned_pools import A, B, C, Owned

pytestmark = pytest.mark.django_db
LABELS = {"team": "network"}


@pytest.fixture
def owned(kube: RealCluster, kubectl: Callable[..., str], owner: str, version: str) -> Owned:
    kube.anew("cilium.io_ciliumpodippools.v2", "cilium.io_ciliumnodes")
    owned = Owned(kube, kubectl, owner, version)
    owned.apply("green", A, B)
    return owned


def _at_rest(owned: Owned) -> str:
    """The version of the object, which one more pass does not change."""
    before = owned.resource_version()
    counts = owned.counted()
    assert (counts["written"], counts["changed"]) == (0, 0)
    assert owned.resource_version() == before
    return before


def test_observed_nothing_is_ever_written(owned: Owned) -> None:
    owned.passed()
    before = owned.resource_version()
    pools.add_cidr(owned.pool("green").pk, factories.entry(C), author=factories.BY)
    owned.passed()
    assert _at_rest(owned) == before
    assert owned.cidrs("green") == [A, B]


def test_managed_reserved_ranges_and_labels_are_written_and_nothing_is_stolen(owned: Owned) -> None:
    owned.manage(ManagedResource.POOLS)
    owned.passed()
    before = owned.owners()
    pool = owned.pool("green")
    pools.change(pool.pk, pools.PoolChange(labels=LABELS), author=factories.BY)
    factories.reserve(pool, "10.0.0.0-10.0.0.99")
    assert owned.counted()["written"] == 1
    stored = owned.stored()
    assert stored["spec"]["ipv4"]["pool"] == [reserved(A, ("10.0.0.0", "10.0.0.99"))]
    assert (stored["spec"]["ipv4"]["cidrs"], stored["metadata"]["labels"]) == ([A, B], LABELS)
    assert owned.owners() == before | {"cadastre": "Apply"}
    assert _fields(stored, "cadastre") == {"f:pool"}
    assert {"f:cidrs", "f:maskSize"} <= _fields(stored, owned.manager)
    _at_rest(owned)
    assert (owned.drift(), owned.findings()) == ([], [])
    # The owner's own change meets nobody in the way; what is ours is there again after the next pass.
    owned.apply("green", A, B, C)
    owned.passed()
    assert owned.difference().managers == [owned.manager]
    assert owned.stored()["spec"]["ipv4"]["pool"] == [reserved(A, ("10.0.0.0", "10.0.0.99"))]
    assert owned.stored()["spec"]["ipv4"]["cidrs"] == [A, B, C]
    _at_rest(owned)
    pools.unreserve(pool.reserved_ranges.get().pk, author=factories.BY)
    owned.passed()
    assert not any(
        "reservedRanges" in item for item in owned.stored()["spec"]["ipv4"].get("pool", [])
    )
    _at_rest(owned)


def test_managed_a_list_of_somebody_else_holds_up_nothing_but_itself(owned: Owned) -> None:
    owned.manage(ManagedResource.POOLS)
    owned.passed()
    pool = owned.pool("green")
    factories.reserve(pool, A)
    owned.passed()
    pools.add_cidr(pool.pk, factories.entry(C, "10.2.0.0-10.2.0.9"), author=factories.BY)
    pools.remove_cidr(owned.cidr(A).pk, author=factories.BY)
    factories.reserve(pool, "10.1.0.0-10.1.0.9")
    assert owned.counted()["written"] == 1
    stored = owned.stored()["spec"]["ipv4"]
    assert stored["cidrs"] == [A, B]
    # Of the CIDR that is to go the cluster hands out nothing, of the one that is not there it knows nothing.
    assert {item["cidr"] for item in stored["pool"]} == {A, B}
    assert owned.pending() == {A: "removal", C: "addition"}
    row = owned.difference()
    assert (row.conflict_code, row.managers) == ("field_conflict", [owned.manager])
    assert owned.manager in row.conflict
    _at_rest(owned)
    owned.apply("green", B, C)
    owned.passed()
    assert (owned.pending(), Drift.objects.count()) == ({}, 0)
    _at_rest(owned)


def _fields(stored: dict[str, Any], manager: str) -> set[str]:
    """What a manager owns of spec.ipv4; every entry is of the version that has all fields."""
    entries = [
        managed_field
        for managed_field in stored["metadata"]["managedFields"]
        if managed_field["manager"] == manager
    ]
    result = [entry["fieldsV1"].get("f:spec", {}).get("f:ipv4", {}) for entry in entries]
    return {name for item in result for name in item} - {"."}


@pytest.mark.parametrize("owner", ["kubectl-client-side"])
@pytest.mark.parametrize("version", ["v2"])
def test_what_the_register_made_is_its_own(owned: Owned) -> None:
    owned.manage(ManagedResource.POOLS)
    pool = owned.make("blue", C, reserved=["10.2.0.0-10.2.0.9"])
    assert owned.counted()["written"] == 1
    assert owned.stored("blue")["spec"]["ipv4"]["pool"] == [reserved(C, ("10.2.0.0", "10.2.0.9"))]
    owned.kubectl("apply", "--server-side", "-f", "-", manifest=manifest("blue", C))
    pools.change(pool.pk, pools.PoolChange(labels=LABELS), author=factories.BY)
    owned.passed()
    assert owned.stored("blue")["metadata"]["labels"] == LABELS
    _at_rest(owned)
