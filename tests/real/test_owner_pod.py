"""A claim names no pod that is gone: the status where Cadastre writes it, the register everywhere."""

from typing import Any

import pytest

from claims.models import IPAMClaim
from pools.models import ManagedResource, Watcher
from tests import eventually
from tests.claims.ipamclaims import world
from tests.claims.networks import ovn
from tests.claims.workloads import kubevirt
from tests.kube.real import RealCluster
from tests.real import sites

pytestmark = pytest.mark.django_db(transaction=True)
NAMESPACE = kubevirt.NAMESPACE


@pytest.fixture
def vms(kube: RealCluster, settings: Any) -> kubevirt.KubeVirt:
    settings.IPAM_ALLOW_LOOPBACK_CLUSTERS = True
    kube.anew(*sites.OVN, *sites.KUBEVIRT, *sites.CILIUM)
    kube.put(ovn.cudn("prod"))
    kube.put(ovn.nad("prod", NAMESPACE))
    virt = kubevirt.KubeVirt(kube)
    virt.connection.delete()  # objects only
    return virt


def _status(kube: RealCluster) -> dict[str, Any]:
    result: dict[str, Any] = kube.object("ipamclaims", "web.default", NAMESPACE).get("status") or {}
    return result


@pytest.mark.parametrize("answering", [True, False])
def test_after_a_stop(kube: RealCluster, vms: kubevirt.KubeVirt, answering: bool) -> None:
    vm = vms.vm("web")
    vmi = vms.vmi(vm)
    vms.launcher("virt-launcher-web-a", vmi, "10.0.0.5/16")
    status = {"ips": ["10.0.0.5/16"], "ownerPod": {"name": "virt-launcher-web-a"}}
    kube.put(
        world.manifest(
            "web", namespace=NAMESPACE, name="web.default", network="cluster_udn_prod",
            uid=vm["metadata"]["uid"], status=None if answering else status,
        )
    )  # fmt: skip
    connection = sites.connect(kube, *([ManagedResource.CLAIMS] if answering else []))
    assert sites.reconcile(connection, kube).succeeded
    assert _status(kube)["ownerPod"] == {"name": "virt-launcher-web-a"}
    with sites.running("watch"):
        eventually.until(Watcher.objects.exists)
        kube.remove("virtualmachineinstances", "web", NAMESPACE)
        kube.remove("pods", "virt-launcher-web-a", NAMESPACE)
        claims = IPAMClaim.objects.filter(name="web.default", owner_pod="")
        eventually.until(claims.exists)
        if answering:
            eventually.until(lambda: _status(kube)["ownerPod"] == {"name": ""})
        vmi = vms.vmi(vm)
        vms.launcher("virt-launcher-web-b", vmi, "10.0.0.5/16")
        eventually.until(claims.model.objects.filter(owner_pod="virt-launcher-web-b").exists)
        if answering:
            eventually.until(lambda: _status(kube)["ownerPod"]["name"])
    pod = "virt-launcher-web-b" if answering else "virt-launcher-web-a"
    assert _status(kube)["ownerPod"] == {"name": pod}
    assert _status(kube)["ips"] == ["10.0.0.5/16"]
