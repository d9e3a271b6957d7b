"""Pools of pods: from manifests, chosen for a pod, requested by a node."""

from typing import Any

import pytest

from pools.cilium import pod_choice, pod_cidrs
from pools.core.cilium.pod_pool import ObjectMetadata
from pools.models import Cluster, Pool
from pools.register import manifests, pool_cidrs
from tests import factories
from tests.core.pod_pool_texts import DUAL_STACK, HELM, PROPOSED, SHIPPED, TODAY

GREEN = ("10.20.0.0/16", "10.30.0.0/16")
SHAPES = [
    pytest.param(TODAY, {"green-pool": (GREEN, ())}, id="CFP-42466 today"),
    pytest.param(
        PROPOSED, {"green-pool": (GREEN, ("10.20.0.0-10.20.0.99",))}, id="CFP-42466 proposed"
    ),
    pytest.param(DUAL_STACK, {"green-pool": ((*GREEN, "fd00::/104"), ())}, id="documented"),
    pytest.param(
        HELM,
        {"default": (("10.10.0.0/16",), ()), "other": (("10.20.0.0/16",), ())},
        id="documented Helm values",
    ),
    pytest.param(
        SHIPPED,
        {"green-pool": (GREEN, ("10.20.0.0-10.20.0.99", "10.20.9.0-10.20.9.0"))},
        id="as Cilium ships it",
    ),
]


def _load(text: str, cluster: Cluster, **settings: bool) -> list[tuple[str, str]]:
    reports = manifests.apply_manifests(text.encode(), cluster, author=factories.BY, **settings)
    return [(report.name, report.result) for report in reports]


@pytest.mark.sample(3)
@pytest.mark.parametrize(("text", "expected"), SHAPES)
def test_every_shape(text: str, expected: dict[str, tuple[tuple[str, ...], tuple[str, ...]]]):
    cluster = factories.cluster()
    assert _load(text, cluster, dry_run=True) == [(name, "created") for name in expected]
    assert not Pool.objects.exists()
    assert _load(text, cluster) == [(name, "created") for name in expected]
    for name, (cidrs, reserved) in expected.items():
        pool = Pool.objects.get(cluster=cluster, name=name)
        mask = {4: 24, 6: 120}
        assert pool_cidrs.families(pool) == factories.families(*cidrs, mask=mask, reserved=reserved)
        assert (pool.category, pool.cooldown_seconds) == ("pod", 0)
    assert _load(text, cluster) == [(name, "unchanged") for name in expected]


REFUSED = [
    pytest.param(TODAY.replace("24", "25"), "immutable_in_use", id="mask size"),
    pytest.param(TODAY.replace("10.20.0.0", "10.21.0.0"), "cidr_in_use", id="CIDR in use"),
    pytest.param(
        TODAY.replace("  ipv4:", "  allowFirstIP: true\n  ipv4:"),
        "immutable_in_use",
        id="first address",
    ),
]


@pytest.mark.parametrize(("text", "code"), REFUSED)
def test_a_change_that_the_rules_forbid(text: str, code: str) -> None:
    cluster = factories.cluster()
    _load(TODAY, cluster)
    factories.take(Pool.objects.get())
    (report,) = manifests.apply_manifests(text.encode(), cluster, author=factories.BY)
    assert (report.result, [problem.code for problem in report.problems]) == ("refused", [code])
    assert pool_cidrs.families(Pool.objects.get()) == factories.families(*GREEN, mask=24)


def test_a_pool_of_another_category_is_not_taken_over() -> None:
    pool = factories.pool("10.0.0.0/24", name="green-pool", category="vm")
    assert _load(TODAY, pool.cluster) == [("green-pool", "refused")]


# --- The pool of a pod, from the pools of the register and what was seen of the cluster -----------
def _cluster(**green: Any) -> Cluster:
    cluster = factories.cluster()
    factories.pool("10.10.0.0/16", category="pod", mask=24, name="default", within=cluster)
    factories.pool("10.20.0.0/16", category="pod", mask=24, name="green", within=cluster, **green)
    factories.pool("10.30.0.0/16", name="vms", within=cluster)
    return cluster


def _pools(
    cluster: Cluster, pod: ObjectMetadata, namespace: ObjectMetadata
) -> list[tuple[int, str]]:
    explanation = pod_choice.explain(cluster, pod=pod, namespace=namespace)
    return [(item.choice.family, item.choice.pool) for item in explanation.chosen]


def test_a_pool_of_another_category_is_none() -> None:
    pod = ObjectMetadata("pod", {}, {"ipam.cilium.io/ip-pool": "vms"})
    (chosen,) = pod_choice.explain(_cluster(), pod=pod, namespace=ObjectMetadata("ns")).chosen
    assert (chosen.choice.pool, chosen.pool) == ("vms", None)
    assert 'there is no pool "vms"' in chosen.choice.problem


def test_what_was_not_read_is_unknown() -> None:
    """Nobody says that there is no annotation where nobody has looked."""
    cluster = _cluster(pod_selector={"matchLabels": {"team": "green"}})
    description = ObjectMetadata("pod", {}, {})
    (chosen,) = pod_choice.explain(
        cluster, pod=ObjectMetadata("pod"), namespace=ObjectMetadata("ns")
    ).chosen
    assert (chosen.choice.pool, chosen.pool) == ("", None)
    assert chosen.choice.unknown == (
        "the annotations of the pod", "the annotations of the namespace", "the labels of the pod",
    )  # fmt: skip
    assert chosen.choice.problem.startswith("unknown, because the annotations of the pod and ")
    assert chosen.choice.problem.endswith(": the cluster is not connected")
    assert "has no annotation" not in " ".join(chosen.choice.reasons)
    assert chosen.choice.reasons[-1].endswith('the result is the pool "default".')
    (chosen,) = pod_choice.explain(cluster, pod=description, namespace=ObjectMetadata("ns")).chosen
    assert chosen.choice.unknown == ("the annotations of the namespace",)


def test_what_is_not_known_is_not_needed() -> None:
    pod = ObjectMetadata("pod", None, {"ipam.cilium.io/ip-pool": "green"})
    assert _pools(_cluster(), pod, ObjectMetadata("ns")) == [(4, "green")]


def test_a_cluster_without_pools_is_told_of_both_families() -> None:
    explanation = pod_choice.explain(
        factories.cluster(), pod=ObjectMetadata("pod"), namespace=ObjectMetadata("ns")
    )
    assert [item.choice.family for item in explanation.chosen] == [4, 6]
    assert all(item.choice.problem for item in explanation.chosen)


# --- What a node will request, and which blocks would come of it ----------------------------------
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
