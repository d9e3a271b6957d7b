"""Topology of clusters, pools and networks: each shape is a link, at most 200 of them, the rest as a number."""

from __future__ import annotations

import re
from typing import Any

import pytest
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext
from django.urls import reverse

from pools.admin.pools import topology
from tests import factories, people

pytestmark = pytest.mark.django_db
SHAPE = re.compile(r'<(?:a|g) class="t-shape"[^>]*>')
USAGE = re.compile(r'<text class="t-usage"[^>]*>([^<]*)<')


def page(row: Any, client: Client | None = None) -> str:
    kind = f"{row._meta.app_label}_{row._meta.model_name}"
    answer = (client or people.browser()).get(reverse(f"admin:{kind}_topology", args=[row.pk]))
    assert answer.status_code == 200
    return answer.content.decode()


def test_a_cluster_its_pools_and_who_holds_their_blocks() -> None:
    pool = factories.pool("10.0.0.0/28", name="green")
    for _ in range(3):
        factories.take(pool, factories.holder("node-1", kind="node"))
    factories.take(pool, factories.holder("node-2", kind="node"))
    factories.pool("10.1.0.0/28", name="blue", within=pool.cluster)
    for row in (pool.cluster, pool):
        text = page(row)
        for name in (
            f"cluster {pool.cluster}",
            "pool green, ",
            "node node-1, 3 blocks",
            "node node-2, ",
        ):
            assert f'aria-label="{name}' in text, name
        assert "3 blocks" in USAGE.findall(text)
        assert ("pool blue" in text) is (row == pool.cluster)
    assert f'href="{reverse("admin:pools_cluster_change", args=[pool.cluster_id])}"' in text
    nested = text[text.index('id="list"') :]
    assert "node-1" in nested


def test_at_most_so_many_shapes_and_the_rest_as_a_number() -> None:
    pool = factories.pool("10.0.0.0/22")
    factories.ask(pool, *factories.holders(220))
    text = page(pool)
    shapes = len(SHAPE.findall(text))
    assert shapes <= topology.MOST
    assert f"+ {220 - (shapes - 3)} more" in text
    assert f"pool={pool.pk}" in text


def test_the_statements_do_not_grow_with_the_pools() -> None:
    pool = factories.pool("10.0.0.0/28")
    counts = []
    for number in range(1, 4):
        with CaptureQueriesContext(
            connection,
        ) as captured:
            page(pool.cluster)
        counts.append(len(captured))
        factories.take(factories.pool(f"10.{number}.0.0/28", within=pool.cluster))
    assert len(set(counts[1:])) == 1


def test_without_the_right_to_see_blocks_there_are_no_holders() -> None:
    pool = factories.pool("10.0.0.0/28")
    factories.take(pool, factories.holder("node-1", kind="node"))
    client = people.browser([name for name in people.VIEWER if name != "view_block"])
    assert "node-1" not in page(pool, client)
