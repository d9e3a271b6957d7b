"""The YAML page of a pool: every shape, that of a cluster, Helm values, each to be downloaded."""

import html
import json
import re

import pytest
from django.urls import reverse

from pools.clusters import connections
from pools.models.pools import Category
from pools.platform import events
from tests import factories, people
from tests.edges import api as apis
from tests.kube.fake import FakeCluster

BY = events.Author("tester", "command")


def _page(pool_id: int, **query: object) -> str:
    url = reverse("admin:pools_pool_change", args=[pool_id], query=query)
    return html.unescape(people.browser().get(url).content.decode())


def test_every_shape_and_helm() -> None:
    pool = factories.pool("10.20.0.0/16", category="pod", mask=24)
    page = _page(pool.pk)
    for shape in ("v2", "v2-proposal", "v2alpha1", "helm"):
        url = f"/api/v1/pools/{pool.pk}/manifest/?shape={shape}"
        assert f'href="{url}"' in page
        assert people.browser().get(url).status_code == 200
    assert "autoCreateCiliumPodIPPools:" in page
    assert "Format for cluster" not in page  # no cluster is connected


def test_what_a_shape_cannot_say() -> None:
    pool = factories.pool("10.20.0.0/16", category="pod", mask=24, reserved=["10.20.0.0/24"])
    page = _page(pool.pk)
    assert "v2alpha1 holds at most 0 reserved ranges for 10.20.0.0/16." in page
    assert page.count("Not supported") == 2


def test_as_a_cluster_takes_it(fake: FakeCluster) -> None:
    pool = factories.pool("10.20.0.0/16", category="pod", mask=24, reserved=["10.20.0.0/24"])
    source = connections.from_kubeconfig(fake.kubeconfig())
    connections.connect(pool.cluster, source, connections.Terms(), author=BY)
    page = _page(pool.pk, cluster=pool.cluster_id)
    assert "reservedRanges:" in page
    assert "reservedRange:" not in page


def test_a_pool_that_is_no_manifest() -> None:
    assert "Only pools of the category pod CIDR" in _page(factories.pool("10.20.0.0/24").pk)


@pytest.mark.sample(5)
@pytest.mark.parametrize("category", Category.values)
def test_the_pool_takes_the_allocation_that_its_page_prints(category: str) -> None:
    cidrs = {
        "ipv4": ["203.0.113.0/28"],
        "node": ["2001:db8::/64"],
        "instance": ["2001:db8::/64"],
        "pod": ["10.20.0.0/16", "fd00::/104"],
        "vm": ["10.20.0.0/24"],
    }
    mask = {4: 24, 6: 120} if category == "pod" else None
    pool = factories.pool(*cidrs[category], category=category, mask=mask)
    body = re.search(r"-d '([^']+)'", _page(pool.pk))
    assert body is not None
    blocks = apis.Api("operator").create(f"pools/{pool.pk}/allocations/", json.loads(body[1]))
    assert len(blocks["blocks"]) == len(cidrs[category])
