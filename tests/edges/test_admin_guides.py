"""Pages that answer one question: the pool of a pod, the demand of a node, preflight, overlaps."""

import html
from typing import Any

import pytest
from django.urls import reverse

from pools.models import Cluster
from pools.platform.conditions import evaluation
from tests import factories, people


@pytest.fixture
def cluster() -> Cluster:
    cluster = factories.cluster()
    selector = {"matchLabels": {"team": "green"}}
    factories.pool("10.10.0.0/16", category="pod", mask=24, name="default", within=cluster)
    factories.pool("10.20.0.0/16", category="pod", mask=24, name="green", within=cluster, pod_selector=selector)  # fmt: skip
    return cluster


def _page(name: str, *, who: Any = None, **query: object) -> str:
    browser = who or people.browser()
    answer = browser.get(reverse(f"admin:{name}", query=query))
    assert answer.status_code == 200
    return html.unescape(answer.content.decode())


def test_the_pool_of_a_pod(cluster: Cluster) -> None:
    query = {"cluster": cluster.pk, "pod": "web-0", "namespace": "shop"}
    page = _page("pool_for_pod", **query)
    assert "IPv4: unknown</h2>" in page
    assert "has no annotation" not in page
    none = dict.fromkeys(("pod_annotations", "namespace_labels", "namespace_annotations"), "-")
    page = _page("pool_for_pod", **query, **none, pod_labels="team=green\nb: c")
    assert 'The podSelector of the pool "green" matches.' in page
    assert "IPv4: <a" in page
    page = _page("pool_for_pod", **query, **none, pod_labels="-")
    assert 'The default pool "default" is used.' in page
    assert "The default pool is assumed" in page


def test_a_label_that_is_none(cluster: Cluster) -> None:
    page = _page("pool_for_pod", cluster=cluster.pk, pod="a", namespace="b", pod_labels="x=y\nz")
    assert "Line 2: expected key=value." in page


def test_the_demand_of_a_node(cluster: Cluster) -> None:
    page = _page("node_demand", cluster=cluster.pk, in_use="default=12", pre_allocation="default=8")
    assert "10.10.0.0/24" in page
    assert ">24</span></strong>" in page
    page = _page("node_demand", cluster=cluster.pk, in_use="default=12", pre_allocation="default")
    assert "Write the map as pool=number" in page
    page = _page("node_demand", cluster=cluster.pk, in_use="none=1")
    assert "There is no such pool." in page


def test_preflight(cluster: Cluster) -> None:
    page = _page("preflight", cluster=cluster.pk)
    assert "the cluster is not connected" in page
    assert page.count("cilium-config could not be read") == 1
    assert "Native routing, Routes to pod CIDRs, " in page
    assert "IPv6 mask size" in page


def test_overlaps_and_their_filters(cluster: Cluster) -> None:
    assert "No overlapping CIDRs." in _page("plan", overlaps="all")
    other = factories.pool("10.20.4.0/24", name="vms")
    page = _page("plan", overlaps="all")
    assert "1 overlap</h2>" in page
    assert f"{other}</a>" in page
    for query in ({"overlaps": "overlay"}, {"overlaps": "all", "parent": "10.30.0.0/16"}):
        assert "No overlapping CIDRs." in _page("plan", **query)
    for query in ({"overlaps": "vm-network", "q": "10.20.4.7"}, {"overlaps": "warning"}):
        assert "1 overlap</h2>" in _page("plan", **query)


@pytest.mark.exhaustive
def test_many_of_one_overlap_are_counted(cluster: Cluster) -> None:
    for _ in range(13):
        factories.pool("10.20.0.0/16", category="pod", mask=24)
    assert "and 2 more" in _page("plan", overlaps="all")


def test_the_overview_tells_of_overlaps_and_leads_to_migrations(cluster: Cluster) -> None:
    pool = factories.pool("10.20.0.0/16", "10.21.0.0/16", category="pod", mask=24, reserved=["10.20.0.0/16"])  # fmt: skip
    evaluation.evaluate()
    page = html.unescape(people.browser().get("/admin/").content.decode())
    assert "1 overlapping CIDR" in page
    assert reverse("admin:plan", query={"overlaps": "all"}) in page
    url = reverse("admin:pools_pool_migrations", args=[pool.pk], query={"cidr": "10.20.0.0/16"})
    assert url in page
