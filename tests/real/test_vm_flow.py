"""From an import to a live migration: the addresses that were imported reach the VM, whatever it calls
its network and whoever else makes claims.
"""

import copy
import json
import pathlib
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from django.core.files.uploadedfile import SimpleUploadedFile

from claims.core.workloads.network_selection import CLAIM, DEFAULT_NETWORK
from claims.models import Decision, IndexEntry, IPAMClaim, Network
from claims.webhooks import hooks
from pools.models import Block, Connection, ManagedResource, ObservedObject
from tests import eventually
from tests.claims.ipamclaims import world
from tests.claims.networks import ovn
from tests.core.vm_world import pod as launcher, vm_manifest
from tests.edges import api as apis
from tests.kube import own_site
from tests.kube.real import RealCluster
from tests.real import sites

pytestmark = pytest.mark.django_db(transaction=True)
Manifest = dict[str, Any]
NAMESPACE = "blue"
PODS = f"/api/v1/namespaces/{NAMESPACE}/pods"
MAC = "00:50:56:00:00:01"
IP = "10.0.0.11/16"
CSV = (
    "VM,Powerstate,Template,SRM Placeholder,Network,Mac Address,IPv4 Address\n"
    f"vm1,poweredOn,False,False,vlan100,{MAC},%s\n"
)
SPEC = {
    "automountServiceAccountToken": False,
    "containers": [{"name": "compute", "image": "quay.io/kubevirt/virt-launcher"}],
}
OVN_NAD = {"name": "default", "namespace": "ovn-kubernetes", "mac": MAC}


