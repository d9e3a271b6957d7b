"""MAC entries over REST: one, the whole set, and their order."""

from typing import Any

import pytest
from django.urls import reverse

from claims.entries import ippools
from claims.models import Entry, IPPool, Network
from tests import people
from tests.claims import worlds
from tests.core.test_entries import CONFLICTS, CORRECT
from tests.edges import api as apis
from tests.edges.api import ROOT, Api
from tests.kube.manifests import build

A, B, C = "02:00:00:00:00:0a", "02:00:00:00:00:0b", "02:00:00:00:00:0c"
MAC = "00:1a:4b:12:34:56"


@pytest.fixture
def unknown() -> IPPool:
    """Of a network that nobody saw: the examples do not say its subnets."""
    return ippools.create(worlds.cluster(), "later", "later", author=worlds.BY)


def entries_path(parent: IPPool) -> str:
    return f"ippools/{parent.pk}/entries/"


def test_one_entry(api: Api, ippool: IPPool) -> None:
    body = {"mac": "02-00-00-00-00-0A", "ips": ["10.0.0.5/24"], "vm": "web", "namespace": "shop"}
    document = api.create(entries_path(ippool), body)
    assert document.pop("created_at").endswith("Z")
    others = {"source": "api", "note": "", "duplicates": [], "warnings": []}
    ids = {"id": Entry.objects.get().pk, "ippool": ippool.pk, "mac": A}
    assert document == body | others | ids
    assert api("GET", f"{entries_path(ippool)}{document['id']}/").json()["mac"] == A


def test_duplicates_are_taken_and_said(api: Api, ippool: IPPool, network: Network) -> None:
    first = api.create(entries_path(ippool), {"mac": A, "ips": ["10.0.0.5/24"], "vm": "web"})
    more = [{"mac": A, "ips": ["10.0.0.6/24"]}, {"mac": B, "ips": ["10.0.0.5/24"]}]
    second, third = api.create(entries_path(ippool), more)
    gateway = api.create(entries_path(ippool), {"mac": C, "ips": ["10.0.0.1/24"]})
    (result,) = second["duplicates"]
    assert (result["kind"], result["value"]) == ("mac", A)
    place = {"type": "entry", "id": first["id"], "name": "prod-pool"}
    assert result["with"] == [place | {"vm": "web", "mac": A}]
    others = (*gateway["duplicates"], *third["duplicates"])
    assert [(item["kind"], item["value"]) for item in others] == [
        ("ip", "10.0.0.1"),
        ("ip", "10.0.0.5"),
    ]
    assert [item["with"][0]["type"] for item in others] == ["gateway", "entry"]
    document = api("GET", f"ippools/{ippool.pk}/").json()
    assert document["duplicates"] == {"mac": 1, "ip": 2}
    assert document["conditions"][1]["message"] == f"MAC address {A} appears 2 times"

    def listed(query: str) -> list[int]:
        return [row["id"] for row in api("GET", entries_path(ippool) + query).json()["results"]]

    assert listed("?duplicate=mac") == [first["id"], second["id"]]
    assert listed("?duplicate=ip") == [first["id"], third["id"], gateway["id"]]


def test_the_mac_of_the_gateway_is_said(api: Api, ippool: IPPool, network: Network) -> None:
    body = {"mac": "0A-58-0A-00-00-01", "ips": ["10.0.0.5/24"]}
    (duplicate,) = api.create(entries_path(ippool), body)["duplicates"]
    assert (duplicate["kind"], duplicate["value"]) == ("mac", "0a:58:0a:00:00:01")
    assert duplicate["with"] == [{"type": "gateway", "name": "10.0.0.1"}]


