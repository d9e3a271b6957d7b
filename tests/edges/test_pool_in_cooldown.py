"""A pool that only cooling blocks keep in use says how many they are and until when; several blocks in one visit."""

import html
import re

import pytest
from django.urls import reverse

from pools.models import AllocationRequest, Block, Pool
from tests import factories, people
from tests.edges import api as apis


@pytest.fixture
def cooling_pool() -> Pool:
    """A pool of two addresses that are both in cooldown."""
    pool = factories.pool("10.20.0.0/31", cooldown=3600)
    for block in [factories.take(pool, factories.holder(name)) for name in "ab"]:
        factories.give_back(block)
    return pool


def _page(name: str, pool: Pool, permissions: list[str] | None = None) -> str:
    answer = people.browser(permissions).get(reverse(f"admin:pools_pool_{name}", args=[pool.pk]))
    return html.unescape(answer.content.decode())


@pytest.mark.parametrize("name", ["change", "delete"])
def test_the_pages_say_how_many_cool_and_end_it(cooling_pool: Pool, name: str) -> None:
    page = _page(name, cooling_pool)
    assert ("Nobody holds a block of this pool." in page) is (name == "change")
    assert "2 blocks are in cooldown, the last one until" in page
    link = re.search(r'href="([^"]*end-cooldown[^"]*)"', page)
    assert link is not None
    browser = people.browser()
    assert b"2 blocks" in browser.get(link[1]).content
    ids = list(
        Block.objects.filter(pool=cooling_pool, state="cooling").values_list("pk", flat=True)
    )
    browser.post(link[1], {"id": ids, "reason": "the lab is gone"})
    assert "in cooldown, the last" not in _page(name, cooling_pool)
    browser.post(reverse("admin:pools_pool_delete", args=[cooling_pool.pk]))
    assert not Pool.objects.exists()


def test_whoever_may_not_end_a_cooldown_is_not_offered_it(cooling_pool: Pool) -> None:
    page = _page("change", cooling_pool, ["view_pool", "view_cluster"])
    assert "2 blocks are in cooldown" in page
    assert "end-cooldown" not in page


def test_a_pool_with_free_and_held_blocks_says_nothing() -> None:
    pool = factories.pool("10.20.0.0/29", cooldown=3600)
    factories.give_back(factories.take(pool, factories.holder("a")))
    factories.take(pool, factories.holder("b"))
    assert "block is in cooldown" not in _page("change", pool)


def test_rest_says_until_when_a_pool_cools(cooling_pool: Pool) -> None:
    api = apis.Api()
    detail = apis.refused(api("DELETE", f"pools/{cooling_pool.pk}/"), 409, "pool_in_use")["detail"]
    assert re.search(r"has 2 blocks in cooldown until \d{4}-\d\d-\d\dT[\d:.]+Z", detail)
    demand = apis.holder("c")
    answer = api("POST", f"pools/{cooling_pool.pk}/allocations/", demand)
    detail = apis.refused(answer, 409, "ipam_exhausted")["detail"]
    assert "2 blocks are in cooldown; the next one becomes free at" in detail
    api("POST", f"pools/{cooling_pool.pk}/allocations/", demand | {"wait": True})
    request = AllocationRequest.objects.get()
    url = reverse("admin:pools_allocationrequest_change", args=[request.pk])
    page = people.browser().get(url).content.decode()
    assert "2 blocks are in cooldown" in page
    assert "end-cooldown" in page


def test_three_blocks_are_allocated_in_one_visit() -> None:
    pool = factories.pool("10.20.0.0/29")
    url = reverse("admin:pools_pool_allocate", args=[pool.pk])
    values = {"kind": "vm", "id": "web", "count": "3", "org": "acme", "_another": "1"}
    answer = people.browser().post(url, values)
    assert Block.objects.filter(pool=pool, holder_id="web", state="held").count() == 3
    assert answer["Location"].startswith(url)
    form = people.browser().get(answer["Location"]).context["form"]
    assert form["org"].value() == "acme"
    assert not form["id"].value()


def test_the_bar_and_its_number_are_of_the_same_blocks() -> None:
    pool = factories.pool("10.20.0.0/28", reserved=["10.20.0.0-10.20.0.7"])
    factories.ask(pool, *factories.holders(2))
    page = _page("change", pool)
    bar = re.search(
        r'<rect class="m-held" x="0.0" width="([\d.]+)".*?cad-percent">(\d+)%', page, re.DOTALL
    )
    assert bar is not None
    assert int(float(bar[1])) == int(bar[2])
