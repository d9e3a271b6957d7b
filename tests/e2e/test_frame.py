"""The frame around the pages: by keyboard, on a narrow screen, zoomed, on paper."""

import pytest
from playwright.sync_api import expect

from pools.models import Event, Pool
from tests.e2e.conftest import Visit

pytestmark = pytest.mark.django_db(transaction=True)


def test_the_content_is_a_landmark_and_openers_have_names(visit: Visit) -> None:
    visit.open("/admin/pools/pool/")
    page = visit.page
    assert page.get_by_role("main").count() == 1
    page.get_by_role("button", name="Menu", exact=True).click()
    page.get_by_role("link", name="Blocks", exact=True).wait_for(state="hidden")
    heading = page.get_by_role("columnheader", name="Cluster", exact=True)
    assert heading.get_attribute("aria-sort") == "ascending"
    heading.get_by_role("link", name="Cluster", exact=True).click()
    page.wait_for_selector("th.column-cluster[aria-sort=descending]")


def test_filters_and_the_users_menu_open_by_keyboard(visit: Visit) -> None:
    visit.open("/admin/pools/block/")
    page = visit.page
    page.locator("[role=button]", has_text="Filters").press("Enter")
    page.wait_for_selector("select[name=state]", state="visible")
    page.keyboard.press("Escape")
    page.locator("[role=button]", has_text="admin").press(" ")
    page.wait_for_selector("text=Log out", state="visible")


# A window of 1440 at 200 % is one of 720.
@pytest.mark.parametrize("visit", [720], indirect=True)
def test_the_menu_opens_by_keyboard_when_zoomed(visit: Visit) -> None:
    visit.open("/admin/pools/pool/")
    page = visit.page
    page.keyboard.press("Tab")
    assert page.evaluate("document.activeElement.textContent") == "Skip to the content"
    page.keyboard.press("Tab")
    assert page.evaluate("document.activeElement.getAttribute('aria-label')") == "Menu"
    expect(page.locator("#nav-sidebar")).to_be_hidden()
    page.keyboard.press("Enter")
    page.wait_for_selector("#nav-sidebar", state="visible")


@pytest.mark.parametrize("visit", [390], indirect=True)
def test_a_narrow_list_shows_all_that_a_cell_holds(visit: Visit) -> None:
    visit.open("/admin/pools/pool/")
    cut = "cells => cells.filter(c => c.scrollHeight > c.clientHeight + 1).map(c => c.innerText)"
    assert visit.page.locator("#result_list td").evaluate_all(cut) == []


@pytest.mark.parametrize("visit", [390], indirect=True)
def test_a_narrow_head_and_alerts_show_whole_names(visit: Visit) -> None:
    visit.open("/admin/pools/alert/")
    cut = "cells => cells.filter(c => c.scrollWidth > c.clientWidth + 1).map(c => c.innerText)"
    assert visit.page.locator("#result_list .field-title").evaluate_all(cut) == []
    event = Event.objects.filter(type="container.created").values_list("pk", flat=True)[0]
    visit.open(f"/admin/pools/event/{event}/change/")
    heading = visit.page.locator("h1").bounding_box()
    search = visit.page.locator("#cad-search").bounding_box()
    assert heading["x"] + heading["width"] <= search["x"]


def test_a_list_is_whole_on_dark_screens_paper(visit: Visit) -> None:
    page = visit.page
    page.emulate_media(color_scheme="dark", media="print")
    page.set_viewport_size({"width": 718, "height": 1000})
    visit.open("/admin/pools/block/")
    shown = "e => getComputedStyle(e).display"
    assert page.locator("#result_list").evaluate(shown) == "table"
    assert page.locator("#result_list td").nth(1).evaluate(shown) == "table-cell"
    cut = """() => [...document.querySelectorAll('.simplebar-content-wrapper')]
        .some(e => e.querySelector('#result_list') && getComputedStyle(e).overflow != 'visible')"""
    assert not page.evaluate(cut)
    ground = "getComputedStyle(document.documentElement).getPropertyValue('--cad-ground').trim()"
    assert page.evaluate("document.documentElement.classList.contains('dark')")
    assert page.evaluate(ground) == "#fff"


@pytest.mark.parametrize("visit", [390], indirect=True)
def test_a_phone_shows_the_whole_name_of_the_page(visit: Visit) -> None:
    pool = Pool.objects.get(name="premium-ipv4")
    visit.open(f"/admin/pools/pool/{pool.pk}/change/")
    heading = visit.page.get_by_role("heading", level=1)
    assert heading.inner_text().strip() == f"{pool.cluster.name}/{pool.name}"
    cut = "h => [...h.children].some(e => e.scrollWidth > e.clientWidth || e.scrollHeight > e.clientHeight + 2)"
    assert not heading.evaluate(cut)


@pytest.mark.parametrize("visit", [390], indirect=True)
def test_a_tap_on_an_age_shows_the_exact_time(visit: Visit) -> None:
    visit.open("/admin/pools/block/")
    visit.page.get_by_role("button", name="More", exact=True).first.click()
    age = visit.page.locator("#result_list time").first
    text, moment = age.inner_text(), age.get_attribute("title")
    age.click()
    assert age.inner_text() == moment
    age.click()
    assert age.inner_text() == text