@pytest.mark.sample(5)
@pytest.mark.parametrize(
    ("body", "code"),
    [
        ({"mac": A, "ips": ["10.0.0.0/24"]}, "network_address_not_host"),
        ({"mac": A, "ips": ["10.0.0.5/16"]}, "prefix_mismatch"),
        ({"mac": A, "ips": ["10.0.0.5"]}, "prefix_required"),
        ({"mac": A, "ips": "10.0.0.5/24"}, "wrong_type"),
        ({"mac": A, "ips": []}, "empty_list"),
        ({"mac": "0:1:2:3:4:5", "ips": ["10.0.0.5/24"]}, "mac_syntax"),
        ({"mac": 1, "ips": ["10.0.0.5/24"]}, "wrong_type"),
        ({"ips": ["10.0.0.5/24"]}, "required"),
        ({"mac": A, "ips": ["10.0.0.5/24"], "source": "hand"}, "unknown_field"),
        ([], "object_expected"),
        ({}, "object_expected"),
        ([1], "wrong_type"),
        ("null", "object_expected"),
        ("{", "json_syntax"),
        ('{"mac": 1, "mac": 2}', "duplicate_key"),
    ],
)
def test_what_is_refused(api: Api, ippool: IPPool, body: Any, code: str) -> None:
    answer = api("POST", entries_path(ippool), body)
    assert (answer.status_code, answer.json()["code"]) == (400, code)
    assert not Entry.objects.exists()


def test_a_list_is_all_or_nothing(api: Api, ippool: IPPool) -> None:
    body = [{"mac": A, "ips": ["10.0.0.5/24"]}, {"mac": B, "ips": ["10.1.0.5/24"]}]
    answer = api("POST", entries_path(ippool), body)
    assert [error["field"] for error in answer.json()["errors"]] == ["1.ips.0"]
    assert not Entry.objects.exists()


def test_the_same_key_is_answered_the_same(api: Api, ippool: IPPool) -> None:
    body = {"mac": A, "ips": ["10.0.0.5/24"]}
    answers = [api("POST", entries_path(ippool), body, Idempotency_Key="k1") for _ in range(2)]
    assert answers[0].json() == answers[1].json()
    assert Entry.objects.count() == 1


def test_filters_and_pages(api: Api, ippool: IPPool) -> None:
    for n in range(10, 20):
        place = {"vm": f"vm-{n}", "namespace": "a", "source": "api"}
        worlds.entry(ippool, f"02:00:00:00:01:{n:02x}", f"10.0.0.{n}/24", **place)

    def vms(query: str) -> list[str]:
        return [row["vm"] for row in api("GET", entries_path(ippool) + query).json()["results"]]

    assert vms("?mac=0200.0000.010A") == ["vm-10"]
    assert vms("?ip=10.0.0.12") == ["vm-12"]
    assert vms("?ip=10.0.0.16/31") == ["vm-16", "vm-17"]
    assert vms("?vm=vm-13&namespace=a") == ["vm-13"]
    assert vms("?q=01:0b") == ["vm-11"]
    assert vms("?q=10.0.0.14") == ["vm-14"]
    assert vms("?q=m-15") == ["vm-15"]
    assert vms("?source=hand") == []
    first = api("GET", entries_path(ippool) + "?limit=6&fields=vm").json()
    assert len(first["results"]) == 6
    rest = api.client.get(first["next"]).json()
    assert [row["vm"] for row in rest["results"]] == [f"vm-{n}" for n in range(16, 20)]
    for query, code in (
        ("?duplicate=x", "invalid_choice"),
        ("?mac=x", "mac_syntax"),
        ("?ip=x", "not_an_address"),
        ("?colour=x", "unknown_parameter"),
    ):
        assert api("GET", entries_path(ippool) + query).json()["code"] == code


def test_changing_and_deleting_one(api: Api, ippool: IPPool) -> None:
    entry = api.create(entries_path(ippool), {"mac": A, "ips": ["10.0.0.5/24"], "vm": "web"})
    here = f"{entries_path(ippool)}{entry['id']}/"
    answer = api("PATCH", here, {"ips": ["10.0.0.9/24"], "note": "moved"})
    assert (answer.status_code, answer.json()["ips"]) == (200, ["10.0.0.9/24"])
    assert (answer.json()["vm"], answer.json()["note"]) == ("web", "moved")
    assert api("PATCH", here, {"ips": ["10.0.0.0/24"]}).json()["code"] == "network_address_not_host"
    assert api("PATCH", here, {"source": "hand"}).json()["code"] == "read_only_field"
    assert api("PATCH", here, {}).status_code == 400
    assert api("PATCH", f"ippools/999/entries/{entry['id']}/", {"note": ""}).status_code == 404
    assert api("DELETE", here).status_code == 204
    assert api("GET", here).status_code == 404


