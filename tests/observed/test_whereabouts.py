"""Addresses that whereabouts has handed out: read of its pools, also where no NAD names a range."""

from typing import Any

import pytest

from pools.models import Finding, ObservedCIDR, ObservedObject
from tests.edges.api import Api
from tests.observed import objects
from tests.observed.conftest import Prod

KIND = "IPPool.whereabouts.cni.cncf.io"
MACVLAN = {"cniVersion": "0.3.1", "type": "macvlan", "master": "eth0"}


@pytest.fixture(autouse=True)
def _definition(server: Any) -> None:
    server.crds("k8s.cni.cncf.io_network-attachment-definitions", "whereabouts.cni.cncf.io_ippools")


def _uses() -> list[tuple[str, str]]:
    rows = ObservedCIDR.objects.filter(kind=KIND).order_by("cidr")
    return [(str(row.cidr), row.detail) for row in rows]


def test_its_pools_are_read_where_the_range_is_a_file_of_the_nodes(prod: Prod, api: Api) -> None:
    prod.server.put(objects.nad("storage", MACVLAN | {"ipam": {"type": "whereabouts"}}))
    name = "192.168.2.0-28"
    pool = objects.whereabouts_pool(name, "192.168.2.0/28", at_1="shop/web-0", at_2="shop/web-1")
    prod.follow(pool)
    assert _uses() == [("192.168.2.1/32", "shop/web-0"), ("192.168.2.2/32", "shop/web-1")]
    (result,) = api("GET", "addresses/192.168.2.1/").json()["observed_cidrs"]
    assert (result["name"], result["detail"]) == (name, "shop/web-0")
    assert "2f1c" not in str(ObservedObject.objects.get(kind=KIND).manifest)
    prod.server.put(
        objects.whereabouts_pool(name, "192.168.2.0/28", at_2="shop/web-1", at_3="shop/db")
    )
    prod.reconcile()
    assert _uses() == [("192.168.2.2/32", "shop/web-1"), ("192.168.2.3/32", "shop/db")]


def test_its_pool_repeats_the_nad_and_clashes_with_a_node(prod: Prod) -> None:
    """The pool names the whole subnet, of which the NAD takes a part: nodes have addresses in the rest."""
    ipam = {"type": "whereabouts", "range": "192.168.1.0/24", "range_start": "192.168.1.200"}
    prod.server.put(objects.nad("lan", MACVLAN | {"ipam": ipam}))
    prod.server.put(objects.whereabouts_pool("lan", "192.168.1.0/24", at_200="shop/web-0"))
    prod.server.put(objects.node("worker-1", "192.168.1.10"))
    prod.reconcile()
    assert not Finding.objects.exists()
    prod.follow(objects.whereabouts_pool("lan", "192.168.1.0/24", at_10="shop/web-0"))
    finding = Finding.objects.get()
    assert finding.code == "address_clash"
    assert "192.168.1.10/32" in finding.message
