"""The pool of a pod, from the pools of the register and what was seen of the cluster."""

from typing import Any

from pools.cilium import pod_choice
from pools.core.cilium.pod_pool import ObjectMetadata
from pools.models import Cluster
from tests import factories


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
