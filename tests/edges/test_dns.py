"""DNS names of addresses: set, derived, exported, found; a name ends with its holder."""

import io
import json
import time
from typing import Any

import dns.zone
import pytest
from django.core.management import base, call_command
from django.urls import reverse

from pools.models import DNSName, Event, Pool
from pools.register import dns as names
from tests import factories, people
from tests.edges import api as apis


@pytest.fixture
def api() -> apis.Api:
    return apis.Api()


def _zone(api: apis.Api, name: str = "example.org", query: str = "") -> Any:
    answer = api("GET", f"dns/zone-file/?zone={name}&ns=ns.example.net{query}")
    assert answer.status_code == 200, answer.content
    assert answer.headers["Content-Type"].startswith("text/dns")
    text = b"".join(answer.streaming_content).decode()
    return dns.zone.from_text(text, name, relativize=False)


def _addresses(zone: Any, name: str, record_type: str = "A") -> list[str]:
    rows = zone.get_rdataset(f"{name}.", record_type)
    return sorted(row.to_text() for row in rows) if rows else []


def test_a_name_is_set_changed_and_removed(api: apis.Api) -> None:
    block = factories.take(factories.pool("10.0.0.0/24"))
    place = f"blocks/{block['id']}/"
    assert "dns_name" not in api("GET", place).json()
    holder = {name: block["holder"][name] for name in ("kind", "id")}  # type: ignore[literal-required]
    answer = api("PATCH", place, {"dns_name": "WEB.Example.org.", "holder": holder})
    assert answer.json()["dns_name"] == "web.example.org"
    assert api("GET", place).json()["dns_name"] == "web.example.org"
    assert _addresses(_zone(api), "web.example.org") == [block["address"]]
    api("PATCH", place, {"dns_name": "db.example.org"})
    api("PATCH", place, {"dns_name": ""})
    assert _addresses(_zone(api), "db.example.org") == []
    types = Event.objects.filter(type__startswith="dns_name.").order_by("pk")
    assert [*types.values_list("type", flat=True)] == [
        "dns_name.created",
        "dns_name.changed",
        "dns_name.deleted",
    ]


def test_a_name_ends_with_its_holder(api: apis.Api) -> None:
    pool = factories.pool("10.0.0.0/32", cooldown=0)
    block = factories.take(pool)
    api("PATCH", f"blocks/{block['id']}/", {"dns_name": "web.example.org"})
    factories.give_back(block)
    assert _addresses(_zone(api), "web.example.org") == []
    successor = factories.take(pool)
    assert successor["address"] == block["address"]
    assert "dns_name" not in api("GET", f"blocks/{successor['id']}/").json()
    assert _addresses(_zone(api), "web.example.org") == []
    assert names.remove_ended() == 1
    assert not DNSName.objects.exists()


@pytest.mark.parametrize(
    ("change", "status", "code"),
    [
        ({"dns_name": "web"}, 400, "dns_name"),
        (
            {"dns_name": "a.example.org", "holder": {"kind": "vm", "id": "other"}},
            409,
            "holder_changed",
        ),
    ],
)
def test_wrong_changes_are_refused(
    api: apis.Api, change: dict[str, Any], status: int, code: str
) -> None:
    block = factories.take(factories.pool("10.0.0.0/24"))
    answer = api("PATCH", f"blocks/{block['id']}/", change)
    assert (answer.status_code, answer.json()["code"]) == (status, code)


def test_only_single_addresses_have_names(api: apis.Api) -> None:
    pool = factories.pool("10.0.0.0/16", mask=24)
    block = factories.take(pool)
    answer = api("PATCH", f"blocks/{block['id']}/", {"dns_name": "a.example.org"})
    assert answer.json()["code"] == "no_single_address"
    body = apis.holder("a") | {"dns_name": "a.example.org"}
    answer = api("POST", f"pools/{pool.pk}/allocations/", body)
    assert answer.json()["code"] == "no_single_address"
    assert api("GET", f"blocks/?holder_id=a&pool={pool.pk}").json()["results"] == []


def test_an_allocation_names_its_addresses_of_both_families(api: apis.Api) -> None:
    pool = factories.pool("10.0.0.0/24", "2001:db8::/64")
    path = f"pools/{pool.pk}/allocations/"
    body = apis.holder("a") | {"dns_name": "a.example.org"}
    assert api("POST", path, body, Idempotency_Key="k").status_code == 201
    assert api("POST", path, body, Idempotency_Key="k").status_code == 201
    zone = _zone(api)
    assert len(_addresses(zone, "a.example.org")) == 1
    assert len(_addresses(zone, "a.example.org", "AAAA")) == 1
    for wrong in ({"wait": True}, {"count": 2}):
        answer = api("POST", path, body | wrong)
        assert answer.json()["code"] == "conflicting_fields"
    assert api("POST", path, body | {"dns_name": "-"}).json()["code"] == "dns_name"


