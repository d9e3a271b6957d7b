"""A workload goes when its object is gone, and never because a cluster did not answer."""

import pytest

from pools.models import Block, BlockState
from tests.claims.workloads import kubevirt
from tests.claims.workloads.kubevirt import MAC, KubeVirt, attachment

FIVE = "10.0.0.5/16"


def tell(cluster: KubeVirt, kind: str, *events: tuple[str, kubevirt.Manifest]) -> None:
    """What a watch told, between two passes."""
    run = cluster.ingest(kind, kubevirt.handlers(), *events)
    assert not run.error_code


def test_what_a_watch_tells_counts_at_once(cluster: KubeVirt) -> None:
    cluster.passed()
    pod = cluster.pod("web", attachment(FIVE))
    tell(cluster, "Pod", ("ADDED", pod))
    assert cluster.running() == [("pod", "web", MAC, [FIVE], ["web"])]
    tell(cluster, "Pod", ("DELETED", pod))
    assert cluster.rows() == []
    assert not Block.objects.filter(state=BlockState.HELD).exists()


@pytest.mark.exhaustive
@pytest.mark.parametrize("order", [("Pod", "VirtualMachineInstance"), ("VirtualMachineInstance", "Pod")])  # fmt: skip
def test_a_vm_that_stops_in_whatever_order(cluster: KubeVirt, order: tuple[str, str]) -> None:
    vmi = cluster.vmi(cluster.vm("db"), "10.0.0.5")
    pod = cluster.launcher("virt-launcher-db-1", vmi, FIVE)
    cluster.passed()
    objects = {"Pod": pod, "VirtualMachineInstance": vmi}
    tell(cluster, order[0], ("DELETED", objects[order[0]]))
    assert [row.name for row in cluster.rows()] == ["db"]
    tell(cluster, order[1], ("DELETED", objects[order[1]]))
    assert cluster.rows() == []


def test_a_cluster_without_nads_says_nothing_of_workloads(cluster: KubeVirt) -> None:
    cluster.pod("web", attachment(FIVE))
    cluster.passed()
    cluster.server.remove(
        "customresourcedefinitions", "network-attachment-definitions.k8s.cni.cncf.io"
    )
    for _ in range(2):
        run = cluster.sync(*kubevirt.handlers())
        assert run.kinds["Pod"]["code"] == "crd_missing"
        assert "NetworkAttachmentDefinition" in run.kinds["Pod"]["message"]
    assert [row.name for row in cluster.rows()] == ["web"]
