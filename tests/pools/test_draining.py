"""CIDRs that are reserved as a whole are found without reading all that have a reserved range."""

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext
from django.urls import reverse

from pools.models import Pool, PoolCIDR
from pools.register import orphans
from tests import factories, people

pytestmark = pytest.mark.django_db


def test_the_cidrs_that_ranges_cover_are_found(monkeypatch: pytest.MonkeyPatch) -> None:
    factories.pool("10.2.0.0/24", name="few", reserved=["10.2.0.1-10.2.0.5"])
    factories.pool(
        "10.0.0.0/22", category="pod", mask=24, name="an address of each block",
        reserved=[f"10.0.{number}.9-10.0.{number}.9" for number in range(4)],
    )  # fmt: skip
    factories.pool("10.1.0.0/29", name="all usable", reserved=["10.1.0.1-10.1.0.6"])
    factories.pool(
        "10.3.0.0/22", category="pod", mask=24, name="three of four blocks",
        reserved=["10.3.0.0-10.3.2.0"],
    )  # fmt: skip
    factories.pool("10.4.0.0/32", name="one", reserved=["10.4.0.0-10.4.0.0"])
    factories.pool("fd00::/120", name="v6", reserved=["fd00::-fd00::ff"])
    factories.pool("fd01::/120", name="v6 in part", reserved=["fd01::-fd01::7"])
    rows = PoolCIDR.objects.order_by("pool_id").select_related("pool")
    covered = [cidr.pool.name for cidr in rows if orphans.is_reserved(cidr)]
    assert {"an address of each block", "all usable", "one", "v6"} <= {*covered}
    assert [cidr.pool.name for cidr in orphans.draining_cidrs()] == covered
    pools = {pool.name: pool.pk for pool in Pool.objects.all()}
    assert orphans.draining_pools(pools.values()) == {pools[name] for name in covered}
    assert orphans.draining_pools([pools["few"], pools["one"]]) == {pools["one"]}
    assert orphans.draining_pools([]) == set()
    monkeypatch.setattr(orphans, "MOST", 1)  # not that of the few reserved addresses
    assert [cidr.pool.name for cidr in orphans.draining_cidrs()] == covered[:1]


def test_lists_of_pools_read_the_ranges_of_few() -> None:
    """Only of a pool that ranges may cover: most reserve a few addresses of each CIDR."""
    factories.pool("10.0.0.0/24", name="few", reserved=["10.0.0.1-10.0.0.5"])
    covered = factories.pool("10.1.0.0/30", name="covered", reserved=["10.1.0.1-10.1.0.2"])
    cidr = factories.cidr(covered)
    client = people.browser()
    url = reverse("admin:pools_pool_changelist")
    for query in ({}, {"state": "full"}, {"state": "active"}):
        with CaptureQueriesContext(connection) as queries:
            client.get(url, query)
        read = [
            sql
            for entry in queries
            if (sql := entry["sql"]).startswith('SELECT "pools_reservedrange"."id"')
        ]
        assert read
        assert all(f'"pool_cidr_id" IN ({cidr.pk})' in sql for sql in read)
