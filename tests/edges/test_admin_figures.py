"""Figures of lists and of the overview: addresses instead of blocks, IPv6 in words, overlaps in place."""

import html
import re

import pytest
from django.urls import reverse

from pools.admin.overview import overview
from pools.cilium import pod_cidrs
from pools.core.cilium import ciliumnode
from pools.models import Now, ObservedObject
from pools.platform.admin import display
from tests import factories, people


@pytest.mark.parametrize(
    ("addresses", "family", "text"),
    [
        (65536, 4, "65\u202f536"),
        (254, 6, "254"),
        (3 << 64, 6, "3 /64"),
        ((3 << 64) - 1, 6, "2 /64"),
        (1 << 80, 6, "1 /48"),
        (5 << 48, 6, "5 /80"),
    ],
)
def test_many_addresses_of_ipv6_are_networks(addresses: int, family: int, text: str) -> None:
    assert display.size(addresses, family) == text


def test_the_overview_counts_addresses_of_pools_with_other_block_sizes() -> None:
    cluster = factories.cluster()
    for cidr, mask in (("10.0.0.0/16", 24), ("10.1.0.0/24", 26)):
        pool = factories.pool(cidr, mask=mask, category="pod", within=cluster)
        factories.take(pool, factories.holder("n1", kind="node"))
    pools = overview.summarize().pools
    ((_category, _label, _family, counts),) = overview.category_summaries(pools)
    assert (counts.used, counts.capacity) == (256 + 64, 65536 + 256)
    (summary,) = overview.cluster_summaries(pools)
    assert summary.families[4] == counts


def test_a_cidr_leads_to_its_map_with_its_size_and_overlaps() -> None:
    pools = [
        factories.pool(
            "10.0.0.0/24", "10.9.9.0/24", within=factories.cluster(), category="pod", mask=28
        ),
        factories.pool("10.0.0.0/24", within=factories.cluster(), category="pod", mask=28),
    ]
    factories.take(pools[0])
    page = people.browser().get(reverse("admin:pools_poolcidr_changelist")).content.decode()
    assert f"{display.url_of(pools[1])}?map=10.0.0.0/24#map" in page
    page = html.unescape(page)
    overlap = reverse("admin:plan", query={"overlaps": "all", "parent": "10.0.0.0/24"})
    assert page.count(overlap) == 2
    assert reverse("admin:plan", query={"overlaps": "all", "parent": "10.9.9.0/24"}) not in page
    assert '<span class="cad-num">256</span>' in page
    assert "1 allocated, 0 in cooldown" in page


def test_nodes_of_a_cluster_without_connection_are_those_of_the_register() -> None:
    pool = factories.pool("10.0.0.0/16", mask=24, category="pod")
    for name in ("n2", "n1", "n1"):
        factories.take(pool, factories.holder(name, kind="node"))
    factories.take(pool, factories.holder("web", kind="vm"))
    cluster = pool.cluster_id
    shown = pod_cidrs.list_registered_nodes(cluster)
    assert [(node.name, node.pools[0].pool, len(node.pools[0].cidrs)) for node in shown] == [
        ("n1", pool.name, 2),
        ("n2", pool.name, 1),
    ]
    assert [node.name for node in pod_cidrs.list_registered_nodes(cluster, after="n1")] == ["n2"]
    assert [node.name for node in pod_cidrs.list_registered_nodes(cluster, name="n1")] == ["n1"]
    page = people.browser().get(reverse("admin:nodes", query={"cluster": cluster})).content.decode()
    assert "These nodes hold blocks in the register." in page
    assert ">n2</a>" in page
    assert ">web</a>" not in page


def test_nodes_of_a_cluster_whose_connection_is_gone_are_those_that_were_observed() -> None:
    pool = factories.pool("10.0.0.0/16", mask=24, category="pod")
    ObservedObject.objects.create(
        cluster=pool.cluster, kind=ciliumnode.KIND, name="n1", uid="1", manifest={},
        first_seen_at=Now(), changed_at=Now(),
    )  # fmt: skip
    url = reverse("admin:nodes", query={"cluster": pool.cluster_id})
    page = people.browser().get(url).content.decode()
    assert "not connected" in page
    assert ">n1</a>" in page


def test_the_head_of_a_sorted_column_says_how() -> None:
    factories.pool("10.0.0.0/24")
    url = reverse("admin:pools_poolcidr_changelist")
    for order, direction in (("1", "ascending"), ("-1", "descending")):
        page = people.browser().get(f"{url}?o={order}").content.decode()
        assert re.findall(r'<th [^>]*aria-sort="(\w+)"', page) == [direction]
