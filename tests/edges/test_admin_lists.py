"""Lists stay fast on a large register, and never show the allocator's window."""

from __future__ import annotations

from typing import Any

import pytest
from django.core.paginator import Paginator
from django.db import connection
from django.test.utils import CaptureQueriesContext
from django.urls import reverse

from pools.models import Block, Event
from pools.platform.admin import lists
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


def test_counting_stops_and_the_page_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(lists, "REACH", 250)
    many(factories.pool("10.0.0.0/16"), 400)
    client = people.browser()
    url = reverse("admin:pools_block_changelist")
    answer = client.get(url)
    assert answer.context["cl"].result_count == 250
    assert "This list shows the first 250 blocks" in answer.content.decode()
    assert len(client.get(f"{url}?p=3").context["cl"].result_list) == 50


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
    changes = {name: (old, new) for name, old, new, differs in page.context["changes"] if differs}
    assert changes["state"] == ("held", "cooling")
    assert client.post(reverse("admin:pools_event_delete", args=[event.pk])).status_code == 403


def test_the_paginator_is_exact_up_to_its_reach() -> None:
    pool = factories.pool("10.0.0.0/24")
    factories.cidrs(pool, 3)
    rows = Block.objects.filter(state="held").order_by("cidr")
    bounded, exact = lists.BoundedPaginator(rows, 2), Paginator(rows, 2)
    assert (bounded.count, bounded.num_pages) == (exact.count, exact.num_pages)
    assert not bounded.more
