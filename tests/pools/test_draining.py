"""CIDRs that are reserved as a whole are found without reading all that have a reserved range."""

from __future__ import annotations

import pytest

from pools.models import PoolCIDR
from pools.register import draining
from tests import factories

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
    covered = [cidr.pool.name for cidr in rows if draining.is_reserved(cidr)]
    assert {"an address of each block", "all usable", "one", "v6"} <= {*covered}
    assert [cidr.pool.name for cidr in draining.draining_cidrs()] == covered
    monkeypatch.setattr(draining, "MOST", 1)  # not that of the few reserved addresses
    assert [cidr.pool.name for cidr in draining.draining_cidrs()] == covered[:1]