@pytest.fixture
def connection(kube: RealCluster, tmp_path: pathlib.Path) -> Iterator[Connection]:
    """A managed cluster with one primary network, whose API server calls mutate-pods."""
    kube.anew(*sites.OVN, *sites.KUBEVIRT)
    kube.put({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": NAMESPACE}})
    kube.put(ovn.cudn("prod", "10.0.0.0/16"))
    kube.put(ovn.nad("prod", NAMESPACE, subnets="10.0.0.0/16", allowPersistentIPs=True))
    kube.put(ovn.cudn("store", "10.1.0.0/16", role="Secondary"))
    kube.put(
        ovn.nad(
            "store", NAMESPACE, role="secondary", subnets="10.1.0.0/16", allowPersistentIPs=True
        )
    )
    created = sites.connect(kube, ManagedResource.CLAIMS)
    _reconcile(created, kube)
    with own_site.asked_by(kube, created.cluster.name, tmp_path, "mutate-pods"):
        eventually.until(lambda: bool(_decided(created, kube)))
        yield created
        kube.remove("mutatingwebhookconfigurations", hooks.MUTATE_PODS.name)
    kube.erase("pods")


def _decided(connection: Connection, kube: RealCluster) -> bool:
    kube.remove("pods", _start(kube, "probe", vm="probe")["metadata"]["name"], NAMESPACE)
    return Decision.objects.filter(cluster=connection.cluster).exists()


def _reconcile(connection: Connection, kube: RealCluster) -> None:
    run = sites.reconcile(connection, kube)
    assert run.succeeded, (run.error, run.kinds)


def _import(network: Network, ip: str = "10.0.0.11") -> IPAMClaim:
    file = SimpleUploadedFile("vms.csv", (CSV % ip).encode())
    values = {"file": file, "network": network.pk, "namespace": NAMESPACE, "target": "ipamclaims"}
    api = apis.Api("operator")
    draft = api.client.post(f"{apis.ROOT}imports/", values)
    assert draft.status_code == 201, draft.content
    done = api("POST", f"imports/{draft.json()['id']}/commit/", {"skip_bad": False})
    assert (done.status_code, done.json()["status"]) == (200, "committed"), done.content
    return IPAMClaim.objects.get(vm="vm1")


def _vm(kube: RealCluster) -> Manifest:
    """The VM as MTV makes it, its VMI, and the claim that ipam-extensions makes for them."""
    vm = kube.put(vm_manifest("vm1", mac=MAC, interface="net-0"))
    kube.put(vm_manifest("vm1", mac=MAC, interface="net-0", kind="VirtualMachineInstance"))
    claim = world.manifest(
        "vm1", namespace=NAMESPACE, name="vm1.net-0", network="cluster_udn_prod",
        uid=vm["metadata"]["uid"],
    )  # fmt: skip
    return kube.put(claim)


def _start(
    kube: RealCluster, name: str, element: Manifest | None = None, vm: str = "vm1"
) -> Manifest:
    """A launcher pod as virt-controller makes it, with the element that ipam-extensions writes."""
    annotations = {DEFAULT_NETWORK: json.dumps([element])} if element else {}
    created = launcher(vm, annotations) | {"spec": copy.deepcopy(SPEC)}
    created["metadata"]["name"] = f"virt-launcher-{name}"
    created["metadata"].pop("generateName", None)
    stored: Manifest = kube.request("POST", PODS, created)
    return stored


def _asks(pod: Manifest) -> Manifest:
    (element,) = json.loads(pod["metadata"]["annotations"][DEFAULT_NETWORK])
    return dict(element)


def test_imported_addresses_reach_a_vm_that_calls_its_network_otherwise(
    kube: RealCluster, connection: Connection
) -> None:
    imported = _import(Network.objects.get(name="cluster_udn_prod"))
    assert imported.name == "vm1.cluster.udn.prod"
    _reconcile(connection, kube)  # the claim is provisioned
    assert kube.object("ipamclaims", imported.name, NAMESPACE)["status"]["ips"] == [IP]
    _vm(kube)
    _reconcile(connection, kube)
    by_extensions = OVN_NAD | {CLAIM: "vm1.net-0"}
    first = _asks(_start(kube, "first", by_extensions))
    assert (first["mac"], first["ips"], first[CLAIM]) == (MAC, [IP], "vm1.net-0")
    _reconcile(connection, kube)
    kube.remove("pods", "virt-launcher-first", NAMESPACE)  # stop
    _reconcile(connection, kube)
    for name in ("second", "target"):  # start, and the target of a live migration
        assert _asks(_start(kube, name, by_extensions)) == first
        _reconcile(connection, kube)
    kube.remove("pods", "virt-launcher-second", NAMESPACE)
    _reconcile(connection, kube)
    assert _asks(kube.object("pods", "virt-launcher-target", NAMESPACE)) == first
    # The register grants the claim of ipam-extensions the same addresses, and sees no duplicate.
    assert _granted(kube, "vm1.net-0") == [IP]
    assert not IndexEntry.objects.filter(duplicate_ip=True).exists()
    assert not IndexEntry.objects.filter(duplicate_mac=True).exists()
    (block,) = Block.objects.filter(cidr="10.0.0.11/32")
    assert (block.state, block.holder_id) == ("held", f"{NAMESPACE}/vm1")
    kube.remove("pods", "virt-launcher-target", NAMESPACE)
    for name in ("vm1.net-0", imported.name):
        kube.remove("ipamclaims", name, NAMESPACE)
    kube.remove("virtualmachineinstances", "vm1", NAMESPACE)
    kube.remove("virtualmachines", "vm1", NAMESPACE)
    _reconcile(connection, kube)
    assert kube.objects("ipamclaims") == []  # nothing is made for a VM that is gone
    ObservedObject.objects.exclude(missed_at=None).update(missed_at="2026-01-01T00:00Z")
    _reconcile(connection, kube)
    assert not IPAMClaim.objects.exists()
    assert not Block.objects.filter(cidr="10.0.0.11/32", state="held").exists()


def _granted(kube: RealCluster, name: str) -> list[str]:
    ips: list[str] = kube.object("ipamclaims", name, NAMESPACE)["status"]["ips"]
    return ips


def test_imported_addresses_of_a_secondary_network(
    kube: RealCluster, connection: Connection
) -> None:
    """No pod asks for them: they are granted to the claim that ipam-extensions makes."""
    imported = _import(Network.objects.get(name="cluster_udn_store"), "10.1.0.11")
    vm = vm_manifest("vm1", interface="net-0")
    inner = vm["spec"]["template"]["spec"]
    inner["networks"][0] = {"name": "other", "multus": {"networkName": "store"}}
    inner["domain"]["devices"]["interfaces"][0]["macAddress"] = MAC
    stored = kube.put(vm)
    kube.put(
        world.manifest(
            "vm1", namespace=NAMESPACE, name="vm1.other", network="cluster_udn_store",
            uid=stored["metadata"]["uid"],
        )
    )  # fmt: skip
    _reconcile(connection, kube)
    assert imported.name == "vm1.cluster.udn.store"
    assert _granted(kube, "vm1.other") == ["10.1.0.11/16"]
    assert _granted(kube, imported.name) == ["10.1.0.11/16"]


def test_a_claim_that_kubectl_made_under_any_name(
    kube: RealCluster, kubectl: Callable[..., str], connection: Connection
) -> None:
    """Nobody owns it, and no label says the VM: its name begins with the VM's."""
    claim = {
        "apiVersion": "k8s.cni.cncf.io/v1alpha1", "kind": "IPAMClaim",
        "metadata": {"name": "vm1.odd-name", "namespace": NAMESPACE},
        "spec": {"network": "cluster_udn_prod", "interface": ""},
    }  # fmt: skip
    kubectl("apply", "-f", "-", manifest=claim)
    _reconcile(connection, kube)
    kube.put(vm_manifest("vm1", mac=MAC, interface="net-0"))
    _reconcile(connection, kube)
    element = _asks(_start(kube, "first"))
    assert (element["ips"], element[CLAIM]) == (_granted(kube, "vm1.odd-name"), "vm1.odd-name")


def test_an_element_of_the_owner_gets_the_name_of_the_claim(
    kube: RealCluster, connection: Connection
) -> None:
    """Neither an entry nor a claim is there."""
    kube.put(vm_manifest("vm1", mac=MAC, interface="net-0"))
    _reconcile(connection, kube)
    element = OVN_NAD | {"ips": ["10.0.0.77/16"]}
    assert _asks(_start(kube, "first", element)) == element | {CLAIM: "vm1.net-0"}


def test_a_claim_of_any_name_is_what_the_pod_refers_to(
    kube: RealCluster, connection: Connection
) -> None:
    """Nobody else makes claims: the one that the register has for the VM is used."""
    api = apis.Api("operator")
    body = {
        "cluster": connection.cluster.name, "network": "cluster_udn_prod", "namespace": NAMESPACE,
        "vm": "vm1", "name": "vm1.odd-name", "mac": MAC, "ips_requested": ["10.0.0.11"],
    }  # fmt: skip
    assert api("POST", "ipamclaims/", body).status_code == 201
    _reconcile(connection, kube)
    kube.put(vm_manifest("vm1", mac=MAC, interface="net-0"))
    _reconcile(connection, kube)
    element = _asks(_start(kube, "first"))
    assert (element["ips"], element[CLAIM]) == ([IP], "vm1.odd-name")


@pytest.mark.parametrize("door", ["rest", "import"])
def test_a_claim_of_a_vm_that_is_there_is_called_as_the_vm_calls_its_network(
    kube: RealCluster, connection: Connection, door: str
) -> None:
    kube.put(vm_manifest("vm1", mac=MAC, interface="net-0"))
    _reconcile(connection, kube)
    doors: dict[str, Callable[[], object]] = {
        "rest": lambda: apis.Api("operator")(
            "POST", "ipamclaims/",
            {
                "cluster": connection.cluster.name, "network": "cluster_udn_prod",
                "namespace": NAMESPACE, "vm": "vm1", "mac": MAC, "ips_requested": ["10.0.0.11"],
            },
        ),
        "import": lambda: _import(Network.objects.get(name="cluster_udn_prod")),
    }  # fmt: skip
    doors[door]()
    assert IPAMClaim.objects.get(vm="vm1").name == "vm1.net-0"
