"""The address plan in a browser: the tree and its map, the way in and back, what is free and becomes a pool."""

import pytest

from pools.models import Cluster, Pool
from tests.e2e.conftest import Visit

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.mark.parametrize("visit", [1440, 390], indirect=True)
@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_the_map_zooms_and_the_path_leads_back(visit: Visit, scheme: str) -> None:
    page = visit.page
    page.emulate_media(color_scheme=scheme)
    visit.open("/admin/address-plan/")
    page.locator(".cad-plan-map").get_by_label("10.0.0.0/8: Data centres").click()
    page.wait_for_url("**parent=10.0.0.0%2F8")
    assert not visit.scrolls_sideways()
    page.locator(".cad-plan-map").get_by_label("10.32.0.0/11: Frankfurt").click()
    page.wait_for_url("**parent=10.32.0.0%2F11")
    levels = page.get_by_role("navigation", name="Levels")
    assert levels.locator("[aria-current=page]").inner_text() == "10.32.0.0/11"
    levels.get_by_role("link", name="10.0.0.0/8", exact=True).click()
    page.locator(".cad-plan-map").get_by_label("10.128.0.0/22").wait_for()
    levels.get_by_role("link", name="All").click()
    page.locator(".cad-plan-map").get_by_label("10.0.0.0/8: Data centres").wait_for()


def test_the_map_is_one_tab_stop_with_arrow_keys(visit: Visit) -> None:
    page = visit.page
    visit.open("/admin/address-plan/?parent=10.0.0.0/8")
    shapes = page.locator(".cad-plan-map > a")
    assert page.locator(".cad-plan-map > a[tabindex='0']").count() == 1
    shapes.first.focus()
    page.keyboard.press("ArrowRight")
    name = shapes.nth(1).get_attribute("aria-label")
    assert page.evaluate("document.activeElement.getAttribute('aria-label')") == name
    assert page.locator(".cad-map-name").inner_text() == name
    page.keyboard.press("Enter")
    page.get_by_text("is free.", exact=False).first.wait_for()


def test_four_clicks_lead_from_the_overview_to_a_pool_in_a_free_20(visit: Visit) -> None:
    page = visit.page
    cluster = Cluster.objects.get(name="demo-frankfurt")
    visit.open("/admin/")
    page.get_by_role("link", name="Address plan").first.click()  # 1
    page.get_by_label("Prefix lengths").fill("20, 24")
    page.get_by_role("button", name="Find free").click()  # 2
    row = page.locator("#free tr", has_text="/20").first
    first = row.locator("td").nth(2).inner_text()
    row.get_by_role("link", name="Add pool").click()  # 3
    page.wait_for_load_state()
    assert page.input_value("#id_cidrs-0-cidr") == first
    page.goto(f"{page.url}&cluster={cluster.pk}")
    page.fill("input[name=name]", "fresh")
    page.fill("input[name=mask_size_v4]", "24")
    page.get_by_role("button", name="Add the pool").click()  # 4
    page.get_by_text("Pool fresh was added").wait_for()
    assert str(Pool.objects.get(name="fresh").cidrs.get().cidr) == first


def test_the_cluster_that_is_chosen_is_filled_in(visit: Visit) -> None:
    page = visit.page
    cluster = Cluster.objects.get(name="demo-frankfurt")
    visit.open(f"/admin/address-plan/?cluster={cluster.pk}&parent=10.0.0.0/8&lengths=20")
    page.locator("#free").get_by_role("link", name="Add pool").click()
    page.wait_for_load_state()
    assert page.input_value("[name=cluster]") in {str(cluster.pk), cluster.name}


def test_an_overlap_leads_to_its_other_side(visit: Visit) -> None:
    page = visit.page
    visit.open("/admin/address-plan/?parent=10.0.0.0/8")
    row = page.locator("tr", has_text="10.20.0.0/16")
    row.get_by_role("link", name="overlaps 10.20.8.0/24").click()
    levels = page.get_by_role("navigation", name="Levels")
    levels.get_by_text("10.20.8.0/24").wait_for()
    visit.open("/admin/address-plan/?parent=10.0.0.0/8")
    row.get_by_role("link", name="▲ overlap").click()
    page.locator(".cad-overlaps").get_by_role(
        "link", name="demo-berlin/green-pool"
    ).first.wait_for()
