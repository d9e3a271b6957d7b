"""Networks and the manifests of VMs on them: which hold claims, and what a VM is copied from."""

import json
from typing import Any

import pytest

from claims.ipamclaims import findings
from claims.models import IPAMClaim, Network, NetworkSettings
from claims.workloads import vm_lookup
from pools.core import errors
from pools.models.fields import Now
from tests.claims import worlds
from tests.edges import api as apis
from tests.edges.api import Api, refused
from tests.reconcile import small

MAC, OTHER = "02:03:04:05:06:07", "02:03:04:05:06:08"
ASKED = {"vm": "vm1", "namespace": "blue", "mac": MAC}


@pytest.fixture
def network() -> Network:
    created = worlds.network()
    created.nads.create(namespace="blue", name="blue", role="primary", allow_persistent_ips=True)
    return created


def _path(network: Network) -> str:
    return f"networks/{network.pk}/vm-manifest/"


def _annotation(manifest: Any) -> Any:
    ((name, value),) = manifest["spec"]["template"]["metadata"]["annotations"].items()
    return name, json.loads(value)


def test_the_default_network_element_of_the_proposal(api: apis.Api, network: Network) -> None:
    worlds.entry(worlds.ippool(network), MAC, "10.0.0.5/24")
    manifest = api("POST", _path(network), ASKED).json()
    assert (manifest["apiVersion"], manifest["kind"]) == ("kubevirt.io/v1", "VirtualMachine")
    assert manifest["metadata"] == {"name": "vm1", "namespace": "blue"}
    element = {"name": "default", "namespace": "ovn-kubernetes", "mac": MAC, "ips": ["10.0.0.5/24"]}
    assert _annotation(manifest) == ("v1.multus-cni.io/default-network", [element])
    spec = manifest["spec"]["template"]["spec"]
    (interface,) = spec["domain"]["devices"]["interfaces"]
    assert (interface["macAddress"], spec["networks"][0]["name"]) == (MAC, interface["name"])


def test_the_annotation_of_todays_ipam_extensions(api: apis.Api, network: Network) -> None:
    NetworkSettings.objects.create(cluster=network.cluster, annotation="addresses")
    worlds.entry(worlds.ippool(network), MAC, "10.0.0.5/24", vm="vm1", namespace="blue")
    manifest = api("POST", _path(network), {"vm": "vm1", "namespace": "blue"}).json()
    assert _annotation(manifest) == ("network.kubevirt.io/addresses", {"default": ["10.0.0.5"]})
    interfaces = manifest["spec"]["template"]["spec"]["domain"]["devices"]["interfaces"]
    assert interfaces[0]["macAddress"] == MAC


@pytest.mark.parametrize("granted", [True, False])
def test_the_addresses_of_a_claim(api: apis.Api, network: Network, granted: bool) -> None:
    ips = ["10.0.0.7/24"]
    worlds.claim(network, "vm1", *(ips if granted else []), ips_requested=[] if granted else ips)
    manifest = api("POST", _path(network), ASKED).json()
    assert _annotation(manifest)[1][0]["ips"] == ips


def test_what_cannot_be_written(api: apis.Api, network: Network) -> None:
    refused(api("POST", _path(network), ASKED), 404, "no_entry")
    refused(api("POST", "networks/999/vm-manifest/", ASKED), 404, "not_found")
    refused(api("POST", _path(network), ASKED | {"vm": "A_B"}), 400, "k8s_name")
    refused(api("POST", _path(network), ASKED | {"mac": "x"}), 400, "mac_syntax")
    worlds.entry(worlds.ippool(network), OTHER, "10.0.0.5/24", vm="vm1", namespace="blue")
    refused(api("POST", _path(network), ASKED), 409, "mac_differs")
    flat = worlds.network("flat", subnets=("10.1.0.0/24",), role="secondary")
    refused(api("POST", _path(flat), ASKED), 409, "not_primary")


