"""The search field of the frame, and parts of names, addresses and MACs on the Find page."""

from ipaddress import ip_network

import pytest
from django.test import Client

from claims.address_index import index
from claims.models import Entry, IPPool, Network
from pools.core.observed.uses import Role
from pools.register.plan import containers
from tests import factories, people
from tests.observed.rows import observed

pytestmark = pytest.mark.django_db


def _find(client: Client, text: str) -> str:
    return client.get("/admin/find/", {"q": text}).content.decode()


def test_it_is_on_every_page_for_who_may_search() -> None:
    may, may_not = people.browser(["view_block"]), people.browser([])
    assert b'id="cad-search"' in may.get("/admin/").content
    assert b'id="cad-search"' not in may.get("/admin/find/").content
    assert b'name="q"' not in may.get("/admin/").content
    assert b'id="cad-search"' not in may_not.get("/admin/").content


@pytest.mark.exhaustive
def test_parts_of_names_and_macs_find_entries() -> None:
    cluster = factories.cluster()
    network = Network.objects.create(cluster=cluster, name="blue")
    ippool = IPPool.objects.create(cluster=cluster, network=network, name="blue")
    entry = Entry.objects.create(
        ippool=ippool,
        mac="02:aa:bb:00:00:01",
        ips=["10.0.0.1/24"],
        namespace="shop",
        vm="big-web-1",
    )
    index.write(entries=[entry])
    client = people.browser()
    parts = (
        "g-web",
        "shop/g-web",
        "G-WEB",
        "02:aa:bb",
        "02aa.bb00",
        "bb:00",
        "00-00-01",
        "bb00.0001",
        "aabb",
        "0.0.1",
    )
    for text in parts:
        assert "big-web-1" in _find(client, text), text
    assert "No results for" in _find(client, "other/g-web")


def _addresses(text: str) -> set[str]:
    """The addresses of the blocks and of the objects of clusters that Find has for a text."""
    context = people.browser().get("/admin/find/", {"q": text}).context
    shown = [section.context for section in context["sections"]]
    rows = {str(row.cidr.network_address) for part in shown for row in part.get("blocks", ())}
    return rows | {str(row.cidr.network_address) for part in shown for row in part.get("rows", ())}


@pytest.mark.exhaustive
def test_any_part_of_an_address_finds_it() -> None:
    pool = factories.pool("10.20.0.0/16", "2001:db8:10::/64")
    for number, text in enumerate(("10.20.3.7/32", "10.20.13.70/32", "2001:db8:10::beef/128")):
        factories.take(pool, factories.holder(f"vm-{number}"), cidr=text)
    observed(factories.cluster(), Role.NODE, "192.0.23.7/32")
    four, other, six, node = "10.20.3.7", "10.20.13.70", "2001:db8:10::beef", "192.0.23.7"
    for text, result in (
        ("20.3.7", {four}), (".3.7", {four}), ("3.7", {four, other, node}), ("0.13.", {other}), ("23.7", {node}),
        ("::beef", {six}), (":BEEF", {six}), ("beef", {six}), ("8:10::b", {six}), ("::bee", {six}), ("::bead", set()),
        ("20.3.70", set()), ("10.20.3.70", set()), ("2001:db8:10::bee", set()), ("10.20", {four, other}),
    ):  # fmt: skip
        assert _addresses(text) == result, text


def test_an_address_that_is_free_is_not_shown_as_a_longer_one() -> None:
    factories.take(factories.pool("2001:db8::/64"), cidr="2001:db8::10/128")
    page = people.browser().get("/admin/find/", {"q": "2001:db8::1"})
    assert [match.state for match in page.context["matches"]] == ["free"]
    assert not any("blocks" in section.context for section in page.context["sections"])


def test_containers_are_found_by_name_and_address() -> None:
    containers.create(ip_network("10.0.0.0/8"), name="Data centres", author=factories.BY)
    client = people.browser()
    for text in ("centre", "10.1.2.3", "10.0.0.0/7"):
        assert "Data centres" in _find(client, text), text
