"""Lists stay fast on a large register, and never show the allocator's window."""

from __future__ import annotations

from typing import Any

import pytest
from django.contrib import admin
from django.core.paginator import Paginator
from django.db import connection
from django.test.utils import CaptureQueriesContext
from django.urls import reverse

from pools.admin.clusters.drift import DriftAdmin
from pools.admin.clusters.observed import FindingAdmin
from pools.admin.pools.environments import EnvironmentAdmin
from pools.models import Block, Environment, Event, Pool
from pools.platform.admin import display, large_tables
from tests import factories, people

pytestmark = pytest.mark.django_db


def many(pool: Any, count: int) -> None:
    factories.ask(pool, *factories.holders(count))


def test_only_what_somebody_has_is_listed() -> None:
    pool = factories.pool("10.0.0.0/24", cooldown=60)
    factories.give_back(factories.take(pool))
    held = factories.take(pool)
    window = Block.objects.filter(pool=pool, state="available")
    assert window.count() > 100
    client = people.browser()
    cl = client.get(reverse("admin:pools_block_changelist")).context["cl"]
    assert sorted(block.state for block in cl.result_list) == ["cooling", "held"]
    url = reverse("admin:pools_block_change", args=[window[0].pk])
    assert client.get(url).status_code == 404
    page = client.get(reverse("admin:pools_block_change", args=[held["id"]]))
    assert page.status_code == 200


def test_blocks_are_sorted_as_numbers_both_ways() -> None:
    pool = factories.pool("10.0.0.0/24")
    factories.cidrs(pool, 12)
    client = people.browser()
    for order, edge in (("", "10.0.0.1/32"), ("?o=-1", "10.0.0.12/32"), ("?o=1", "10.0.0.1/32")):
        url = reverse("admin:pools_block_changelist") + order
        rows = [str(block.cidr) for block in client.get(url).context["cl"].result_list]
        assert rows[0] == edge
        assert rows == sorted(rows, key=lambda text: int(text[7:-3]), reverse=order == "?o=-1")


@pytest.mark.exhaustive
def test_counting_stops_and_the_page_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(large_tables, "REACH", 250)
    many(factories.pool("10.0.0.0/16"), 400)
    client = people.browser()
    url = reverse("admin:pools_block_changelist")
    answer = client.get(url)
    assert answer.context["cl"].result_count == 250
    assert "This list shows the first 250 blocks" in answer.content.decode()
    assert len(client.get(f"{url}?p=3").context["cl"].result_list) == 50


@pytest.mark.exhaustive
def test_no_statement_counts_the_whole_table() -> None:
    many(factories.pool("10.0.0.0/16"), 300)
    client = people.browser()
    client.get(reverse("admin:index"))
    for name in ("pools_block", "pools_event"):
        with CaptureQueriesContext(connection) as queries:
            client.get(reverse(f"admin:{name}_changelist"))
        counts = [query["sql"] for query in queries if "COUNT(" in query["sql"].upper()]
        assert counts
        assert all("LIMIT" in sql for sql in counts), counts


@pytest.mark.exhaustive
@pytest.mark.parametrize("query", ["", "?pool={pool}", "?state=held", "?category=vm", "?p=2"])
def test_a_page_of_blocks_takes_a_fixed_number_of_statements(query: str) -> None:
    pool = factories.pool("10.0.0.0/16")
    many(pool, 110)
    client = people.browser()
    url = reverse("admin:pools_block_changelist") + query.format(pool=pool.pk)
    client.get(url)
    with CaptureQueriesContext(connection) as few:
        client.get(url)
    many(pool, 200)
    with CaptureQueriesContext(connection) as more:
        client.get(url)
    assert len(more) <= len(few)
    assert len(more) < 20


def test_events_are_read_only_and_tell_the_difference() -> None:
    pool = factories.pool("10.0.0.0/24", cooldown=60)
    factories.give_back(factories.take(pool))
    event = Event.objects.filter(type="released").get()
    client = people.browser()
    page = client.get(reverse("admin:pools_event_change", args=[event.pk]))
    changes = {field.label: (field.before, field.after) for field in page.context["change"].changed}
    assert changes["State"] == ("held", "cooling")
    shown = {field.label: field.after for field in page.context["change"].unchanged}
    assert shown["Pool"] == display.row_link(pool)  # a name with a link, and no id
    assert page.text.index("Show all") < page.text.index(
        "<dt>Pool</dt>", page.text.index("Show all")
    )
    assert client.post(reverse("admin:pools_event_delete", args=[event.pk])).status_code == 403


def test_the_paginator_is_exact_up_to_its_reach() -> None:
    pool = factories.pool("10.0.0.0/24")
    factories.cidrs(pool, 3)
    rows = Block.objects.filter(state="held").order_by("cidr")
    bounded, exact = large_tables.BoundedPaginator(rows, 2), Paginator(rows, 2)
    assert (bounded.count, bounded.num_pages) == (exact.count, exact.num_pages)
    assert not bounded.more


def test_the_newest_events_are_merged_from_the_indexes() -> None:
    """A branch with other types, or a large one with a join, would be read and sorted as a whole."""
    with connection.cursor() as cursor:
        cursor.execute("SET LOCAL enable_seqscan = off; SET LOCAL enable_bitmapscan = off")
        plan = Event.objects.order_by("-id")[:100].explain()
    assert "Merge Append" in plan
    for table in (
        "pools_blockevent", "pools_failureevent", "claims_entryevent", "claims_ipamclaimevent",
    ):  # fmt: skip
        assert f"Index Scan Backward using {table}_pkey" in plan