def change_counts(answer: Any) -> tuple[int, int, int, int]:
    assert answer.status_code == 200, answer.content
    document = answer.json()
    return document["created"], document["changed"], document["deleted"], document["unchanged"]


@pytest.mark.exhaustive
@pytest.mark.parametrize("wrapped", [False, True])
def test_the_whole_set(api: Api, ippool: IPPool, wrapped: bool) -> None:
    def body(content: Any) -> Any:
        return {"entries": content} if wrapped else content

    first = [{"mac": A, "ips": ["10.0.0.5/24"], "vm": "web"}, {"mac": B, "ips": ["10.0.0.6/24"]}]
    assert change_counts(api("PUT", entries_path(ippool), body(first))) == (2, 0, 0, 0)
    mapped = {A: ["10.0.0.5/24"], B: ["10.0.0.7/24"], C: ["10.0.0.8/24"]}
    assert change_counts(api("PUT", entries_path(ippool), body(mapped))) == (1, 1, 0, 1)
    assert Entry.objects.get(mac=A).vm == "web"
    assert change_counts(api("PUT", entries_path(ippool), body({}))) == (0, 0, 3, 0)
    stale = api("PUT", entries_path(ippool), body([]), If_Match='"1"')
    assert (stale.status_code, stale.json()["code"]) == (412, "version_mismatch")


def test_keys_that_are_there_twice_are_two_entries(api: Api, unknown: IPPool) -> None:
    text = f'{{"{MAC}": ["10.0.0.2/24"], "{MAC}": ["10.0.0.14/24"]}}'
    assert change_counts(api("PUT", entries_path(unknown), text)) == (2, 0, 0, 0)
    assert Entry.objects.filter(mac=MAC).count() == 2


def test_the_examples_of_the_spec(api: Api, unknown: IPPool) -> None:
    here = f"/api/v1/{entries_path(unknown)}"

    def put(text: str) -> Any:
        manifest_text = text.replace("prod-network", "later")
        return api.client.put(here, manifest_text, content_type="application/yaml")

    refused = put(CORRECT)
    assert (refused.status_code, refused.json()["code"]) == (400, "network_address_not_host")
    assert change_counts(put(CONFLICTS)) == (2, 0, 0, 0)
    conditions = api("GET", f"ippools/{unknown.pk}/").json()["conditions"]
    names = ("type", "status", "reason", "message")
    assert [tuple(item[name] for name in names) for item in conditions] == [
        ("Success", "False", "DuplicatesExist", f"Duplicate MAC {MAC} found in entries"),
        (
            "DuplicateMACAddresses",
            "True",
            "DuplicateMACFound",
            f"MAC address {MAC} appears 2 times",
        ),
        ("DuplicateIPAddresses", "False", "NoIPDuplicates", "All IP addresses are unique per MAC"),
    ]
    manifest = build("v1", "IPPool", "x", spec={"network-name": "n"})
    wrong = api("PUT", entries_path(unknown), manifest)
    assert wrong.json()["code"] == "unsupported_kind"
    other = api.client.put(here, CONFLICTS, content_type="application/yaml")
    assert other.json()["code"] == "another_network"


@pytest.mark.parametrize(
    ("text", "code"),
    [
        ('{"entries": {}, "entries": []}', "wrong_type"),
        ('{"entries": {}, "more": 1}', "unknown_field"),
        ("5", "object_expected"),
        ('[{"mac": 1, "mac": 2}]', "duplicate_key"),
        ('{"x": ["10.0.0.5/24"]}', "mac_syntax"),
    ],
)
def test_sets_that_are_none(api: Api, ippool: IPPool, text: str, code: str) -> None:
    answer = api("PUT", entries_path(ippool), text)
    assert (answer.status_code, answer.json()["code"]) == (400, code)


