"""Filters by a pool, cluster or network: a menu while they are few, else a field that suggests names."""

from __future__ import annotations

from typing import Any
from urllib.parse import urlencode

import pytest
from django.test import Client
from django.urls import reverse

from pools.models import Pool
from pools.platform.admin import related
from pools.register import clusters
from tests import factories, people
from tests.claims.access import two_worlds

pytestmark = pytest.mark.django_db
BLOCKS = reverse("admin:pools_block_changelist")


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


@pytest.mark.parametrize("typed", ["prod/green", "id"])
def test_a_name_or_an_id_filters(pools: list[Pool], typed: str) -> None:
    client = people.browser()
    query = f"pool={pools[1].pk if typed == 'id' else typed}"
    assert shown(client, query) == ["10.0.1.1/32"]
    page = client.get(f"{BLOCKS}?{query}")
    assert [label for label, _query in page.context["cl"].active_filters()] == ["pool: prod/green"]
    assert 'value="prod/green"' in page.content.decode()


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


def test_a_vm_owner_gets_names_of_their_own_networks() -> None:
    owner = two_worlds.Owner()
    two_worlds.add_foreign(owner)
    names = suggested(owner.browser(), "", "claims.entry", "network")
    assert names == ["prod/alpha-net", "prod/shared-net"]
    assert suggested(owner.browser(), "zulu", "claims.entry", "network") == []
