"""The admin in a browser: nothing from another host, nothing against the policy, by keyboard."""

import re

import pytest

from pools.models import Block, Pool
from pools.register.demo import demo
from tests.e2e.conftest import Visit

pytestmark = pytest.mark.django_db(transaction=True)

PATHS = (
    "/admin/",
    "/admin/find/?q=10.20.1.7",
    "/admin/import/",
    "/admin/pools/pool/",
    "/admin/pools/pool/add/",
    "/admin/pools/pool/{pool}/change/",
    "/admin/pools/pool/{pool}/edit/",
    "/admin/pools/pool/{pool}/allocate/",
    "/admin/pools/block/",
    "/admin/pools/environment/",
    "/admin/pools/allocationrequest/",
    "/admin/pools/cluster/",
    "/admin/pools/cluster/add/",
    "/admin/pools/event/",
    "/admin/auth/user/",
    "/admin/auth/user/add/",
    "/admin/auth/group/",
    "/admin/knox/authtoken/",
)


@pytest.mark.parametrize("visit", [1440, 390], indirect=True)
def test_every_page_fits_and_nothing_complains(visit: Visit) -> None:
    pool = Pool.objects.get(name="yellow-pool").pk
    for path in PATHS:
        visit.open(path.format(pool=pool))
        assert visit.complaints == [], path
        assert not visit.scrolls_sideways(), path
    assert visit.hosts == {visit.url.removeprefix("http://")}


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


def test_a_pool_is_made_with_a_third_cidr(visit: Visit) -> None:
    page = visit.page
    visit.open("/admin/pools/pool/add/")
    page.select_option("[name=cluster]", label=demo.BERLIN)
    page.fill("[name=name]", "by-hand")
    page.fill("[name=mask_size_v4]", "28")
    page.click("[data-add-cidr]")
    for number in range(3):
        page.fill(f"[name=cidrs-{number}-cidr]", f"10.60.{number}.0/24")
    page.fill("[name=cidrs-2-reserved]", "10.60.2.0/25")
    page.click("text=Add the pool")
    page.wait_for_url("**/change/")
    assert page.locator(".cad-map").count() == 3
    assert Pool.objects.get(name="by-hand").cidrs.count() == 3


def test_blocks_are_filtered_and_released(visit: Visit) -> None:
    page = visit.page
    visit.open("/admin/pools/block/?q=lab-vm-001")
    page.check("input.action-select[name=_selected_action]")
    page.select_option("select[name=action]", label="Release")
    page.click("button[name=index]")
    page.wait_for_url("**/release/**")
    assert "lab-vm-001" in page.locator("table").inner_text()
    page.locator("main, #content").get_by_role("button", name="Release").click()
    page.wait_for_url("**/admin/pools/block/?q=lab-vm-001")
    assert "10.99.0.21 was released" in page.content()
    assert not Block.objects.filter(holder_id="lab-vm-001", state="held").exists()


def test_filters_of_a_list(visit: Visit) -> None:
    visit.open("/admin/pools/block/")
    visit.page.get_by_text(re.compile(r"^\s*Filters")).first.click()
    visit.page.locator("select[name=state] + .select2").click()
    visit.page.locator(".select2-results__option", has_text="in cooldown").click()
    visit.page.get_by_role("button", name=re.compile("Apply")).click()
    visit.page.wait_for_url("**state=cooling**")
    assert visit.page.locator(".cad-state-cooling").count() == 44
    assert visit.complaints == []