def test_other_bodies(api: Api, ippool: IPPool) -> None:
    here = f"/api/v1/{entries_path(ippool)}"
    assert api.client.put(here, "<x/>", content_type="text/xml").status_code == 415
    assert api.client.post(here, "a: 1", content_type="application/yaml").status_code == 415
    large = api.client.put(here, b" " * (10 * 1024 * 1024 + 1), content_type="application/json")
    assert large.status_code == 413


# --- MAC entries and claims in the order of their addresses, on the page and over REST, page by
# page
ADDRESSES = [("fd00::9/64", "10.0.0.100/24"), ("10.0.0.9/24",), ("fd00::1/64",), ("10.0.0.10/24",)]
ORDER = ["10.0.0.9/24", "10.0.0.10/24", "fd00::9/64", "fd00::1/64"]  # the third has 10.0.0.100


def pages(api: Api, path: str) -> list[str]:
    """The first address of each row, of all pages of one row."""
    result, url = [], f"{path}limit=1"
    while url:
        document = api("GET", url.removeprefix(f"http://testserver{ROOT}")).json()
        rows: list[Any] = document["results"]
        result += [(row.get("ips") or row["status"]["ips"] or [""])[0] for row in rows]
        url = document["next"] or ""
    return result


@pytest.mark.exhaustive
def test_entries_by_address() -> None:
    ippool = worlds.ippool(worlds.network(subnets=("10.0.0.0/24", "fd00::/64")))
    for number, ips in enumerate(ADDRESSES):
        worlds.entry(ippool, f"02:00:00:00:00:{number:02}", *ips)
    api, path = Api(), f"ippools/{ippool.pk}/entries/"
    assert pages(api, f"{path}?ordering=address&") == ORDER
    assert pages(api, f"{path}?ordering=-address&") == ORDER[::-1]
    changelist = reverse("admin:claims_entry_changelist")
    for sign in ("", "-"):
        page = people.browser().get(changelist, {"o": f"{sign}2"})
        shown = [entry.ips[0] for entry in page.context["cl"].result_list]
        assert shown == (ORDER if not sign else ORDER[::-1])


@pytest.mark.exhaustive
def test_claims_by_address_those_without_one_last() -> None:
    network = worlds.network(subnets=("10.0.0.0/24", "fd00::/64"))
    for number, ips in enumerate([*ADDRESSES, ()]):
        worlds.claim(network, f"vm-{number}", *ips)
    assert pages(Api(), "ipamclaims/?ordering=address&") == [*ORDER, ""]


@pytest.mark.parametrize("cursor", ["W2ZhbHNlLFsieCIsMV1d", "W2ZhbHNlLFsxLDFdXQ"])
def test_a_cursor_of_something_else_is_refused(cursor: str) -> None:
    ippool = worlds.ippool(worlds.network())
    answer = Api()("GET", f"ippools/{ippool.pk}/entries/?ordering=address&cursor={cursor}")
    assert answer.status_code == 400


# --- No query parameter has a line break: what is compared is what was sent -----------------------
VMWARE_MAC = "00:50:56:aa:00:01"


@pytest.mark.sample(16)
@pytest.mark.parametrize("tail", ["%0a", "%0d%0a", "%09", "%1b", "%c2%85"])
@pytest.mark.parametrize(
    "path", ["ippools/{ippool}/entries/", "ipamclaims/", "networks/{network}/addresses-for-mac/"]
)
def test_no_query_has_a_line_break(path: str, tail: str, network: Network, api: apis.Api) -> None:
    ippool = worlds.ippool(network)
    worlds.entry(ippool, VMWARE_MAC, "10.0.0.5/24")
    url = f"{path.format(ippool=ippool.pk, network=network.pk)}?mac={VMWARE_MAC}"
    assert api("GET", url).status_code == 200
    apis.refused(api("GET", url + tail), 400, "invisible_character")
