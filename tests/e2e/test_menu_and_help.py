"""The menu fits a laptop, its items have tabs; each page leads to its chapter; alerts are acknowledged."""

import pytest
from playwright.sync_api import expect

from pools.models import Alert
from pools.platform.conditions import evaluation
from tests.e2e.conftest import Visit

pytestmark = pytest.mark.django_db(transaction=True)


def test_the_menu_fits_a_laptop_and_its_items_have_tabs(visit: Visit) -> None:
    page = visit.page
    visit.open("/admin/")
    menu = page.locator("#nav-sidebar")
    for name in ("Overview", "Pools", "Clusters", "MAC entries", "Access", "Settings"):
        box = menu.get_by_role("link", name=name, exact=True).bounding_box()
        assert box["y"] + box["height"] < 830, name
    menu.get_by_role("link", name="Access", exact=True).click()
    page.wait_for_load_state("networkidle")
    page.locator("#tabs-items").get_by_role("link", name="Tokens", exact=True).click()
    page.wait_for_url("**/admin/knox/authtoken/")
    assert page.locator("h1").inner_text().strip() == "Tokens"


@pytest.mark.parametrize("visit", [390], indirect=True)
def test_tabs_fit_a_phone(visit: Visit) -> None:
    visit.open("/admin/pools/finding/")
    expect(visit.page.get_by_role("link", name="Webhook decisions", exact=True)).to_be_visible()
    assert not visit.scrolls_sideways()


@pytest.mark.parametrize("visit", [390, 1440], indirect=True)
def test_help_leads_to_the_chapter(visit: Visit) -> None:
    visit.open("/admin/pools/leak/")
    visit.page.get_by_role("link", name="Help", exact=True).click()
    visit.page.wait_for_url("**/admin/docs/reference/leak-detection/")
    assert not visit.scrolls_sideways()
    visit.page.get_by_role("link", name="Documentation", exact=True).click()
    visit.page.get_by_role("link", name="concepts", exact=True).click()
    visit.page.wait_for_url("**/admin/docs/concepts/")


def test_an_alert_is_acknowledged_and_withdrawn(visit: Visit) -> None:
    evaluation.evaluate()
    alert = Alert.objects.filter(ended_at=None, level="warning").earliest("pk")
    page = visit.page
    visit.open(f"/admin/pools/alert/{alert.pk}/change/")
    page.locator("summary", has_text="Acknowledge").click()
    page.get_by_label("Reason").fill("the new CIDR is ordered")
    page.get_by_label("For", exact=True).fill("3 days")
    page.get_by_label("Alerts with the same cause too").uncheck()
    page.get_by_role("button", name="Acknowledge").click()
    page.get_by_text("The alert was acknowledged.").wait_for()
    page.get_by_role("button", name="Withdraw").click()
    page.get_by_text("The acknowledgement was withdrawn.").wait_for()


def test_a_filter_is_removed_by_its_chip(visit: Visit) -> None:
    visit.open("/admin/pools/block/?state=held")
    visit.page.locator("a.cad-chip").click()
    visit.page.wait_for_url("**/admin/pools/block/?")
    assert visit.page.locator("a.cad-chip").count() == 0
