"""Filters by a pool, cluster or network: a menu while they are few, else a field that suggests names."""

from typing import Any
from urllib.parse import urlencode

import pytest
from django.test import Client
from django.urls import reverse

from pools.models import Pool
from pools.platform.admin import related
from pools.register import clusters
from tests import factories, people
from tests.claims import worlds
from tests.claims.access import two_worlds

pytestmark = pytest.mark.django_db
BLOCKS = reverse("admin:pools_block_changelist")
ENTRIES = reverse("admin:claims_entry_changelist")


@pytest.fixture
def pools(monkeypatch: pytest.MonkeyPatch) -> list[Pool]:
    """Three pools with a block each, where a menu has two rows at most."""
    monkeypatch.setattr(related, "MENU", 2)
    cluster = clusters.create("prod", author=factories.BY)
    pools = [
        factories.pool(f"10.0.{number}.0/24", name=name, within=cluster)
        for number, name in enumerate(("blue", "green", "green-2"))
    ]
    for pool in pools:
        factories.cidrs(pool, 1)
    return pools


def shown(client: Client, query: str) -> list[str]:
    return [str(block.cidr) for block in client.get(f"{BLOCKS}?{query}").context["cl"].result_list]


def suggested(
    client: Client, text: str, label: str = "pools.block", parameter: str = "pool"
) -> Any:
    url = reverse("admin:list_names", args=[label, parameter])
    return client.get(url, {"q": text}).json()["names"]


def test_few_rows_are_a_menu_and_many_a_field(
    pools: list[Pool], monkeypatch: pytest.MonkeyPatch
) -> None:
    client = people.browser()
    url = reverse("admin:list_names", args=["pools.block", "pool"])
    assert f'data-names="{url}"' in client.get(BLOCKS).content.decode()
    assert "prod/blue" not in client.get(BLOCKS).content.decode().split("<table")[0]
    monkeypatch.setattr(related, "MENU", 3)
    page = client.get(BLOCKS).content.decode()
    assert url not in page
    assert f'<option value="{pools[1].pk}">prod/green</option>' in page


@pytest.mark.sample(2)
@pytest.mark.parametrize("typed", ["prod/green", "id"])
def test_a_name_or_an_id_filters(pools: list[Pool], typed: str) -> None:
    client = people.browser()
    query = f"pool={pools[1].pk if typed == 'id' else typed}"
    assert shown(client, query) == ["10.0.1.1/32"]
    page = client.get(f"{BLOCKS}?{query}")
    assert [label for label, _query in page.context["cl"].active_filters()] == ["pool: prod/green"]
    assert 'value="prod/green"' in page.content.decode()


@pytest.mark.sample(9)
@pytest.mark.parametrize(
    "typed", ["prod/gre", "green", "prod", "prod/green/x", "prod/\0", "0", "9" * 30, "é"]
)
def test_what_names_no_row_matches_none_and_is_kept(pools: list[Pool], typed: str) -> None:
    client = people.browser()
    query = urlencode({"pool": typed})
    assert shown(client, query) == []
    page = client.get(f"{BLOCKS}?{query}")
    assert [label for label, _query in page.context["cl"].active_filters()] == [f"pool: {typed}"]
    assert f'value="{typed}"' in page.content.decode()


@pytest.mark.sample(7)
@pytest.mark.parametrize(
    ("typed", "names"),
    [
        ("", ["prod/blue", "prod/green", "prod/green-2"]),
        ("GREEN", ["prod/green", "prod/green-2"]),
        ("rod/2", ["prod/green-2"]),
        ("ro bl", ["prod/blue"]),
        ("green blue", []),
        ("%", []),
        ("blue\0", ["prod/blue"]),
    ],
)
def test_names_that_contain_each_part(pools: list[Pool], typed: str, names: list[str]) -> None:
    assert suggested(people.browser(), typed) == names


@pytest.mark.exhaustive
def test_suggestions_are_few(pools: list[Pool]) -> None:
    for number in range(related.SUGGESTIONS + 5):
        factories.pool(f"10.9.{number}.0/24", name=f"p{number}")
    assert len(suggested(people.browser(), "p")) == related.SUGGESTIONS


def test_unknown_lists_and_filters(pools: list[Pool]) -> None:
    client = people.browser()
    for label, name in (("pools.block", "state"), ("pools.block", "x"), ("pools.nope", "pool")):
        url = reverse("admin:list_names", args=[label, name])
        assert client.get(url).status_code == 404
    url = reverse("admin:list_names", args=["pools.block", "pool"])
    assert people.browser([]).get(url).status_code == 403
    assert Client().get(url).status_code == 302


@pytest.mark.exhaustive
def test_a_vm_owner_gets_names_of_their_own_networks() -> None:
    owner = two_worlds.Owner()
    two_worlds.add_foreign(owner)
    names = suggested(owner.browser(), "", "claims.entry", "network")
    assert names == ["prod/alpha-net", "prod/shared-net"]
    assert suggested(owner.browser(), "zulu", "claims.entry", "network") == []


def add_entries(*namespaces: str) -> None:
    ippool = worlds.ippool(worlds.network())
    for number, namespace in enumerate(namespaces, 1):
        worlds.entry(ippool, f"02:00:00:00:00:0{number}", vm="vm", namespace=namespace)


@pytest.mark.sample(3)
@pytest.mark.parametrize(("most", "is_menu"), [(3, True), (2, False)])
@pytest.mark.parametrize(
    ("query", "count"),
    [("", 3), ("namespace=shop", 1), ("namespace=shop&namespace=web", 2), ("namespace=nope", 0)],
)
def test_a_filter_by_many_names_is_a_field(
    monkeypatch: pytest.MonkeyPatch, most: int, is_menu: bool, query: str, count: int
) -> None:
    monkeypatch.setattr(related, "MENU", most)
    add_entries("shop", "web", "web-2")
    page = people.browser().get(f"{ENTRIES}?{query}")
    assert len(page.context["cl"].result_list) == count
    text = page.content.decode()
    assert ('<option value="web-2"' in text) == is_menu
    assert (reverse("admin:list_names", args=["claims.entry", "namespace"]) in text) == (
        not is_menu
    )


def test_names_are_typed_with_blanks(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(related, "MENU", 2)
    add_entries("shop", "web", "web-2")
    client = people.browser()
    page = client.get(ENTRIES, {"namespace": " web  shop "})
    changelist = page.context["cl"]
    assert {entry.namespace for entry in changelist.result_list} == {"shop", "web"}
    assert [label for label, _query in changelist.active_filters()] == ["namespace: web, shop"]
    assert 'value="web shop"' in page.content.decode()
    assert client.get(ENTRIES, {"namespace": "web\0"}).status_code == 200
    assert suggested(client, "eb", "claims.entry", "namespace") == ["web", "web-2"]
    monkeypatch.setattr(related, "SUGGESTIONS", 1)
    assert suggested(client, "", "claims.entry", "namespace") == ["shop"]


@pytest.mark.exhaustive
def test_a_vm_owner_gets_names_of_their_own_namespaces() -> None:
    owner = two_worlds.Owner()
    two_worlds.add_foreign(owner)
    names = suggested(owner.browser(), "", "claims.entry", "namespace")
    assert names
    assert not [name for name in names if "zulu" in name]
