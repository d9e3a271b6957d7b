"""A change of a pod pool makes its cluster due, in the transaction of the change."""

from collections.abc import Callable

import pytest
from django.db import transaction

from pools.cilium import pool_sync
from pools.models import Cluster, Connection, Now, Pool
from pools.platform import events
from pools.register import manifests, pools
from tests import factories

CIDR = "10.0.0.0/16"
FAR = "2100-01-01T00:00:00Z"
CHANGES: dict[str, Callable[[Pool], object]] = {
    "add": lambda pool: pools.add_cidr(
        pool.pk, factories.entry("10.1.0.0/16"), author=factories.BY
    ),
    "remove": lambda pool: pools.remove_cidr(factories.cidr(pool).pk, author=factories.BY),
    "reserve": lambda pool: factories.reserve(pool, "10.0.0.0-10.0.0.9"),
    "change": lambda pool: pools.change(
        pool.pk, pools.PoolChange(labels={"a": "b"}), author=factories.BY
    ),
    "delete": lambda pool: pools.delete(pool.pk, author=factories.BY),
    "make": lambda pool: factories.pool(
        "10.1.0.0/16", within=pool.cluster, category="pod", mask=24
    ),
    "import": lambda pool: manifests.apply_manifests(_TEXT, pool.cluster, author=factories.BY),
}
_TEXT = b"""
apiVersion: cilium.io/v2
kind: CiliumPodIPPool
metadata: {name: imported}
spec: {ipv4: {cidrs: [10.7.0.0/16], maskSize: 24}}
"""


@pytest.fixture
def connected() -> Cluster:
    cluster = factories.cluster()
    Connection.objects.create(cluster=cluster, server="https://k", due_at=Now())
    return cluster


def _rests() -> None:
    """Nothing is due for some time."""
    Connection.objects.update(due_at=FAR)


def _due() -> bool:
    return Connection.objects.filter(due_at__lt=FAR).exists()


@pytest.mark.sample(4)
@pytest.mark.parametrize("how", list(CHANGES))
def test_a_change_makes_the_cluster_due(connected: Cluster, how: str) -> None:
    pool = factories.pool(CIDR, within=connected, category="pod", mask=24)
    _rests()
    CHANGES[how](pool)
    assert _due()


def test_one_that_is_taken_back_does_not(connected: Cluster) -> None:
    pool = factories.pool(CIDR, within=connected, category="pod", mask=24)
    _rests()
    with transaction.atomic():
        CHANGES["add"](pool)
        transaction.set_rollback(True)
    assert not _due()


def test_what_a_pass_changes_does_not(connected: Cluster) -> None:
    pool = factories.pool(CIDR, within=connected, category="pod", mask=24)
    _rests()
    pool_sync.remove_pool(pool, author=events.Author(actor="cluster c", source="cluster"))
    assert not _due()


def test_pools_of_other_addresses_do_not(connected: Cluster) -> None:
    pool = factories.pool("10.0.0.0/24", within=connected)
    _rests()
    factories.reserve(pool, "10.0.0.0-10.0.0.9")
    assert not _due()
