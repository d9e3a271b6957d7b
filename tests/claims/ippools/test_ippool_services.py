"""IPPools by the services and over REST."""

from typing import Any

import pytest
import yaml
from django.db import IntegrityError, transaction

from claims.core.entries import EntrySpec
from claims.entries import entries, ippools
from claims.models import NAD, Entry, EntryEvent, IndexEntry, IPPool, Network
from pools.core import errors
from pools.models import Block
from tests.claims import worlds
from tests.edges.api import Api, refused

A, B, C = "02:00:00:00:00:0a", "02:00:00:00:00:0b", "02:00:00:00:00:0c"


@pytest.fixture
def blue() -> IPPool:
    network = worlds.network()
    return ippools.create(network.cluster, "blue", network.name, author=worlds.BY)


def add(ippool: IPPool, *specs: EntrySpec) -> list[Entry]:
    return entries.add(ippool.pk, specs, source="hand", author=worlds.BY)


def conditions(ippool: IPPool) -> dict[str, tuple[str, str]]:
    ippool.refresh_from_db()
    return shown(ippool.conditions)


def shown(conditions: list[dict[str, str]]) -> dict[str, tuple[str, str]]:
    return {item["type"]: (item["status"], item["reason"]) for item in conditions}


CLEAN = {
    "Success": ("True", "NoDuplicates"),
    "DuplicateMACAddresses": ("False", "NoMACDuplicates"),
    "DuplicateIPAddresses": ("False", "NoIPDuplicates"),
}


def test_the_database_holds_that_a_network_has_one_ippool(blue: IPPool) -> None:
    with pytest.raises(IntegrityError), transaction.atomic():
        IPPool.objects.create(cluster=blue.cluster, network=blue.network, name="second")


def test_entries_hold_their_addresses(blue: IPPool) -> None:
    (created,) = add(blue, EntrySpec(A, ("10.0.0.5/24",), "web", "shop", "old"))
    assert (created.vm, created.namespace) == ("web", "shop")
    assert (created.note, created.source) == ("old", "hand")
    block = Block.objects.get(pool=blue.network.pool_id, cidr="10.0.0.5/32", state="held")
    assert (block.holder_kind, block.holder_id) == ("vm", "shop/web")
    blue.refresh_from_db()
    assert blue.version == 2
    entries.delete([created.pk], author=worlds.BY)
    assert not IndexEntry.objects.exists()
    assert not Block.objects.filter(state="held").exists()


def test_duplicates_are_taken_and_told(blue: IPPool) -> None:
    add(blue, EntrySpec(A, ("10.0.0.5/24",)), EntrySpec(A, ("10.0.0.6/24",)))
    assert conditions(blue) == CLEAN | {
        "Success": ("False", "DuplicatesExist"),
        "DuplicateMACAddresses": ("True", "DuplicateMACFound"),
    }
    assert blue.conditions[1]["message"] == f"MAC address {A} appears 2 times"
    second = Entry.objects.get(ips=["10.0.0.6/24"])
    entries.change(second.pk, EntrySpec(B, ("10.0.0.5/24",)), author=worlds.BY)
    assert conditions(blue) == CLEAN | {
        "Success": ("False", "DuplicatesExist"),
        "DuplicateIPAddresses": ("True", "DuplicateIPFound"),
    }
    assert f"{A} and {B}" in blue.conditions[2]["message"]
    blue.refresh_from_db()
    assert (blue.duplicate_macs, blue.duplicate_ips) == (0, 1)
    entries.delete([second.pk], author=worlds.BY)
    assert conditions(blue) == CLEAN


def test_replacing_writes_only_what_differs(blue: IPPool) -> None:
    add(blue, *[EntrySpec(mac, (f"10.0.0.{5 + n}/24",)) for n, mac in enumerate((A, B, C))])
    before = EntryEvent.objects.count()
    expected = [EntrySpec(A, ("10.0.0.5/24",)), EntrySpec(B, ("10.0.0.9/24",), "web", "shop")]
    expected.append(EntrySpec("02:00:00:00:00:0d", ("10.0.0.10/24",)))
    entry_diff = entries.replace(blue.pk, expected, source="api", author=worlds.BY)
    assert (len(entry_diff.new), len(entry_diff.changed), len(entry_diff.gone)) == (1, 1, 1)
    assert EntryEvent.objects.count() == before + 3
    assert not entries.replace(blue.pk, expected, source="api", author=worlds.BY)
    assert EntryEvent.objects.count() == before + 3


