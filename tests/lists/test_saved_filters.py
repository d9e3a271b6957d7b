"""A list's filters, search and order under a name: private, or shared with everybody who sees the list."""

from typing import Any

import pytest
from django.db import IntegrityError, transaction
from django.test import Client
from django.urls import reverse

from pools.models import Pool, SavedFilter
from tests import factories, people

BLOCKS = reverse("admin:pools_block_changelist")
FILTERS = reverse("admin:list_filters", args=["pools.block"])
VIEWER = ["view_block", "view_pool"]


@pytest.fixture
def pool() -> Pool:
    pool = factories.pool("10.0.0.0/24")
    factories.cidrs(pool, 3)
    return pool


def save(client: Client, name: str = "Held", query: str = "state=held", **more: str) -> Any:
    return client.post(FILTERS, {"name": name, "query": query, **more})


def menu(client: Client) -> dict[str, Any]:
    page = client.get(BLOCKS)
    return {item["row"].name: item for item in page.context["saved"]}


def url_of(row: SavedFilter) -> str:
    return reverse("admin:list_filter", args=[row.list, row.pk])


def problems(answer: Any) -> dict[str, list[str]]:
    assert answer.status_code == 200
    return dict(answer.context["form"].errors)


def test_a_filter_is_saved_and_applied(pool: Pool) -> None:
    client = people.browser(VIEWER)
    answer = save(client, query="q=10.0.0.0/24&state=held&o=-cidr&p=2&_popup=1&nothing=1")
    row = SavedFilter.objects.get()
    assert (row.name, row.query, row.shared) == (
        "Held",
        "o=-cidr&q=10.0.0.0%2F24&state=held",
        False,
    )
    rows = client.get(answer.url).context["cl"].result_list
    assert [str(block.cidr) for block in rows] == ["10.0.0.3/32", "10.0.0.2/32", "10.0.0.1/32"]
    assert menu(client)["Held"]["url"] == answer.url.removeprefix(BLOCKS)


def test_all_values_of_a_filter_are_saved(pool: Pool) -> None:
    client = people.browser(VIEWER)
    page = client.get(f"{BLOCKS}?state=held&state=cooling")
    answer = save(client, query=page.context["query"])
    assert SavedFilter.objects.get().query == "state=held&state=cooling"
    assert answer.url == f"{BLOCKS}?state=held&state=cooling"
    assert menu(client)["Held"]["url"] == "?state=held&state=cooling"


def test_the_order_follows_the_columns(pool: Pool) -> None:
    client = people.browser(VIEWER)
    save(client, query="o=-cidr")
    columns = reverse("admin:list_columns", args=["pools.block"])
    client.post(columns, {"column": ["state", "cidr"]})
    url = menu(client)["Held"]["url"]
    rows = client.get(BLOCKS + url).context["cl"].result_list
    assert str(rows[0].cidr) == "10.0.0.3/32"
    client.post(columns, {"column": ["state"]})
    assert menu(client)["Held"]["url"] == "?"


def test_the_page_offers_its_own_query(pool: Pool) -> None:
    client = people.browser(VIEWER)
    page = client.get(f"{BLOCKS}?state=held&o=0&p=1")
    assert page.context["query"] == "o=cidr&state=held"
    save(client, query=page.context["query"])
    assert menu(client)["Held"]["is_current"] is False
    page = client.get(f"{BLOCKS}?o=0&state=held")
    assert [item["is_current"] for item in page.context["saved"]] == [True]


def test_a_private_filter_is_seen_by_its_owner_only(pool: Pool) -> None:
    owner, other, administrator = people.browser(VIEWER), people.browser(VIEWER), people.browser()
    save(owner)
    row = SavedFilter.objects.get()
    assert (list(menu(owner)), menu(other), menu(administrator)) == (["Held"], {}, {})
    for client in (other, administrator):
        assert client.get(url_of(row)).status_code == 404
        assert client.post(url_of(row), {"_delete": "1"}).status_code == 404
    assert SavedFilter.objects.exists()


@pytest.mark.exhaustive
def test_a_shared_filter_is_changed_by_its_owner_and_administrators(pool: Pool) -> None:
    owner, other, administrator = people.browser(VIEWER), people.browser(VIEWER), people.browser()
    save(owner, shared="on")
    row = SavedFilter.objects.get()
    assert menu(other)["Held"]["may_change"] is False
    assert other.get(url_of(row)).status_code == 403
    assert other.post(url_of(row), {"_delete": "1"}).status_code == 403
    owner.post(url_of(row), {"name": "In use", "shared": "on"})
    assert list(menu(other)) == ["In use"]
    administrator.post(url_of(row), {"name": "Used", "shared": "on"})
    row.refresh_from_db()
    assert (row.name, row.query) == ("Used", "state=held")
    owner.post(url_of(row), {"name": "Used"})
    assert menu(other) == {}
    assert b"Delete the filter Used?" in owner.post(url_of(row), {"_delete": "1"}).content
    owner.post(url_of(row), {"_delete": "1", "_confirmed": "1"})
    assert not SavedFilter.objects.exists()


@pytest.mark.sample(6)
@pytest.mark.parametrize("name", ["", " ", "x" * 81, "a\u202eb", "a\nb", "a\0b"])
def test_odd_names_are_refused_at_their_field(pool: Pool, name: str) -> None:
    assert list(problems(save(people.browser(VIEWER), name))) == ["name"]
    assert not SavedFilter.objects.exists()


def test_a_name_is_unique_for_its_owner_and_list(pool: Pool) -> None:
    client, other = people.browser(VIEWER), people.browser(VIEWER)
    save(client)
    name_error = {"name": ["You have a filter with this name for this list."]}
    assert problems(save(client, query="state=cooling")) == name_error
    assert save(other).status_code == 302
    client.post(reverse("admin:list_filters", args=["pools.pool"]), {"name": "Held"})
    assert SavedFilter.objects.count() == 3
    row = SavedFilter.objects.filter(list="pools.block").first()
    assert row is not None
    with pytest.raises(IntegrityError), transaction.atomic():
        SavedFilter.objects.create(owner=row.owner, list=row.list, name=row.name)


@pytest.mark.sample(9)
@pytest.mark.parametrize(
    "query",
    [
        "pool=99999",
        "state=gone",
        "cluster=x",
        "q=%00",
        "o=-gone.cidr",
        "gone=1",
        "o=99",
        "p=x",
        "%ff=%",
    ],
)
def test_a_filter_of_what_is_gone_opens(pool: Pool, query: str) -> None:
    client = people.browser(VIEWER)
    save(client)
    SavedFilter.objects.update(query=query)
    assert client.get(BLOCKS + menu(client)["Held"]["url"]).status_code == 200


def test_only_a_list_that_the_user_sees_has_filters(pool: Pool) -> None:
    save(people.browser(), shared="on")
    row = SavedFilter.objects.get()
    client = people.browser(["view_pool"])
    assert save(client).status_code == 403
    assert client.get(url_of(row)).status_code == 403
    moved = reverse("admin:list_filter", args=["pools.pool", row.pk])
    assert client.get(moved).status_code == 404
