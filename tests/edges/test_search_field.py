"""The search field of the frame, and parts of names, addresses and MACs on the Find page."""

from __future__ import annotations

from ipaddress import ip_network
from typing import Any

import pytest
from django.test import Client

from claims.address_index import index
from claims.core import macs
from claims.models import Entry, IPPool, Network
from pools.platform.admin import search_text
from pools.register.plan import containers
from tests import factories, people

pytestmark = pytest.mark.django_db


def _find(client: Client, text: str) -> str:
    return client.get("/admin/find/", {"q": text}).content.decode()


def test_it_is_on_every_page_for_who_may_search() -> None:
    may, may_not = people.browser(["view_block"]), people.browser([])
    assert b'id="cad-search"' in may.get("/admin/").content
    assert b'id="cad-search"' not in may.get("/admin/find/").content
    assert b'id="cad-search"' not in may_not.get("/admin/").content


@pytest.mark.parametrize(
    ("text", "network"),
    [
        ("2001:db8:10", "2001:db8:10::/48"),
        ("fd00:", "fd00::/16"),
        ("10.20.5", "10.20.5.0/24"),
        ("00:1a:4b", None),
        ("db-01", None),
        ("fd00", None),
    ],
)
def test_parts_of_addresses(text: str, network: str | None) -> None:
    parsed = search_text.parse(text)
    assert parsed.network == (ip_network(network) if network else None)
    assert not parsed.hint


@pytest.mark.parametrize(
    ("text", "bounds"),
    [
        ("02:aa:aa", ("02:aa:aa:00:00:00", "02:aa:aa:ff:ff:ff")),
        ("02AA.AA", None),
        ("02aa.aaaa", ("02:aa:aa:aa:00:00", "02:aa:aa:aa:ff:ff")),
        ("02-aa-aa-", ("02:aa:aa:00:00:00", "02:aa:aa:ff:ff:ff")),
        ("00:00", ("00:00:00:00:00:01", "00:00:ff:ff:ff:ff")),
        ("db-01", None),
        ("01:00", None),
        ("02:aa:aa:aa:aa:aa", None),
    ],
)
def test_parts_of_macs(text: str, bounds: Any) -> None:
    assert macs.parse_mac_part(text) == bounds


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
    for text in ("g-web", "shop/g-web", "G-WEB", "02:aa:bb", "02aa.bb00"):
        assert "big-web-1" in _find(client, text), text
    assert "No results for" in _find(client, "other/g-web")


def test_containers_are_found_by_name_and_address() -> None:
    containers.create(ip_network("10.0.0.0/8"), name="Data centres", author=factories.BY)
    client = people.browser()
    for text in ("centre", "10.1.2.3", "10.0.0.0/7"):
        assert "Data centres" in _find(client, text), text