def test_a_pattern_derives_names(api: apis.Api) -> None:
    pool = factories.pool("10.0.0.0/24", "2001:db8::/64")
    place = f"pools/{pool.pk}/"
    pattern = {"dns_pattern": "{holder}.{cluster}.Example.org"}
    assert api("PATCH", place, pattern).json()["dns_pattern"] == "{holder}.{cluster}.example.org"
    one = factories.take(pool, factories.holder("shop/Web_1"), family=4)
    odd = factories.take(pool, factories.holder("***"), family=4)
    set_block = factories.take(pool, factories.holder("db"), family=4)
    api("PATCH", f"blocks/{set_block['id']}/", {"dns_name": "own.example.org"})
    zone = _zone(api)
    assert _addresses(zone, f"shop-web-1.{pool.cluster.name}.example.org") == [one["address"]]
    assert _addresses(zone, "own.example.org") == [set_block["address"]]
    assert odd["address"] not in zone.to_text()
    assert api("PATCH", place, {"dns_pattern": "x.example.org"}).json()["code"] == "dns_pattern"
    api("PATCH", place, {"dns_pattern": "{holder}.example.org"})
    six = factories.take(pool, factories.holder("six"), family=6)
    zone = _zone(api)
    assert _addresses(zone, "shop-web-1.example.org") == [one["address"]]
    assert _addresses(zone, "six.example.org", "AAAA") == [six["address"]]
    reverse_zone = _zone(api, "0.0.10.in-addr.arpa")
    assert "own.example.org." in reverse_zone.to_text()


def test_exports_are_of_one_cluster_and_for_externaldns(api: apis.Api) -> None:
    mine, other = factories.pool("10.0.0.0/24"), factories.pool("10.1.0.0/24")
    for pool in (mine, other):
        for holder in ("a", "b"):
            block = factories.take(pool, factories.holder(holder))
            names.set_name(block["id"], "web.example.org", author=factories.BY)
    path = f"dns/endpoints/?cluster={mine.cluster.name}&namespace=dns&ttl=60"
    answer = api("GET", path)
    document = json.loads(b"".join(answer.streaming_content))
    (endpoint,) = document["items"]
    assert (document["kind"], endpoint["kind"]) == ("List", "DNSEndpoint")
    assert endpoint["metadata"]["namespace"] == "dns"
    (records,) = endpoint["spec"]["endpoints"]
    assert len(records["targets"]) == 2
    assert all(target.startswith("10.0.0.") for target in records["targets"])


def test_two_clusters_with_the_same_record_have_it_once(api: apis.Api) -> None:
    for pool in (factories.pool("10.0.0.0/24"), factories.pool("10.0.0.0/24")):
        block = factories.take(pool, cidr="10.0.0.7/32")
        names.set_name(block["id"], "web.example.org", author=factories.BY)
    answer = api("GET", "dns/endpoints/")
    (endpoint,) = json.loads(b"".join(answer.streaming_content))["items"]
    assert endpoint["spec"]["endpoints"][0]["targets"] == ["10.0.0.7"]


def test_a_zone_has_the_serial_and_the_cidr_of_the_request(api: apis.Api) -> None:
    block = factories.take(factories.pool("10.0.0.0/24"), cidr="10.0.0.7/32")
    names.set_name(block["id"], "web.example.org", author=factories.BY)
    name = "0/26.0.0.10.in-addr.arpa"
    zone = _zone(api, name, "&cidr=10.0.0.0/26&serial=2026112501")
    assert zone.get_soa().serial == 2026112501
    (pointer,) = zone.get_rdataset(f"7.{name}.", "PTR")
    assert pointer.to_text() == "web.example.org."
    assert abs(_zone(api).get_soa().serial - time.time()) < 3600


def test_the_command_prints_the_zone(api: apis.Api) -> None:
    block = factories.take(factories.pool("10.0.0.0/24"))
    names.set_name(block["id"], "web.example.org", author=factories.BY)
    output = io.StringIO()
    call_command("dns", "zone-file", "example.org", "--ns", "ns.example.net", stdout=output)
    zone = dns.zone.from_text(output.getvalue(), "example.org", relativize=False)
    assert _addresses(zone, "web.example.org") == [block["address"]]
    for wrong in (["--cidr", "10.0.0.0/8"], ["--ns", "_"], ["--cluster", "none"], ["--ttl", "x"]):
        with pytest.raises(base.CommandError):
            call_command("dns", "zone-file", "example.org", "--ns", "ns.example.net", *wrong)


