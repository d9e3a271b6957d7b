"""The pool of a pod, from the pools of the register and what was seen of the cluster."""

from __future__ import annotations

from typing import Any

from pools.models import Cluster, ObservedObject
from pools.models.fields import Now
from pools.services import pod_choice
from pools.services.pod_choice import Named
from tests import factories


def _cluster(**green: Any) -> Cluster:
    cluster = factories.cluster()
    factories.pool("10.10.0.0/16", category="pod", mask=24, name="default", within=cluster)
    factories.pool("10.20.0.0/16", category="pod", mask=24, name="green", within=cluster, **green)
    factories.pool("10.30.0.0/16", name="vms", within=cluster)
    return cluster


def _pools(cluster: Cluster, pod: Named, namespace: Named) -> list[tuple[int, str]]:
    told = pod_choice.explain(cluster, pod=pod, namespace=namespace)
    return [(one.choice.family, one.choice.pool) for one in told.chosen]


def test_annotation_selector_and_default() -> None:
    cluster = _cluster(pod_selector={"matchLabels": {"team": "green"}})
    plain, annotated = Named("ns"), Named("ns", {}, {"ipam.cilium.io/ip-pool": "default"})
    assert _pools(cluster, Named("pod"), plain) == [(4, "default")]
    assert _pools(cluster, Named("pod", {"team": "green"}), plain) == [(4, "green")]
    assert _pools(cluster, Named("pod", {"team": "green"}), annotated) == [(4, "default")]


def test_the_pool_and_its_room() -> None:
    cluster = _cluster()
    told = pod_choice.explain(cluster, pod=Named("pod"), namespace=Named("ns"))
    (one,) = told.chosen
    assert one.pool is not None
    assert one.usage is not None
    assert (one.pool.name, one.usage.free) == ("default", 256)
    assert (told.default, told.assumed) == ("default", "the cluster is not connected")


def test_a_pool_of_another_category_is_none() -> None:
    pod = Named("pod", {}, {"ipam.cilium.io/ip-pool": "vms"})
    (one,) = pod_choice.explain(_cluster(), pod=pod, namespace=Named("ns")).chosen
    assert (one.choice.pool, one.pool) == ("vms", None)
    assert 'there is no pool "vms"' in one.choice.problem


def test_objects_that_were_seen() -> None:
    cluster = _cluster()
    ObservedObject.objects.create(
        cluster=cluster, kind="Namespace", name="ns", uid="u", resource_version="1",
        manifest={"metadata": {"name": "ns", "annotations": {"ipam.cilium.io/ip-pool": "green"}}},
        first_seen_at=Now(), changed_at=Now(),
    )  # fmt: skip
    told = pod_choice.explain(cluster, pod=Named("pod"), namespace=Named("ns"))
    assert (told.chosen[0].choice.pool, told.namespace_seen, told.pod_seen) == (
        "green",
        True,
        False,
    )
    assert _pools(cluster, Named("pod"), Named("ns", annotations={})) == [(4, "default")]


def test_a_cluster_without_pools_is_told_of_both_families() -> None:
    told = pod_choice.explain(factories.cluster(), pod=Named("pod"), namespace=Named("ns"))
    assert [one.choice.family for one in told.chosen] == [4, 6]
    assert all(one.choice.problem for one in told.chosen)
