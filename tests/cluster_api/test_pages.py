"""Claims on the page of their cluster, in *Find*, and in the history of their address."""

from collections.abc import Sequence
from typing import Any

import pytest
from django.urls import reverse

from pools.models import Block, BlockEvent, Cluster
from tests import people
from tests.cluster_api.world import World

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture
def served(world: World) -> Cluster:
    world.serve("machine-1", cidr="10.0.0.7/32")
    world.follow_claims("machine-2")
    cluster: Cluster = world.cluster
    return cluster


def _page(name: str, *permissions: str, to: Sequence[int] = (), **query: str) -> str:
    browser = people.browser(permissions)
    answer: Any = browser.get(reverse(f"admin:{name}", args=to), query)
    assert answer.status_code == 200, answer.status_code
    return str(answer.content.decode())


def test_the_page_of_the_cluster(served: Cluster) -> None:
    name, to = "pools_cluster_change", [served.pk]
    page = _page(name, "view_cluster", "view_observedobject", "view_pool", "view_block", to=to)
    assert "Claims of Cluster API" in page
    assert "blue/machine-1" in page
    assert "CadastrePool blue/pool" in page
    assert "10.0.0.7" in page
    assert "has no block left" in page, "why the second one has no address"
    assert "Claims of Cluster API" not in _page(name, "view_cluster", "view_pool", to=to)


@pytest.mark.parametrize("text", ["machine-2", "blue/machine-2"])
def test_find_by_the_name_of_a_claim(served: Cluster, text: str) -> None:
    page = _page("find", "view_block", "view_observedobject", "view_pool", q=text)
    assert "Claims of Cluster API" in page
    assert "blue/machine-2" in page
    assert "Claims of Cluster API" not in _page("find", "view_block", q=text)


def test_the_history_of_an_address_names_its_claims(world: World, served: Cluster) -> None:
    world.delete_claim("machine-1")
    world.sync()
    block = Block.objects.get(cidr="10.0.0.7/32")
    events = BlockEvent.objects.filter(pgh_obj_id=block.pk).order_by("pgh_id")
    assert [(row.state, row.holder_id) for row in events if row.holder_id] == [
        ("held", "blue/machine-1"),
        ("available", "blue/machine-1"),
        ("held", "blue/machine-2"),
    ]
    page = _page("history", "view_event", "view_block", "view_cluster", "view_pool", q="10.0.0.7")
    assert "blue/machine-1" in page
    assert "blue/machine-2" in page
