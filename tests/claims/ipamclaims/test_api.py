"""ipamclaims/ over HTTP: what a claim says, filters, claims by hand, manifests, who may what."""

from typing import Any

import pytest
import yaml

from claims.models import NAD, IPAMClaim, Network
from pools.models import Block, Cluster, Connection, Mode
from tests.claims import worlds
from tests.edges import api as apis
from tests.edges.api import fields, refused

PATH = "ipamclaims/"
MAC, OTHER = "02:03:04:05:06:07", "02:03:04:05:06:08"
FAILED = [
    {
        "type": "IPsAllocated", "status": "False", "reason": "SubnetExhausted", "message": "full",
        "lastTransitionTime": "2026-05-05T10:00:00Z",
    }
]  # fmt: skip
CONFLICT = [FAILED[0] | {"reason": "IPAddressConflict"}]


@pytest.fixture
def network() -> Network:
    return worlds.network(default_gateways=["10.0.0.1"])


@pytest.fixture
def owner(network: Network) -> apis.Api:
    """A VM owner of the namespace blue."""
    NAD.objects.create(network=network, namespace="blue", name="blue", role="primary")
    return worlds.owner(network.cluster, "blue")


def body(**more: Any) -> dict[str, Any]:
    defaults = {"cluster": "prod", "namespace": "blue", "network": "cluster_udn_blue", "vm": "vm1"}
    return {key: value for key, value in (defaults | more).items() if value is not None}


def listed(api: apis.Api, query: str = "") -> list[str]:
    answer = api("GET", f"{PATH}?{query}")
    assert answer.status_code == 200, answer.content
    return [row["name"].split(".")[0] for row in answer.json()["results"]]


def test_what_a_claim_says(api: apis.Api, network: Network) -> None:
    claim = worlds.claim(network, "vm1", "10.0.0.5/24", mac=MAC, owner_pod="p", uid="u", vm_uid="v")
    document = api("GET", f"{PATH}{claim.pk}/").json()
    assert document == {
        "id": claim.pk, "cluster": "prod", "namespace": "blue", "name": "vm1.cluster_udn_blue",
        "network": "cluster_udn_blue", "interface": "", "mac": MAC, "ips_requested": [], "vm": "vm1",
        "vm_uid": "v", "state": "bound", "next_step": "", "finalizers": [], "deleted_at": None,
        "status": {"ips": ["10.0.0.5/24"], "owner_pod": "p", "conditions": []}, "pods": [], "note": "",
        "follows_cluster": False, "in_cluster": True, "given_back_at": None, "duplicates": [],
        "created_at": document["created_at"],
    }  # fmt: skip


@pytest.mark.exhaustive
def test_filters(api: apis.Api, network: Network) -> None:
    green = worlds.network("cluster_udn_green", subnets=("10.1.0.0/24",))
    worlds.claim(network, "vm1", "10.0.0.5/24", mac=MAC)
    worlds.claim(network, "vm2", conditions=FAILED)
    worlds.claim(network, "vm3", conditions=CONFLICT, namespace="other")
    worlds.claim(green, "vm4")
    leaked = worlds.claim(green, "vm5", "10.1.0.7/24")
    worlds.claim(green, "vm6", "10.1.0.9/24")
    worlds.claim(green, "vm7", "10.1.0.9/24")
    worlds.leaked(leaked)
    for query, result in {
        "": ["vm1", "vm2", "vm3", "vm4", "vm5", "vm6", "vm7"],
        "cluster=prod&network=cluster_udn_blue": ["vm1", "vm2", "vm3"],
        "namespace=other": ["vm3"],
        "vm=vm4": ["vm4"],
        f"mac={MAC.upper().replace(':', '-')}": ["vm1"],
        "ip=10.0.0.5": ["vm1"],
        "ip=10.1.0.0/24": ["vm5", "vm6", "vm7"],
        "state=bound": ["vm1"],
        "state=pending": ["vm4"],
        "state=failed": ["vm2"],
        "state=conflict": ["vm3", "vm6", "vm7"],
        "state=leaked": ["vm5"],
        "q=10.1.0.7": ["vm5"],
        "q=VM4": ["vm4"],
        f"q={MAC.upper().replace(':', '-')}": ["vm1"],
        "q=nothing": [],
        "ordering=-vm&limit=2": ["vm7", "vm6"],
    }.items():
        assert listed(api, query) == result, query
    refused(api("GET", f"{PATH}?state=odd"), 400, "invalid_choice")
    refused(api("GET", f"{PATH}?cluster=none"), 400, "unknown_cluster")


def test_a_claim_by_hand(api: apis.Api, network: Network) -> None:
    document = api.create(PATH, body(mac=MAC, ips_requested=["10.0.0.5"]))
    assert document["name"] == "vm1.cluster.udn.blue"
    assert (document["ips_requested"], document["status"]["ips"]) == (["10.0.0.5/24"], [])
    assert (document["state"], document["in_cluster"]) == ("pending", False)
    assert "OVN-Kubernetes" in document["next_step"]
    refused(api("POST", PATH, body()), 409, "already_exists")
    gateway = {"mac": "0a:58:0a:00:00:01"}
    refused(api("POST", PATH, body(vm="vm2", **gateway)), 409, "reserved_address")
    path = f"{PATH}{document['id']}/"
    refused(api("PATCH", path, gateway), 409, "reserved_address")
    changed = api("PATCH", path, {"ips_requested": ["10.0.0.6/24"], "mac": None, "note": "later"})
    assert changed.json()["ips_requested"] == ["10.0.0.6/24"]
    assert (changed.json()["mac"], changed.json()["note"]) == (None, "later")
    refused(api("PATCH", path, {"vm": "other"}), 409, "immutable_in_use")
    assert api("DELETE", path).status_code == 204
    refused(api("GET", path), 404, "not_found")


