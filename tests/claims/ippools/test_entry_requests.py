"""VM owners ask for addresses of their own VMs, and learn nothing of others'."""

from typing import Any

import pytest

from claims.access import memberships
from claims.models import NAD, Entry, IPPool, Network
from tests.claims import worlds
from tests.edges.api import Api

A, B, C = "02:00:00:00:00:0a", "02:00:00:00:00:0b", "02:00:00:00:00:0c"


@pytest.fixture
def network() -> Network:
    created = worlds.network("prod-network")
    for namespace in ("shop", "bank"):
        NAD.objects.create(network=created, namespace=namespace, name="n")
    return created


@pytest.fixture
def foreign(ippool: IPPool) -> Entry:
    return worlds.entry(ippool, B, "10.0.0.6/24", vm="vault", namespace="bank")


@pytest.fixture
def api(network: Network) -> Api:
    result = Api("vm-owner")
    memberships.create(network.cluster, ["shop"], author=worlds.BY, user=result.user)
    return result


def entries_path(parent: IPPool) -> str:
    return f"ippools/{parent.pk}/entries/"


def asking(**more: Any) -> dict[str, Any]:
    return {"mac": A, "ips": ["10.0.0.5/24"], "vm": "web", "namespace": "shop"} | more


def test_a_request_for_an_own_vm(api: Api, ippool: IPPool, foreign: Entry) -> None:
    document = api.create(entries_path(ippool), asking())
    assert (document["source"], document["duplicates"]) == ("request", [])
    listed = api("GET", entries_path(ippool)).json()["results"]
    assert [item["vm"] for item in listed] == ["web"]
    assert api("DELETE", f"{entries_path(ippool)}{document['id']}/").status_code == 204


@pytest.mark.sample(4)
@pytest.mark.parametrize(
    ("more", "status", "code"),
    [
        ({"namespace": "bank"}, 403, "permission_denied"),
        ({"namespace": "nowhere"}, 403, "permission_denied"),
        ({"namespace": ""}, 400, "required"),
        ({"vm": ""}, 400, "required"),
        ({"ips": ["10.0.0.6/24"]}, 409, "already_allocated"),
        ({"mac": B}, 409, "already_allocated"),
        ({"ips": ["10.0.0.1/24"]}, 409, "reserved_address"),
    ],
)
def test_what_is_not_theirs(
    api: Api, ippool: IPPool, foreign: Entry, more: Any, status: int, code: str
) -> None:
    answer = api("POST", entries_path(ippool), asking(**more))
    assert (answer.status_code, answer.json()["code"]) == (status, code)
    assert "vault" not in answer.text
    assert Entry.objects.count() == 1


def test_their_own_duplicates_are_said(api: Api, ippool: IPPool) -> None:
    api.create(entries_path(ippool), asking())
    document = api.create(entries_path(ippool), asking(mac=C, vm="db"))
    assert [
        (duplicate["kind"], duplicate["with"][0]["vm"]) for duplicate in document["duplicates"]
    ] == [("ip", "web")]


def test_what_came_to_be_a_duplicate_names_nobody(api: Api, ippool: IPPool) -> None:
    api.create(entries_path(ippool), asking())
    worlds.entry(ippool, B, "10.0.0.5/24", vm="vault", namespace="bank")
    (entry,) = api("GET", entries_path(ippool)).json()["results"]
    assert entry["duplicates"] == [{"kind": "ip", "value": "10.0.0.5", "with": [{"type": "other"}]}]


def test_the_ippool_tells_nothing_of_others(api: Api, ippool: IPPool, foreign: Entry) -> None:
    worlds.entry(ippool, B, "10.0.0.7/24", vm="vault", namespace="bank")
    document = api("GET", f"ippools/{ippool.pk}/").json()
    assert (document["entries"], document["conditions"], document["duplicates"]) == (0, [], None)
    assert (document["version"], document["associated_nads"]) == (
        None,
        [{"namespace": "shop", "name": "n"}],
    )
    manifest = api("GET", f"ippools/{ippool.pk}/manifest/")
    assert manifest.json()["spec"]["entries"] == {}
    assert "status" not in manifest.json()
    here = f"{entries_path(ippool)}{foreign.pk}/"
    assert [api(verb, here).status_code for verb in ("GET", "DELETE")] == [404, 404]
    assert api("GET", f"networks/{ippool.network_id}/addresses-for-mac/?mac={B}").status_code == 404


def test_what_only_operators_do(api: Api, ippool: IPPool) -> None:
    entry = worlds.entry(ippool, C, "10.0.0.9/24", vm="db", namespace="shop")
    calls: list[tuple[str, str, Any]] = [
        ("PUT", entries_path(ippool), {}),
        ("PATCH", f"{entries_path(ippool)}{entry.pk}/", {"note": "x"}),
        ("DELETE", f"{entries_path(ippool)}{entry.pk}/", None),
        ("POST", "ippools/", {"cluster": "prod", "name": "x", "network_name": "y"}),
        ("PATCH", f"ippools/{ippool.pk}/", {"note": "x"}),
        ("DELETE", f"ippools/{ippool.pk}/", None),
    ]
    for verb, path, body in calls:
        assert api(verb, path, body).status_code == 403, (verb, path)


def test_networks_of_others_are_not_there(api: Api) -> None:
    other = worlds.ippool(worlds.network("other", subnets=("10.9.0.0/24",)), "other")
    assert api("GET", f"ippools/{other.pk}/").status_code == 404
    assert api("POST", entries_path(other), asking(ips=["10.9.0.5/24"])).status_code == 404