def test_replacing_keeps_what_a_map_cannot_say(blue: IPPool) -> None:
    (stored,) = add(blue, EntrySpec(A, ("10.0.0.5/24",), "web", "shop", "old"))
    specs = [EntrySpec(A, ("10.0.0.6/24",)), EntrySpec(A, ("10.0.0.5/24",))]
    entries.replace(blue.pk, specs, source="api", author=worlds.BY)
    stored.refresh_from_db()
    assert (stored.ips, stored.vm, stored.note) == (["10.0.0.5/24"], "web", "old")
    assert Entry.objects.count() == 2


def test_deleting_an_ippool_gives_all_back(blue: IPPool) -> None:
    add(blue, EntrySpec(A, ("10.0.0.5/24",)), EntrySpec(B, ("10.0.0.6/24",)))
    ippools.delete(blue.pk, author=worlds.BY)
    for model in (IPPool, Entry, IndexEntry):
        assert not model._default_manager.exists()
    assert not Block.objects.filter(state="held").exists()
    assert EntryEvent.objects.filter(pgh_label="deleted").count() == 2


def test_what_a_cluster_decides(blue: IPPool) -> None:
    (created,) = add(blue, EntrySpec(A, ("10.0.0.5/24",)))
    IPPool.objects.filter(pk=blue.pk).update(follows_cluster=True, uid="u")
    calls: list[Any] = [
        lambda: add(blue, EntrySpec(B, ("10.0.0.6/24",))),
        lambda: entries.delete([created.pk], author=worlds.BY),
        lambda: entries.replace(blue.pk, [], source="api", author=worlds.BY),
        lambda: ippools.change(blue.pk, note="x", author=worlds.BY),
        lambda: ippools.delete(blue.pk, author=worlds.BY),
    ]
    for call in calls:
        with pytest.raises(errors.ClusterDecides, match="change it there"):
            call()


@pytest.mark.exhaustive
def test_many_entries_come_in_together(blue: IPPool) -> None:
    big = worlds.network("big", subnets=("10.64.0.0/16",))
    ippool = ippools.create(big.cluster, "big", "big", author=worlds.BY)
    specs = [
        EntrySpec(f"02:00:00:00:{n >> 8:02x}:{n & 255:02x}", (f"10.64.{n >> 8}.{n & 255}/16",))
        for n in range(10, 3010)
    ]
    created = add(ippool, *specs)
    assert [row.mac for row in created] == [spec.mac for spec in specs]
    assert Block.objects.filter(pool=big.pool_id, state="held").count() == 3000
    assert EntryEvent.objects.filter(pgh_label="created").count() == 3000


# --- ippools/ over REST: shapes, versions, one for each network, manifests, addresses-for-mac -----
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
    assert shown(document.pop("conditions")) == CLEAN
    assert document == {
        "id": ippool["id"], "cluster": "prod", "name": "prod-pool", "network": network.pk,
        "network_name": "prod-network", "note": "", "entries": 0, "gone_at": None, "problems": [],
        "associated_nads": [{"namespace": "shop", "name": "n"}], "follows_cluster": False,
        "duplicates": {"mac": 0, "ip": 0}, "version": 1,
    }  # fmt: skip


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


def test_the_manifest(api: Api, ippool: dict[str, Any]) -> None:
    path = f"ippools/{ippool['id']}/"
    entries = {A: ["10.0.0.5/24"], B: ["10.0.0.6/24"]}
    api.create(path + "entries/", [{"mac": mac, "ips": ips} for mac, ips in entries.items()])
    document = api("GET", path + "manifest/").json()
    assert document["apiVersion"] == "ippool.k8s.cni.cncf.io/v1alpha"
    assert document["spec"] == {"network-name": "prod-network", "entries": entries}
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
        refused(api("GET", path + query), status, code)
    assert api("GET", f"networks/999999/addresses-for-mac/?mac={A}").json()["code"] == "not_found"
