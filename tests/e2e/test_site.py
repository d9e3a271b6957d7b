"""The admin in a browser: nothing from another host, the map by keyboard, the filters of a list."""

import re

import pytest

from pools.models import Pool
from pools.register.demo import demo
from tests.e2e.conftest import Visit

pytestmark = pytest.mark.django_db(transaction=True)


def test_the_map_is_walked_by_keyboard_and_zoomed(visit: Visit) -> None:
    pool = Pool.objects.get(name="instances", cluster__name=demo.FRANKFURT)
    visit.open(f"/admin/pools/pool/{pool.pk}/change/#map")
    page = visit.page
    assert page.locator(".cad-map [tabindex='0']").count() == 1
    page.locator(".cad-map [tabindex='0']").focus()
    page.keyboard.press("ArrowRight")
    text = page.locator(".cad-map-name").inner_text()
    assert text.startswith("2001:db8:10:1:40::/74: free")
    page.keyboard.press("Home")
    page.keyboard.press("Enter")
    page.wait_for_url(re.compile("map="))
    assert page.locator(".cad-map-head").inner_text().startswith("2001:db8:10:1::/64")
    page.get_by_text("Zoom to used blocks").click()
    page.wait_for_url(re.compile(r"/120"))  # in one step to where all blocks in use are
    assert page.get_by_text("Zoom to used blocks").count() == 0
    assert visit.hosts == {visit.url.removeprefix("http://")}


def test_filters_of_a_list(visit: Visit) -> None:
    visit.open("/admin/pools/block/")
    visit.page.get_by_text(re.compile(r"^\s*Filters")).first.click()
    visit.page.locator("select[name=state] + .select2").click()
    visit.page.locator(".select2-results__option", has_text="in cooldown").click()
    visit.page.get_by_role("button", name=re.compile("Apply")).click()
    visit.page.wait_for_url("**state=cooling**")
    assert visit.page.locator(".cad-state-cooling").count() == 44
