"""ippools/ over REST: shapes, versions, one for each network, manifests, addresses-for-mac."""

from typing import Any

import pytest
import yaml

from claims.models import NAD, IPPool, Network
from tests.claims import worlds
from tests.edges.api import Api

A, B = "02:00:00:00:00:0a", "02:00:00:00:00:0b"


@pytest.fixture
def ippool(api: Api, network: Network) -> dict[str, Any]:
    body = {"cluster": "prod", "name": "prod-pool", "network_name": "prod-network"}
    document: dict[str, Any] = api.create("ippools/", body)
    return document


def test_the_shape(api: Api, ippool: dict[str, Any], network: Network) -> None:
    NAD.objects.create(network=network, namespace="shop", name="n")
    answer = api("GET", f"ippools/{ippool['id']}/")
    assert answer.headers["ETag"] == '"1"'
    document = answer.json()
    assert document.pop("created_at").endswith("Z")
    conditions = document.pop("conditions")
    assert [
        (condition["type"], condition["status"], condition["reason"]) for condition in conditions
    ] == [
        ("Success", "True", "NoDuplicates"),
        ("DuplicateMACAddresses", "False", "NoMACDuplicates"),
        ("DuplicateIPAddresses", "False", "NoIPDuplicates"),
    ]
    assert document == {
        "id": ippool["id"],
        "cluster": "prod",
        "name": "prod-pool",
        "network": network.pk,
        "network_name": "prod-network",
        "note": "",
        "entries": 0,
        "associated_nads": [{"namespace": "shop", "name": "n"}],
        "follows_cluster": False,
        "gone_at": None,
        "problems": [],
        "duplicates": {"mac": 0, "ip": 0},
        "version": 1,
    }


@pytest.mark.sample(4)
@pytest.mark.parametrize(
    ("body", "status", "code"),
    [
        ({"cluster": "prod", "name": "second", "network_name": "prod-network"}, 409, "already_exists"),
        ({"cluster": "prod", "name": "prod-pool", "network_name": "other"}, 409, "already_exists"),
        ({"cluster": "none", "name": "x", "network_name": "other"}, 400, "unknown_cluster"),
        ({"cluster": "prod", "name": "A b", "network_name": "other"}, 400, "k8s_name"),
        ({"cluster": "prod", "name": "x", "network_name": ""}, 400, "blank"),
        ({"cluster": "prod", "name": "x"}, 400, "required"),
        ({"cluster": "prod", "name": "x", "network_name": "y", "z": 1}, 400, "unknown_field"),
        ({"cluster": "prod", "name": "x", "network_name": "y", "id": 1}, 400, "read_only_field"),
    ],
)  # fmt: skip
def test_what_is_not_made(
    api: Api, ippool: dict[str, Any], body: Any, status: int, code: str
) -> None:
    answer = api("POST", "ippools/", body)
    assert (answer.status_code, answer.json()["code"]) == (status, code)
    if status == 409:
        assert "prod-pool" in answer.json()["detail"] or "with this name" in answer.json()["detail"]


def test_lists(api: Api, ippool: dict[str, Any]) -> None:
    api.create("ippools/", {"cluster": "prod", "name": "b", "network_name": "other"})
    names = [row["name"] for row in api("GET", "ippools/?ordering=name").json()["results"]]
    assert names == ["b", "prod-pool"]
    rows = api("GET", "ippools/?network_name=other&cluster=prod&fields=name").json()["results"]
    assert rows == [{"name": "b"}]


def test_changing(api: Api, ippool: dict[str, Any]) -> None:
    path = f"ippools/{ippool['id']}/"
    answer = api("PATCH", path, {"name": "new", "note": "old vSphere"}, If_Match='"1"')
    assert (answer.status_code, answer.headers["ETag"]) == (200, '"2"')
    assert (answer.json()["name"], answer.json()["note"]) == ("new", "old vSphere")
    assert api("PATCH", path, {"note": ""}, If_Match='"1"').status_code == 412
    assert api("PATCH", path, {"network_name": "x"}).json()["code"] == "immutable_in_use"
    assert api("DELETE", path, If_Match='"1"').status_code == 412
    assert api("DELETE", path).status_code == 204
    assert api("GET", path).status_code == 404


def test_what_a_cluster_decides(api: Api, ippool: dict[str, Any]) -> None:
    IPPool.objects.update(follows_cluster=True, uid="u")
    answer = api("DELETE", f"ippools/{ippool['id']}/")
    assert (answer.status_code, answer.json()["code"]) == (409, "cluster_decides")
    assert "change it there" in answer.json()["detail"]


def test_the_manifest(api: Api, ippool: dict[str, Any]) -> None:
    path = f"ippools/{ippool['id']}/"
    api.create(
        path + "entries/", [{"mac": A, "ips": ["10.0.0.5/24"]}, {"mac": B, "ips": ["10.0.0.6/24"]}]
    )
    document = api("GET", path + "manifest/").json()
    assert document["apiVersion"] == "ippool.k8s.cni.cncf.io/v1alpha"
    assert document["spec"] == {
        "network-name": "prod-network",
        "entries": {A: ["10.0.0.5/24"], B: ["10.0.0.6/24"]},
    }
    assert document["status"]["conditions"][0]["reason"] == "NoDuplicates"
    written = api("GET", path + "manifest/?format=yaml")
    assert written.headers["Content-Type"] == "application/yaml"
    assert yaml.safe_load(written.content) == document
    assert api("GET", path + "manifest/?format=xml").json()["code"] == "invalid_choice"
    # What is written can be read: nothing changes.
    answer = api("PUT", path + "entries/", document)
    assert (answer.status_code, answer.json()["unchanged"]) == (200, 2)


def test_the_addresses_of_a_mac(api: Api, ippool: dict[str, Any], network: Network) -> None:
    path = f"networks/{network.pk}/addresses-for-mac/"
    worlds.claim(network, "db", "10.0.0.7/24", mac=B, namespace="shop")
    entry = {"mac": A, "ips": ["10.0.0.5/24"], "vm": "web", "namespace": "shop"}
    api.create(f"ippools/{ippool['id']}/entries/", entry)
    assert api("GET", path + "?mac=02-00-00-00-00-0A").json() == {
        "mac": A, "ips": ["10.0.0.5/24"], "source": "ippool", "vm": "web", "namespace": "shop",
    }  # fmt: skip
    assert api("GET", path + f"?mac={B}").json() == {
        "mac": B, "ips": ["10.0.0.7/24"], "source": "ipamclaim", "vm": "db", "namespace": "shop",
    }  # fmt: skip
    api.create(f"ippools/{ippool['id']}/entries/", {"mac": B, "ips": ["10.0.0.8/24"]})
    assert api("GET", path + f"?mac={B}").json()["source"] == "ippool"
    for query, status, code in (
        ("?mac=02:00:00:00:00:0c", 404, "mac_not_found"),
        ("?mac=x", 400, "mac_syntax"),
        ("", 400, "required"),
        (f"?mac={A}&x=1", 400, "unknown_parameter"),
    ):
        answer = api("GET", path + query)
        assert (answer.status_code, answer.json()["code"]) == (status, code)
    assert api("GET", f"networks/999999/addresses-for-mac/?mac={A}").json()["code"] == "not_found"
