"""Topology of clusters, pools and networks: each shape is a link, at most 200 of them, the rest as a number."""

import re
from typing import Any

import pytest
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext
from django.urls import reverse

from pools.admin.pools import topology
from pools.models import Block
from pools.platform.admin import display
from pools.register.allocator import allocation
from tests import factories, people
from tests.claims import worlds

SHAPE = re.compile(r'<(?:a|g) class="t-shape[^>]*>')
USAGE = re.compile(r'<text class="t-usage"[^>]*>([^<]*)<')


PATH = re.compile(r'class="t-shape t-path"[^>]* aria-label="([^"]*)"')
START = re.compile(r'aria-label="([^"]*)" id="here" aria-current="location"')


def page(row: Any, client: Client | None = None, **query: Any) -> str:
    kind = f"{row._meta.app_label}_{row._meta.model_name}"
    url = reverse(f"admin:{kind}_topology", args=[row.pk], query=query)
    answer = (client or people.browser()).get(url)
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


def test_it_starts_at_a_node_with_all_its_blocks_and_what_runs_there() -> None:
    pool = factories.pool("10.0.0.0/20", name="green")
    factories.ask(pool, *(factories.holder(f"other-{number:03}") for number in range(600)))
    for _ in range(12):
        factories.take(pool, factories.holder("node-1", kind="node"))
    blue = factories.pool("10.1.0.0/28", name="blue", within=pool.cluster)
    network = worlds.network(of=pool.cluster)
    for number in range(250):
        worlds.workload(
            network,
            f"vm-{number:03}",
            f"02:00:00:00:00:{number:02x}",
            node="node-1",
            phase="Running",
        )
    text = page(pool.cluster, node="node-1")
    assert PATH.findall(text) == [
        f"cluster {pool.cluster}", f"pool green, {usage_of(text)}", "node node-1, 12 blocks"
    ]  # fmt: skip
    assert START.findall(text) == ["node node-1, 12 blocks"]
    factories.take(blue, factories.holder("node-1", kind="node"))
    both = page(pool.cluster, node="node-1")
    assert len(PATH.findall(both)) == 5  # in both pools
    assert both.count('id="here"') == 1
    assert "Where is node-1?" in text
    assert 'aria-label="VM blue/vm-000, Running"' in text
    shapes = len(SHAPE.findall(text))
    assert shapes <= topology.MOST
    guests = text.count('aria-label="VM ')
    assert f"+ {250 - guests} more" in text
    assert f'href="{reverse("admin:find", query={"q": "node-1"})}"' in text
    assert "node-1" not in page(pool.cluster, node="nothing")


def usage_of(text: str) -> str:
    return re.findall(r'aria-label="pool green, ([^"]*)"', text)[0]


@pytest.mark.parametrize("state", ["held", "cooling"])
def test_it_starts_at_a_block(state: str) -> None:
    pool = factories.pool("10.0.0.0/24", name="green", cooldown=600)
    blocks = [factories.take(pool, holder) for holder in factories.holders(120)]
    block = Block.objects.get(pk=blocks[-1]["id"])
    if state == "cooling":
        allocation.release(block.pk, None, author=factories.WITH_REASON, force=True)
        block.refresh_from_db()
    text = page(pool, block=block.pk)
    name = display.plain_cidr(block.cidr)
    assert len(START.findall(text)) == 1
    assert START.findall(text)[0].startswith(f"block {name}, ")
    path = PATH.findall(text)
    assert len(path) == (4 if state == "held" else 3)
    link = reverse("admin:pools_pool_topology", args=[pool.pk], query={"block": block.pk})
    assert f'href="{link}"' in people.browser().get(display.url_of(block)).content.decode()