@pytest.mark.sample(6)
@pytest.mark.parametrize(
    ("more", "field", "code"),
    [
        ({"network": "none"}, "network", "unknown_network"),
        ({"namespace": "a.b"}, "namespace", "k8s_name"),
        ({"mac": "02:03"}, "mac", "mac_syntax"),
        ({"ips_requested": ["10.9.0.5/24"]}, "ips_requested.0", "outside_subnet"),
        ({"ips_requested": ["10.0.0.0/24"]}, "ips_requested.0", "network_address_not_host"),
        ({"ips_requested": ["10.0.0.5", "10.0.0.6"]}, "ips_requested", "one_per_family"),
        ({"ips_requested": "10.0.0.5"}, "ips_requested", "wrong_type"),
        ({"vm": None}, "vm", "required"),
        ({"name": "Not_A_Name"}, "name", "k8s_name"),
        ({"vm": "v" * 252}, "name", "k8s_name"),
        ({"status": {}}, "status", "read_only_field"),
        ({"nonsense": 1}, "nonsense", "unknown_field"),
    ],
)
def test_refused_input(
    api: apis.Api, network: Network, more: dict[str, Any], field: str, code: str
) -> None:
    problem = refused(api("POST", PATH, body(**more)), 400, code)
    assert fields(problem)[field] == code
    assert not IPAMClaim.objects.exists()


def test_addresses_are_never_changed_and_a_clusters_claim_is_the_clusters(
    api: apis.Api, network: Network
) -> None:
    claim = worlds.claim(network, "vm1", "10.0.0.5/24", uid="u", follows_cluster=True)
    other = worlds.claim(network, "vm2", uid="u2", follows_cluster=True)
    refused(api("PATCH", f"{PATH}{claim.pk}/", {"mac": MAC}), 409, "immutable_in_use")
    refused(api("PATCH", f"{PATH}{other.pk}/", {"mac": MAC}), 409, "cluster_decides")
    problem = refused(api("DELETE", f"{PATH}{claim.pk}/"), 409, "cluster_decides")
    assert "kubectl delete" in problem["detail"]
    assert api("PATCH", f"{PATH}{other.pk}/", {"note": "x"}).json()["note"] == "x"


def test_a_leaked_claim_is_given_back_with_a_reason(api: apis.Api, network: Network) -> None:
    claim = worlds.claim(network, "vm1", "10.0.0.5/24", uid="u", follows_cluster=True)
    path = f"{PATH}{claim.pk}/release/"
    refused(api("POST", path, {"reason": ""}), 400, "blank")
    refused(api("POST", path, {"reason": "gone"}), 409, "conflict")
    worlds.leaked(claim)
    document = api("POST", path, {"reason": "its VM is gone"}).json()
    assert (document["status"]["ips"], document["given_back_at"] is not None) == ([], True)
    assert not Block.objects.filter(state="held").exists()


@pytest.mark.parametrize("asks", [True, False])
def test_manifests(api: apis.Api, network: Network, asks: bool) -> None:
    more: dict[str, Any] = {"mac": MAC, "ips_requested": ["10.0.0.5/24"]} if asks else {}
    claim = worlds.claim(network, "vm1", **more)
    document = api("GET", f"{PATH}{claim.pk}/manifest/").json()
    spec = {"network": "cluster_udn_blue", "interface": ""}
    assert document["spec"] == spec | ({"mac": MAC, "ips": ["10.0.0.5/24"]} if asks else {})
    text = api("GET", f"{PATH}{claim.pk}/manifest/?format=yaml")
    assert text.headers["Content-Type"] == "application/yaml"
    assert yaml.safe_load(text.content) == document


@pytest.mark.exhaustive
def test_a_vm_owner_sees_and_asks_in_their_namespaces_only(
    owner: apis.Api, network: Network
) -> None:
    worlds.claim(network, "vm1", "10.0.0.5/24")
    worlds.claim(network, "secret", "10.0.0.6/24", namespace="red")
    assert listed(owner) == ["vm1"]
    assert listed(owner, "q=secret") == listed(owner, "ip=10.0.0.6") == []
    document = owner.create(PATH, body(vm="vm2", ips_requested=["10.0.0.9"]))
    assert document["duplicates"] == []
    for namespace in ("red", "none"):
        refused(owner("POST", PATH, body(namespace=namespace)), 403, "permission_denied")
    for address, code in (("10.0.0.6", "already_allocated"), ("10.0.0.1", "reserved_address")):
        answer = owner("POST", PATH, body(vm="vm3", ips_requested=[address]))
        assert "secret" not in str(refused(answer, 409, code))


def test_a_managed_cluster_is_due_after_a_change(api: apis.Api, network: Network) -> None:
    cluster = Cluster.objects.get(name="prod")
    connection = Connection.objects.create(
        cluster=cluster, server="https://x", sealed="-", due_at="2100-01-01T00:00:00Z",
        mode=Mode.MANAGED, managed_resources=["claims"],
    )  # fmt: skip
    document = api.create(PATH, body())
    assert document["next_step"] == "Wait for the next sync of the cluster."
    connection.refresh_from_db()
    assert connection.due_at.year < 2100


def test_the_name_alone_says_which_vm(api: apis.Api, network: Network) -> None:
    assert api.create(PATH, body(vm=None, name="vm1.cluster.udn.blue"))["vm"] == "vm1"


def test_a_name_that_no_object_has(api: apis.Api, network: Network) -> None:
    errors = api("POST", PATH, body(vm=None, name="web1.cluster_udn_blue")).json()["errors"]
    assert [error["code"] for error in errors] == ["k8s_name"]
    assert api.create(PATH, body(vm="web1"))["name"] == "web1.cluster.udn.blue"
