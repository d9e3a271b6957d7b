"""A list of CIDRs that somebody else owns: what is removed or added here waits until the object follows."""

from collections.abc import Callable

import pytest
from django.db import IntegrityError, connection, transaction

from pools.cidr_migrations import migrations, progress
from pools.cidr_migrations.progress import MigrationStatus, MigrationStep
from pools.cilium import configuration
from pools.core import addresses, errors
from pools.models import CIDRMigration, ManagedResource, PoolCIDR
from pools.register import pools, usage
from tests import factories
from tests.edges import api as apis
from tests.kube.real import RealCluster
from tests.real.owned_pools import A, B, C, Owned

pytestmark = pytest.mark.django_db


@pytest.fixture
def owned(kube: RealCluster, kubectl: Callable[..., str], owner: str, version: str) -> Owned:
    kube.anew("cilium.io_ciliumpodippools.v2", "cilium.io_ciliumnodes")
    owned = Owned(kube, kubectl, owner, version)
    owned.manage(ManagedResource.POOLS)
    owned.apply("green", A, B)
    owned.passed()
    return owned


def test_a_removed_cidr_is_taken_until_the_cluster_follows(owned: Owned) -> None:
    pools.remove_cidr(owned.cidr(A).pk, author=factories.BY)
    assert (owned.pending(), owned.cidrs("green")) == ({A: "removal"}, [B])
    before = owned.resource_version()
    for _ in range(2):
        owned.passed()
        assert owned.pending() == {A: "removal"}
        assert ("cidr_removal_pending", f"green {A}") in owned.findings()
        assert owned.resource_version() == before
        with pytest.raises(errors.CIDROverlap, match="green"):
            owned.make("blue", "10.0.3.0/24")
    owned.apply("green", B)
    owned.passed()
    assert (owned.pending(), owned.findings(), owned.drift()) == ({}, [], [])
    owned.make("blue", A)
    owned.passed()
    assert owned.there()["blue"]["spec"]["ipv4"]["cidrs"] == [A]


def test_an_added_cidr_is_not_handed_out_until_the_cluster_has_it(owned: Owned) -> None:
    pool = owned.pool("green")
    capacity = usage.pool_usage(pool)[4]
    pools.add_cidr(pool.pk, factories.entry(C), author=factories.BY)
    for _ in range(2):
        assert owned.pending() == {C: "addition"}
        assert usage.pool_usage(pool)[4].free == capacity.free
        with pytest.raises(errors.IpamError):
            factories.take(pool, cidr="10.2.7.0/24")
        owned.passed()
        assert ("cidr_addition_pending", f"green {C}") in owned.findings()
    owned.apply("green", A, B, C)
    owned.passed()
    assert (owned.pending(), owned.findings(), owned.drift()) == ({}, [], [])
    assert usage.pool_usage(pool)[4].free > capacity.free
    factories.take(pool, cidr="10.2.7.0/24")


@pytest.mark.parametrize("owner", ["kubectl-client-side"])
@pytest.mark.parametrize("version", ["v2"])
def test_a_migration_has_removed_when_the_cluster_says_so(owned: Owned) -> None:
    expected = migrations.plan_migration(owned.pool("green"), addresses.parse_cidr(A))
    migration = migrations.start_migration(expected, author=factories.BY)
    migrations.take_step(migration.pk, MigrationStep.RESERVE, author=factories.BY)
    owned.passed()
    migrations.take_step(migration.pk, MigrationStep.REMOVE, author=factories.BY)
    owned.passed()

    def status() -> MigrationStatus:
        return progress.migration_progress(migrations.get_migration(migration.pk)).status

    assert status() is MigrationStatus.REMOVING
    owned.apply("green", B)
    owned.passed()
    assert status() is MigrationStatus.REMOVED
    assert CIDRMigration.objects.get().ended_at is not None


@pytest.mark.parametrize("owner", ["kubectl-client-side"])
@pytest.mark.parametrize("version", ["v2"])
def test_a_removal_can_be_taken_back(owned: Owned) -> None:
    pools.remove_cidr(owned.cidr(A).pk, author=factories.BY)
    pools.add_cidr(owned.pool("green").pk, factories.entry(A), author=factories.BY)
    assert owned.pending() == {}
    factories.take(owned.pool("green"), cidr="10.0.7.0/24")


@pytest.mark.parametrize("owner", ["kubectl-client-side"])
@pytest.mark.parametrize("version", ["v2"])
def test_the_database_keeps_what_objects_have_from_other_pools(owned: Owned) -> None:
    """Also where the register has no such pool any more, and whoever writes the row."""
    blue = owned.make("blue", C)
    pools.delete(owned.pool("green").pk, author=factories.BY)
    with pytest.raises(IntegrityError, match="green"), transaction.atomic():
        PoolCIDR.objects.create(pool=blue, space_id=blue.space_id, cidr="10.1.3.0/24", position=9)
    with pytest.raises(errors.CIDROverlap, match="green"):
        pools.add_cidr(blue.pk, factories.entry(B), author=factories.BY)
    with connection.cursor() as cursor, transaction.atomic():
        cursor.execute("UPDATE pools_observedobject SET manifest = jsonb_set(manifest, '{spec}', %s)",
                       ['{"ipv4": {"cidrs": [{}]}}'])  # fmt: skip
    with pytest.raises(errors.CIDROverlap, match="green"):  # a version that hides them says nothing
        pools.add_cidr(blue.pk, factories.entry(B), author=factories.BY)


@pytest.mark.parametrize("owner", ["kubectl-client-side"])
@pytest.mark.parametrize("version", ["v2"])
def test_preflight_looks_at_what_the_cluster_has(owned: Owned) -> None:
    owned.apply("blue", "10.0.3.0/24")
    owned.passed()
    (overlap,) = [
        finding
        for finding in configuration.run_preflight(owned.cluster).findings
        if finding.rule == "overlapping-pools"
    ]
    assert "10.0.3.0/24 of blue in 10.0.0.0/16 of green" in overlap.observation


@pytest.mark.parametrize("owner", ["kubectl-client-side"])
@pytest.mark.parametrize("version", ["v2"])
def test_over_http_a_removal_that_waits_is_accepted_not_done(owned: Owned) -> None:
    api = apis.Api()
    path = f"pools/{owned.pool('green').pk}/cidrs/"
    answer = api("DELETE", f"{path}{owned.cidr(A).pk}/")
    assert (answer.status_code, answer.json()["pending"]) == (202, "removal")
    listed = {result["cidr"]: result["pending"] for result in api("GET", path).json()["results"]}
    assert listed == {A: "removal", B: None}
    body = {"cluster": owned.cluster.name, "name": "blue", "category": "pod"}
    body["ipv4"] = {"mask_size": 24, "cidrs": [A]}
    refused = api("POST", "pools/", body)
    assert (refused.status_code, refused.json()["code"]) == (409, "cidr_overlap")