@pytest.mark.parametrize(
    ("query", "code"),
    [
        ("?zone=0/26.2.0.192.in-addr.arpa&ns=b.example.org", "dns_name"),
        ("?zone=clients.example.org&ns=b.example.org&cidr=192.0.2.0/24", "classless_cidr"),
        ("?zone=example.org&ns=b.example.org&serial=0", "out_of_range"),
        ("?zone=example.org&ns=b.example.org&serial=4294967296", "out_of_range"),
        ("?zone=example.org&ns=b", "dns_name"),
    ],
)
def test_wrong_exports_are_refused(api: apis.Api, query: str, code: str) -> None:
    answer = api("GET", f"dns/zone-file/{query}")
    assert (answer.status_code, answer.json()["code"]) == (400, code)


def test_names_are_set_in_the_admin_and_found(api: apis.Api) -> None:
    pool = factories.pool("10.0.0.0/24")
    browser = people.browser()
    data = {"kind": "vm", "id": "a", "family": "4", "dns_name": "web.example.org"}
    assert (
        browser.post(reverse("admin:pools_pool_allocate", args=[pool.pk]), data).status_code == 302
    )
    (block,) = api("GET", "blocks/?holder_id=a").json()["results"]
    found = browser.get(reverse("admin:find"), {"q": "Web.example"}).content.decode()
    assert block["address"] in found
    url = reverse("admin:pools_block_dns_name", args=[block["id"]])
    form = browser.get(url).content.decode()
    assert 'value="web.example.org"' in form
    data = {"dns_name": "db.example.org", "kind": "vm", "holder": "b"}
    assert "holder" in browser.post(url, data).content.decode()
    assert browser.post(url, data | {"holder": "a"}).status_code == 302
    page = browser.get(reverse("admin:pools_block_change", args=[block["id"]])).content.decode()
    assert "db.example.org" in page


def test_a_pattern_alone_leaves_a_pool_following_its_cluster(api: apis.Api) -> None:
    pool = factories.pool("10.0.0.0/24")
    Pool.objects.filter(pk=pool.pk).update(follows_cluster=True)
    api("PATCH", f"pools/{pool.pk}/", {"dns_pattern": "{holder}.example.org", "owner": "net"})
    assert Pool.objects.get(pk=pool.pk).follows_cluster


def _found(text: str) -> set[str]:
    page = people.browser().get(reverse("admin:find"), {"q": text})
    return {str(block.cidr.network_address) for block in page.context.get("blocks") or ()}


def test_names_of_patterns_are_found(api: apis.Api) -> None:
    pool = factories.pool("10.0.0.0/24", "2001:db8::/64")
    place, cluster = f"pools/{pool.pk}/", pool.cluster.name
    taken = {
        name: factories.take(pool, factories.holder(name), family=4)["address"]
        for name in ("shop/Web_1", "shop-web-1", "shop-web-11", "db", "own", "***")
    }
    six = factories.take(pool, factories.holder("six"), family=6)["address"]
    factories.give_back(factories.take(pool, factories.holder("gone"), family=4))
    block = api("GET", "blocks/?holder_id=own").json()["results"][0]
    api("PATCH", f"blocks/{block['id']}/", {"dns_name": "set.example.org"})
    web = {taken["shop/Web_1"], taken["shop-web-1"]}
    for pattern, finds in (
        ("{holder}.{cluster}.example.org", {
            f"shop-web-1.{cluster}.example.org": web, f"SHOP-web-1.{cluster}.Example.org.": web,
            f"db.{cluster}.example.org": {taken["db"]}, f"own.{cluster}.example.org": set(),
            f"gone.{cluster}.example.org": set(), f"six.{cluster}.example.org": {six}, "db.other.example.org": set(),
            f"d.{cluster}.example.org": set(), f".{cluster}.example.org": set(), f"d-b.{cluster}.example.org": set(),
            f"shop--web-1.{cluster}.example.org": set(), f"%.{cluster}.example.org": set(),
            "set.example.org": {taken["own"]},
        }),
        ("{holder}.example.org", {"shop-web-1.example.org": web, f"db.{cluster}.example.org": set()}),
    ):  # fmt: skip
        assert api("PATCH", place, {"dns_pattern": pattern}).status_code == 200
        for text, addresses in finds.items():
            assert _found(text) == addresses, (pattern, text)
