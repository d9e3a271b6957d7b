"""Which pool a pod gets, from the labels and annotations that the cluster has; else it is unknown."""

from typing import Any

import pytest

from pools.models import Connection
from tests.edges import api as apis
from tests.kube import gateways
from tests.kube.real import RealCluster
from tests.real import sites

pytestmark = pytest.mark.django_db
POOL = "ipam.cilium.io/ip-pool"
_UNREAD = [
    {"apiGroups": ["cilium.io"], "resources": ["*"], "verbs": ["get", "list", "watch"]},
    {"apiGroups": [""], "resources": ["pods"], "verbs": ["get", "list", "watch"]},
    {
        "apiGroups": [""],
        "resources": ["namespaces"],
        "resourceNames": ["kube-system"],
        "verbs": ["get"],
    },
]


@pytest.fixture
def cluster(kube: RealCluster) -> Connection:
    """Two pools, one of them selected by a label of namespaces, a namespace and a pod in it."""
    kube.anew("cilium.io_ciliumpodippools.v2", "cilium.io_ciliumnodes")
    for name, cidr in (("default", "10.10.0.0/16"), ("green", "10.20.0.0/16")):
        kube.put(gateways.pool(name, cidr))
    _put_namespace(kube, {})
    kube.put(
        {
            "apiVersion": "v1",
            "kind": "Pod",
            "metadata": {"name": "web-0", "namespace": "pool-for-pod", "labels": {"app": "web"}},
            "spec": {"containers": [{"name": "web", "image": "web"}]},
        }
    )
    connection = sites.connect(kube)
    sites.reconcile(connection, kube)
    sites.reach(connection, kube.kubeconfig())
    return connection


def _put_namespace(kube: RealCluster, annotations: dict[str, str]) -> None:
    metadata = {"name": "pool-for-pod", "annotations": annotations}
    kube.put({"apiVersion": "v1", "kind": "Namespace", "metadata": metadata})


def _ask(connection: Connection, pod: dict[str, Any], **namespace: Any) -> dict[str, Any]:
    path = f"clusters/{connection.cluster.name}/pool-for-pod/"
    body = {"pod": pod, "namespace": {"name": "pool-for-pod", **namespace}}
    answer = apis.Api()("POST", path, body)
    assert answer.status_code == 200, answer.content
    document: dict[str, Any] = answer.json()
    return document


def test_annotations_are_those_of_the_cluster(kube: RealCluster, cluster: Connection) -> None:
    answer = _ask(cluster, {"name": "web-0"})
    (choice,) = answer["choices"]
    assert (choice["pool"], choice["unknown"]) == ("default", [])
    assert (answer["pod_seen"], answer["namespace_seen"], answer["notes"]) == (True, True, [])
    _put_namespace(kube, {POOL: "green"})
    (choice,) = _ask(cluster, {"name": "web-0"})["choices"]
    assert choice["pool"] == "green"
    assert choice["reasons"][-1] == f"The namespace has the annotation {POOL}=green."
    kube.request(
        "PATCH",
        "/api/v1/namespaces/pool-for-pod/pods/web-0",
        {"metadata": {"annotations": {POOL: "default"}}},
        content_type="application/merge-patch+json",
    )
    (choice,) = _ask(cluster, {"name": "web-0"})["choices"]
    assert (choice["pool"], choice["reasons"]) == (
        "default",
        [f"The pod has the annotation {POOL}=default."],
    )


def test_a_pod_that_is_not_there_yet(cluster: Connection) -> None:
    answer = _ask(cluster, {"name": "web-1"})
    assert answer["choices"][0]["pool"] == "default"
    assert answer["notes"] == [
        "The cluster has no pod web-1: it is treated as one without labels and annotations."
    ]


def test_what_may_not_be_read_is_unknown(kube: RealCluster, cluster: Connection) -> None:
    _put_namespace(kube, {POOL: "green"})
    sites.reach(cluster, kube.kubeconfig(kube.user("without namespaces", _UNREAD)))
    answer = _ask(cluster, {"name": "web-0"})
    (choice,) = answer["choices"]
    assert (choice["pool"], choice["pool_id"]) == ("", None)
    assert choice["unknown"] == ["the annotations of the namespace"]
    assert "the credentials may not get namespaces" in choice["problem"]
    assert not any("namespace has no annotation" in reason for reason in choice["reasons"])
    (choice,) = _ask(cluster, {"name": "web-0"}, annotations={})["choices"]
    assert choice["pool"] == "default"