def test_events_are_filtered_by_cluster_and_by_type() -> None:
    pool, other = factories.pool("10.0.0.0/24"), factories.pool("10.0.0.0/24")
    factories.take(pool)
    factories.take(other)
    Pool.objects.filter(pk=other.pk).update(description="changed")
    client = people.browser()
    url = reverse("admin:pools_event_changelist")

    def types(**query: Any) -> dict[str, set[int]]:
        result: dict[str, set[int]] = {}
        for event in client.get(url, query).context["cl"].result_list:
            result.setdefault(event.type, set()).add(event.cluster_id)
        return result

    of_other = types(cluster=other.cluster_id)
    assert {"block.allocated", "pool.changed", "cluster.created"} <= {*of_other}
    assert all(clusters == {other.cluster_id} for clusters in of_other.values())
    assert {*types(type="pool")} >= {"pool.created", "pool.changed"}
    assert all(name.startswith("pool.") for name in types(type="pool"))
    assert len(types(type="block")) == 1
    assert types(type="failed") == {}


def test_a_search_with_few_results_does_not_count_them() -> None:
    factories.take(factories.pool("10.0.0.0/24"))
    client = people.browser()
    with CaptureQueriesContext(connection) as queries:
        answer = client.get(reverse("admin:pools_block_changelist"))
    assert answer.context["cl"].result_count == 1
    counts = [query["sql"] for query in queries if "COUNT(" in query["sql"].upper()]
    assert not [sql for sql in counts if "pools_block" in sql]


def test_a_list_is_sorted_by_what_it_offers() -> None:
    cluster = factories.cluster()
    for org in ("b", "a", "c"):
        Environment.objects.create(cluster=cluster, org=org, env=org * 2)
    client = people.browser()
    url = reverse("admin:pools_environment_changelist")

    def orgs(order: str) -> str:
        return "".join(row.org for row in client.get(url, {"o": order}).context["cl"].result_list)

    assert orgs("-2") == "cba"
    assert orgs("-3") == "abc"  # the description is not offered


def test_a_search_that_finds_nothing_reads_the_table_once() -> None:
    Environment.objects.create(cluster=factories.cluster(), org="acme", env="prod")
    client = people.browser()
    url = reverse("admin:pools_environment_changelist")
    with CaptureQueriesContext(connection) as queries:
        answer = client.get(url, {"q": "absent"})
    assert answer.context["cl"].result_count == 0
    assert len([query for query in queries if "LIKE UPPER" in query["sql"]]) == 1


def test_a_search_that_finds_many_is_counted_up_to_the_reach(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    cluster = factories.cluster()
    for org in "abc":
        Environment.objects.create(cluster=cluster, org=org, env="prod")
    monkeypatch.setattr(large_tables, "REACH", 2)
    monkeypatch.setattr(EnvironmentAdmin, "list_per_page", 1)
    with CaptureQueriesContext(connection) as queries:
        answer = people.browser().get(reverse("admin:pools_environment_changelist"), {"q": "prod"})
    assert (answer.context["cl"].result_count, answer.context["cl"].beyond) == (2, True)
    searches = [query["sql"] for query in queries if "LIKE UPPER" in query["sql"]]
    assert len(searches) == 3  # the ids, the page, and how many there are up to the reach


@pytest.mark.parametrize("reach", [1, 10_000])
def test_a_search_keeps_the_order_of_the_list(monkeypatch: pytest.MonkeyPatch, reach: int) -> None:
    cluster = factories.cluster()
    for org in ("b", "a", "c"):
        Environment.objects.create(cluster=cluster, org=org, env="prod")
    monkeypatch.setattr(large_tables, "REACH", reach)
    url = reverse("admin:pools_environment_changelist")
    for query, orgs in (({"q": "PRO"}, "abc"), ({"q": "pro", "o": "-2"}, "cba")):
        changelist = people.browser().get(url, query).context["cl"]
        assert "".join(row.org for row in changelist.result_list) == orgs
        assert changelist.beyond == (reach == 1)


@pytest.mark.parametrize(
    ("admin_class", "index"),
    [
        (EnvironmentAdmin, "environment_list"),
        (FindingAdmin, "finding_since"),
        (DriftAdmin, "drift_unique"),
    ],
)
def test_the_order_of_a_list_is_that_of_an_index(admin_class: Any, index: str) -> None:
    model = next(
        model for model, shown in admin.site._registry.items() if type(shown) is admin_class
    )
    with connection.cursor() as cursor:
        cursor.execute("SET LOCAL enable_seqscan = off; SET LOCAL enable_bitmapscan = off")
        plan = model._default_manager.order_by(*admin_class.ordering)[:100].explain()
    assert f"using {index}" in plan
    assert "Sort" not in plan


def test_a_count_of_pools_reads_an_index_alone() -> None:
    many(factories.pool("10.0.0.0/16"), 300)
    with connection.cursor() as cursor, CaptureQueriesContext(connection) as queries:
        people.browser().get(reverse("admin:pools_pool_changelist"))
        (count,) = (query["sql"] for query in queries if 'COUNT(*) AS "number"' in query["sql"])
        cursor.execute("SET LOCAL enable_seqscan = off; SET LOCAL enable_bitmapscan = off")
        cursor.execute(f"EXPLAIN {count}")
        assert "Index Only Scan using block_pool_state" in str(cursor.fetchall())
