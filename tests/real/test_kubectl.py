"""The tools of this folder: a bare API server, definitions on demand, and kubectl as others use it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable

    from tests.kube.real import RealCluster

POOL: dict[str, Any] = {
    "apiVersion": "cilium.io/v2",
    "kind": "CiliumPodIPPool",
    "metadata": {"name": "green"},
    "spec": {"ipv4": {"cidrs": ["10.20.0.0/16"], "maskSize": 24}},
}


def _managers(kube: RealCluster) -> dict[str, str]:
    stored = kube.object("ciliumpodippools.cilium.io", "green")
    return {
        managed_field["manager"]: managed_field["operation"]
        for managed_field in stored["metadata"]["managedFields"]
    }


def test_a_bare_server_serves_no_custom_resource(kube: RealCluster) -> None:
    kube.anew()
    assert kube.objects("customresourcedefinitions") == []


def test_kubectl_owns_what_it_applies(kube: RealCluster, kubectl: Callable[..., str]) -> None:
    kube.anew("cilium.io_ciliumpodippools.v2")
    kubectl("apply", "-f", "-", manifest=POOL)
    assert _managers(kube)["kubectl-client-side-apply"] == "Update"


def test_kubectl_applies_on_the_server_too(kube: RealCluster, kubectl: Callable[..., str]) -> None:
    kube.anew("cilium.io_ciliumpodippools.v2")
    kubectl("apply", "--server-side", "-f", "-", manifest=POOL)
    assert _managers(kube) == {"kubectl": "Apply"}
