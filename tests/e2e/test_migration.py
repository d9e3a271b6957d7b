"""The migration of a CIDR from its first step to its last: what was done is said to be done."""

import pytest

from pools.models import Cluster, Pool
from pools.register.demo import demo
from tests import factories
from tests.e2e.conftest import Visit

pytestmark = pytest.mark.django_db(transaction=True)


def _begin(visit: Visit, field: str = "to", text: str = "10.210.0.0/21") -> Pool:
    page = visit.page
    cluster = Cluster.objects.get(name=demo.BERLIN)
    pool = factories.pool("10.201.0.0/24", within=cluster, name="moves")
    visit.open(f"/admin/pools/pool/{pool.pk}/migrations/")
    page.fill(f"[name={field}]", text)
    page.locator("#content").get_by_role("button", name="Preview", exact=True).click()
    page.locator("button[name=_begin]").click()
    page.locator(".cad-steps").wait_for()
    return pool


def _marks(visit: Visit) -> list[str]:
    return [
        str(all_inner_text)
        for all_inner_text in visit.page.locator(".cad-steps h2 > .cad-dim").all_inner_texts()
    ]


def test_all_steps_of_a_finished_one_are_done(visit: Visit) -> None:
    _begin(visit)
    for button in ("Add 10.210.0.0/21", "Reserve", "Remove 10.201.0.0/24"):
        visit.page.get_by_role("button", name=button).click()
        visit.page.wait_for_load_state()
    assert _marks(visit) == ["done"] * 4


def test_no_step_of_an_aborted_one_is_to_come(visit: Visit) -> None:
    _begin(visit)
    visit.page.get_by_role("button", name="Cancel migration").click()
    visit.page.get_by_text("The reservation of this migration is removed").wait_for()
    visit.page.get_by_role("button", name="Cancel migration").click()
    visit.page.wait_for_load_state()
    assert _marks(visit) == ["skipped"] * 4


def test_to_go_on_with_the_whole_cidr_is_shown_first(visit: Visit) -> None:
    page = visit.page
    pool = _begin(visit, "range", "10.201.0.0-10.201.0.99")
    page.get_by_role("button", name="Reserve", exact=True).click()
    page.get_by_role("button", name="Preview").click()
    widening = page.locator("#widening")
    widening.wait_for()
    assert "10.201.0.100-10.201.0.255" in widening.inner_text()
    assert pool.reserved_ranges.count() == 1
    widening.get_by_role("button", name="Reserve all of 10.201.0.0/24").click()
    page.get_by_text("The whole CIDR 10.201.0.0/24 is reserved now.").wait_for()
    assert pool.reserved_ranges.count() == 2
