"""Lists stay fast on a large register, and never show the allocator's window."""

from typing import Any

import pytest
from django.contrib import admin
from django.db import connection
from django.test.utils import CaptureQueriesContext
from django.urls import reverse

from pools.admin.clusters.drift import DriftAdmin
from pools.admin.clusters.observed import FindingAdmin
from pools.admin.pools.blocks import BlockAdmin
from pools.admin.pools.environments import EnvironmentAdmin
from pools.admin.pools.pools import PoolAdmin
from pools.models import Block, Environment, Event, Pool
from pools.platform import search
from pools.platform.admin import display, large_tables
from tests import factories, people


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
    assert changes["State"] == ("allocated", "in cooldown")
    shown = {field.label: field.after for field in page.context["change"].unchanged}
    assert shown["Pool"] == display.row_link(pool)  # a name with a link, and no id
    assert page.text.index("Show all") < page.text.index(
        "<dt>Pool</dt>", page.text.index("Show all")
    )
    assert client.post(reverse("admin:pools_event_delete", args=[event.pk])).status_code == 403


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


@pytest.mark.parametrize("estimated", [False, True])
def test_a_page_that_is_gone_is_the_last_one(
    monkeypatch: pytest.MonkeyPatch, estimated: bool
) -> None:
    """Its filters, search and order stay, and so does what is exported."""
    monkeypatch.setattr(BlockAdmin, "list_per_page", 3)
    monkeypatch.setattr(large_tables, "estimated_rows", lambda _model: 200_000 if estimated else 0)
    pool = factories.pool("10.0.0.0/24", cooldown=60)
    many(pool, 5)
    factories.give_back(factories.take(pool))
    client = people.browser()
    url = reverse("admin:pools_block_changelist")
    for page, rows in ((2, 2), (9, 2), (0, 3), (-1, 3)):
        answer = client.get(url, {"state": "held", "o": "1", "p": page})
        assert len(answer.context["cl"].result_list) == rows, page
    export = client.get(reverse("admin:pools_block_export"), {"state": "held", "p": 9})
    assert export.getvalue().count(b",held,") == 5


def test_a_filter_that_a_list_does_not_have_is_named() -> None:
    client = people.browser()
    url = reverse("admin:pools_block_changelist")
    page = client.get(url, {"holder_uid": "x"}, follow=True)
    assert "There is no such filter" in page.content.decode()
    assert "There is no such filter" not in client.get(url).content.decode()


def test_a_search_that_finds_nothing_reads_the_table_once() -> None:
    Environment.objects.create(cluster=factories.cluster(), org="acme", env="prod")
    client = people.browser()
    url = reverse("admin:pools_environment_changelist")
    with CaptureQueriesContext(connection) as queries:
        answer = client.get(url, {"q": "absent"})
    assert answer.context["cl"].result_count == 0
    assert len([query for query in queries if "LIKE UPPER" in query["sql"]]) == 1


def test_a_large_table_is_estimated_and_a_filter_counted(monkeypatch: pytest.MonkeyPatch) -> None:
    cluster = factories.cluster()
    for org in "abc":
        Environment.objects.create(cluster=cluster, org=org, env="prod")
    with connection.cursor() as cursor:
        cursor.execute("ANALYZE pools_environment")
    monkeypatch.setattr(large_tables, "EXACT", 2)
    Environment.objects.create(cluster=cluster, org="d", env="prod")
    client = people.browser()
    url = reverse("admin:pools_environment_changelist")
    page = client.get(url)
    assert (page.context["cl"].result_count, page.context["cl"].is_estimated) == (3, True)
    assert "about" in page.content.decode()
    assert client.get(url, {"org": ["c", "d"]}).context["cl"].result_count == 2


def test_pools_are_sorted_by_what_is_computed() -> None:
    cluster = factories.cluster()
    half, full, _free = (
        factories.pool(cidr, within=cluster, name=name)
        for cidr, name in (
            ("10.0.0.0/29", "half"),
            ("10.0.1.0/30", "full"),
            ("10.0.2.0/24", "free"),
        )
    )
    for pool, number in ((half, 3), (full, 2)):
        for _ in range(number):
            factories.take(pool)
    client = people.browser()
    url = reverse("admin:pools_pool_changelist")
    columns = [getattr(column, "__name__", column) for column in PoolAdmin.list_display]

    def order(column: str, sign: str = "") -> list[str]:
        number = columns.index(column) + 1  # behind the checkbox
        rows = client.get(url, {"o": f"{sign}{number}"}).context["cl"].result_list
        return [row.name for row in rows]

    assert order("utilization") == ["free", "half", "full"]
    assert order("utilization", "-") == ["full", "half", "free"]
    assert order("free", "-") == ["free", "half", "full"]
    assert order("state", "-")[0] == "full"
    assert {*order("forecast")} == {"full", "half", "free"}


def test_blocks_are_filtered_by_tenant_and_sorted_by_holder() -> None:
    pool = factories.pool("10.0.0.0/24")
    for number, name in enumerate("bac"):
        factories.take(pool, factories.holder(name), org=f"o{number}", env="prod")
    url = reverse("admin:pools_block_changelist")

    def holders(**query: Any) -> list[str]:
        rows = people.browser().get(url, query).context["cl"].result_list
        return [row.holder_id for row in rows]

    assert holders(o="2") == ["a", "b", "c"]
    assert holders(o="-2") == ["c", "b", "a"]
    assert holders(org="o1") == ["a"]
    assert holders(env="none") == []


def test_an_empty_list_has_no_tools() -> None:
    client = people.browser()
    page = client.get(reverse("admin:pools_container_changelist")).content.decode()
    assert page.count("No network containers yet") == 1
    assert "Saved filters" not in page
    assert 'id="searchbar"' not in page


@pytest.mark.parametrize("most", [1, 10_000])
def test_a_search_keeps_the_order_of_the_list(monkeypatch: pytest.MonkeyPatch, most: int) -> None:
    cluster = factories.cluster()
    for org in ("b", "a", "c"):
        Environment.objects.create(cluster=cluster, org=org, env="prod")
    monkeypatch.setattr(search, "FEW", most)
    url = reverse("admin:pools_environment_changelist")
    for query, orgs in (({"q": "PRO"}, "abc"), ({"q": "pro", "o": "-2"}, "cba")):
        changelist = people.browser().get(url, query).context["cl"]
        assert "".join(row.org for row in changelist.result_list) == orgs


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


@pytest.mark.exhaustive
def test_no_parameter_of_a_list_fails_by_what_is_no_text() -> None:
    """Its filters, and its columns, by which Django filters, too."""
    client, tried = people.browser(), 0
    for model, model_admin in admin.site._registry.items():
        url = reverse(f"admin:{model._meta.app_label}_{model._meta.model_name}_changelist")
        items = getattr(model_admin, "offered_filters", tuple)()
        columns = [column.name for column in model._meta.concrete_fields]
        for name in [*(item.parameter_name for item in items), *columns]:
            tried += 1
            answer = client.get(url, {name: "a\0b"})
            assert answer.status_code < 500, (url, name)
    assert tried > 200
