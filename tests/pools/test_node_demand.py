"""What a node will request, and which blocks would come of it."""

from typing import Any

import pytest

from pools.cilium import pod_cidrs
from pools.models import Cluster
from tests import factories


@pytest.fixture
def cluster() -> Cluster:
    cluster = factories.cluster()
    factories.pool("10.10.0.0/26", category="pod", mask=28, name="default", within=cluster)
    return cluster


def _asked(cluster: Cluster, **settings: Any) -> dict[tuple[str, int], tuple[int, list[str]]]:
    settings = {"in_use": {}, "pending": {}} | settings
    node_forecast = pod_cidrs.forecast(cluster, **settings)
    return {
        (need.pool, need.family): (need.needed, [str(cidr) for cidr in need.blocks])
        for need in node_forecast.needs
    }


def test_in_use_and_pending_are_rounded_up(cluster: Cluster) -> None:
    needs = _asked(cluster, in_use={"default": {4: 10}}, pending={"default": {4: 1}})
    assert needs == {("default", 4): (24, ["10.10.0.0/28", "10.10.0.16/28"])}


def test_both_families(cluster: Cluster) -> None:
    both = {4: 28, 6: 124}
    factories.pool("10.20.0.0/26", "fd00::/120", category="pod", mask=both, name="dual", within=cluster)  # fmt: skip
    assert _asked(cluster, pre_allocation={"dual": 4, "default": 1}) == {
        ("default", 4): (1, ["10.10.0.0/28"]),
        ("default", 6): (1, []),
        ("dual", 4): (4, ["10.20.0.0/28"]),
        ("dual", 6): (4, ["fd00::/124"]),
    }
    node_forecast = pod_cidrs.forecast(cluster, in_use={}, pending={})
    assert [need.problem for need in node_forecast.needs] == ["", "the pool has no IPv6 CIDRs"]


def test_what_present_nodes_hold_is_not_free_and_a_known_node_keeps_its_own(
    cluster: Cluster,
) -> None:
    pool = cluster.pools.get(name="default")
    factories.take(pool, factories.holder("node-1", kind="node"))
    assert _asked(cluster) == {("default", 4): (8, ["10.10.0.16/28"])}
    node_forecast = pod_cidrs.forecast(cluster, in_use={}, pending={}, node="node-1")
    (need,) = node_forecast.needs
    assert (node_forecast.exists, need.held, need.missing, need.blocks) == (True, 14, 0, ())