def test_a_vm_owner_gets_those_of_their_namespaces(network: Network) -> None:
    owner = worlds.owner(network.cluster, "blue")
    pool = worlds.ippool(network)
    worlds.entry(pool, MAC, "10.0.0.5/24", vm="vm1", namespace="blue")
    worlds.entry(pool, OTHER, "10.0.0.6/24", vm="secret", namespace="red")
    assert _annotation(owner("POST", _path(network), ASKED).json())[1][0]["mac"] == MAC
    for namespace in ("red", "none"):
        refused(owner("POST", _path(network), ASKED | {"namespace": namespace}), 403, "permission_denied")  # fmt: skip
    foreign = refused(owner("POST", _path(network), ASKED | {"vm": "vm9", "mac": OTHER}), 404, "no_entry")  # fmt: skip
    assert "secret" not in str(foreign)


# --- A claim on a network on which it would never get or keep addresses is refused, wherever it is
# made
A, B = "02:00:00:00:00:0a", "02:00:00:00:00:0b"


def asking(network: Network) -> dict[str, Any]:
    return {"cluster": "prod", "namespace": "shop", "network": network.name, "vm": "web"}


@pytest.mark.parametrize(
    ("values", "why"),
    [
        ({"topology": "layer3"}, "topology is layer3"),
        ({"lifecycle": ""}, "lifecycle is not Persistent"),
        ({"ipam_mode": "Disabled"}, "allocates no addresses"),
        ({"gone_at": Now()}, "was deleted"),
    ],
)
def test_rest_refuses_it(values: dict[str, Any], why: str) -> None:
    network = worlds.network("prod")
    Network.objects.update(**values)
    answer = Api()("POST", "ipamclaims/", asking(network))
    (problem,) = refused(answer, 400, "network_unfit")["errors"]
    assert problem["field"] == "network"
    assert "the network prod cannot hold claims" in problem["message"]
    assert why in problem["message"]


@pytest.mark.parametrize(
    "values", [{"topology": "localnet", "role": "secondary"}, {"role": "secondary"}, {"kind": ""}]
)
def test_networks_that_hold_claims(values: dict[str, Any]) -> None:
    """Secondary networks too, and those of which nothing is known yet."""
    network = worlds.network("prod")
    Network.objects.update(**values)
    created = Api().create("ipamclaims/", asking(network))
    assert "manifest" in created["next_step"]  # no cluster is connected: somebody has to apply it


def test_an_import_of_claims_is_refused() -> None:
    network = worlds.network("prod", lifecycle="")
    body = {
        "cluster": "prod", "network": network.pk, "namespace": "shop", "target": "ipamclaims",
        "rows": [{"vm": "web", "mac": A, "ips": ["10.0.0.7"]}], "commit": True,
    }  # fmt: skip
    answer = Api()("POST", "imports/", body)
    assert answer.json()["errors"][0]["code"] == "network_unfit", answer.content
    assert not IPAMClaim.objects.exists()


def test_a_claim_whose_network_was_deleted_has_a_finding() -> None:
    network = worlds.network("prod")
    claim = worlds.claim(network, "web", "10.0.0.5/24")
    Network.objects.update(gone_at=Now())
    context = small.context(network.cluster)
    every = findings.cluster_findings(context, claims_managed=False, owners=[])
    (finding,) = (item for item in every if item.code == findings.NETWORK_GONE)
    assert finding.subject == str(claim)
    assert "10.0.0.5/24 of the network prod, which was deleted" in finding.message


def test_a_message_does_not_capitalize_a_name() -> None:
    network = worlds.network("prod")
    ippool = worlds.ippool(network)
    for mac, last in ((A, 5), (B, 6)):
        worlds.entry(ippool, mac, f"10.0.0.{last}/24", vm="web", namespace="apps")
    with pytest.raises(errors.Conflict, match=r"^The VM apps/web has several entries: .*\.$"):
        vm_lookup.vm_manifest(network, vm="web", namespace="apps")
    Network.objects.update(role="secondary")
    network.refresh_from_db()
    with pytest.raises(errors.Conflict, match=r"^The network prod is not a primary network\.$"):
        vm_lookup.vm_manifest(network, vm="web", namespace="apps")
