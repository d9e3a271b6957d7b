"""A launcher pod whose VM does not get its address has an event that says why."""

from typing import Any

import pytest

from claims.ipamclaims import status_writer
from claims.models import IPPool, Network
from pools.models import Connection
from pools.models.clusters import ManagedResource
from tests.claims import worlds
from tests.claims.ipamclaims import world
from tests.claims.networks import ovn
from tests.claims.webhooks import doors
from tests.claims.workloads import kubevirt
from tests.kube import gateways
from tests.kube.real import RealCluster
from tests.real import sites
from tests.reconcile import small

pytestmark = pytest.mark.django_db
NAMESPACE = kubevirt.NAMESPACE
REFUSED = "IPAMClaim full.default: The network has no free IPv4 address"


@pytest.fixture
def vms(kube: RealCluster) -> kubevirt.KubeVirt:
    """A network of one free address, which `first` has; `full` has a pod that waits for one."""
    kube.anew(*sites.OVN, *sites.KUBEVIRT, *sites.CILIUM)
    for event in kube.request("GET", "/api/v1/events")["items"]:
        kube.remove("events", event["metadata"]["name"], event["metadata"]["namespace"])
    kube.put(ovn.cudn("prod", "10.0.0.0/29", reservedSubnets=["10.0.0.4/30"]))
    kube.put(ovn.nad("prod", NAMESPACE, subnets="10.0.0.0/29", reservedSubnets="10.0.0.4/30"))
    virt = kubevirt.KubeVirt(kube)
    virt.connection.delete()  # objects only
    for name in ("first", "full"):
        vm = virt.vm(name)
        kube.put(
            world.manifest(
                name, namespace=NAMESPACE, name=f"{name}.default", network="cluster_udn_prod",
                uid=vm["metadata"]["uid"],
            )
        )  # fmt: skip
    virt.launcher("virt-launcher-full-a", virt.vmi(vm, phase="Scheduling"), phase="Pending")
    return virt


def _events(kube: RealCluster) -> list[dict[str, Any]]:
    items: list[dict[str, Any]] = kube.request("GET", "/api/v1/events")["items"]
    return sorted(items, key=lambda event: str(event["reason"]))


def _reconciled(connection: Connection, kube: RealCluster, **access: Any) -> None:
    status_writer._written_at.clear()  # as another worker
    run = small.reconcile(
        connection,
        *sites.registry.HANDLERS,
        open_client=lambda _: gateways.to(kube, **access),
    )
    assert run.succeeded, (run.error, run.kinds)


def test_a_claim_that_is_refused(kube: RealCluster, vms: kubevirt.KubeVirt) -> None:
    connection = sites.connect(kube, ManagedResource.CLAIMS)
    _reconciled(connection, kube)
    (event,) = _events(kube)
    pod = kube.object("pods", "virt-launcher-full-a", NAMESPACE)
    assert event["involvedObject"]["uid"] == pod["metadata"]["uid"]
    assert event["involvedObject"]["name"] == "virt-launcher-full-a"
    assert (event["type"], event["reason"], event["message"], event["count"]) == (
        "Warning", "SubnetExhausted", REFUSED, 1,
    )  # fmt: skip
    _reconciled(connection, kube)
    assert _events(kube) == [event], "said once"
    vms.remove("ipamclaims", "first.default")
    vms.remove("pods", "virt-launcher-full-a")
    worlds.entry(
        IPPool.objects.create(
            cluster=connection.cluster, network=Network.objects.get(), name="prod"
        ),
        "02:00:00:00:00:99",
        "10.0.0.3/29",
    )
    _reconciled(connection, kube)
    assert len(_events(kube)) == 1, "a pod that is gone is told nothing more"


def test_what_a_webhook_declined(kube: RealCluster, vms: kubevirt.KubeVirt) -> None:
    """At admission the pod has no uid: the event comes when the pod was seen."""
    vms.remove("ipamclaims", "full.default")
    connection = sites.connect(kube, ManagedResource.CLAIMS)
    _reconciled(connection, kube)
    network = Network.objects.get(name="cluster_udn_prod")
    pool = IPPool.objects.create(cluster=connection.cluster, network=network, name="prod")
    worlds.entry(pool, kubevirt.MAC, "10.9.0.5/29", vm="full", namespace=NAMESPACE)
    pod = kube.object("pods", "virt-launcher-full-a", NAMESPACE)
    manifest = {**pod, "apiVersion": "v1", "kind": "Pod"}
    doors.Door(connection.cluster).ask(manifest, namespace=NAMESPACE)
    _reconciled(connection, kube)
    (event,) = _events(kube)
    assert event["reason"] == "OutsideSubnet"
    assert "10.9.0.5" in event["message"]
    assert event["involvedObject"]["uid"] == pod["metadata"]["uid"]


def test_without_the_managed_resource_nothing_is_written(
    kube: RealCluster, vms: kubevirt.KubeVirt
) -> None:
    _reconciled(sites.connect(kube, ManagedResource.POOLS), kube)
    assert _events(kube) == []


@pytest.mark.usefixtures("vms")
def test_without_the_right_nothing_fails(kube: RealCluster) -> None:
    rules = [
        {"apiGroups": ["*"], "resources": ["*"], "verbs": ["get", "list", "watch"]},
        {"apiGroups": ["k8s.cni.cncf.io"], "resources": ["*"], "verbs": ["*"]},
    ]
    token = kube.user("without events", rules)
    connection = sites.connect(kube, ManagedResource.CLAIMS)
    _reconciled(connection, kube, token=token)
    assert _events(kube) == []
