"""The search field of each page and the tree of the address plan, in a browser."""

import pytest
from playwright.sync_api import expect

from tests.e2e.conftest import Visit

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.mark.parametrize("visit", [1440, 390], indirect=True)
@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_a_slash_goes_to_the_search_of_the_list(visit: Visit, scheme: str) -> None:
    page = visit.page
    page.emulate_media(color_scheme=scheme)
    visit.open("/admin/pools/pool/")
    assert not visit.scrolls_sideways()
    page.keyboard.press("/")
    assert page.evaluate("document.activeElement.id") == "searchbar"
    page.keyboard.type("yellow/")
    assert page.input_value("#searchbar") == "yellow/"
    page.keyboard.press("Backspace")
    page.keyboard.press("Enter")
    page.wait_for_url("**/admin/pools/pool/?q=yellow")


def test_a_slash_opens_find_on_a_page_without_a_list(visit: Visit) -> None:
    visit.open("/admin/")
    visit.page.keyboard.press("/")
    visit.page.wait_for_url("**/admin/find/")


@pytest.mark.parametrize("visit", [1440, 390], indirect=True)
def test_ctrl_k_opens_the_palette_from_anywhere(visit: Visit) -> None:
    page = visit.page
    visit.open("/admin/pools/pool/")
    page.locator("#searchbar").focus()
    page.keyboard.press("Control+k")
    page.locator("#search-input-command:focus").wait_for()
    page.keyboard.type("yellow-pool")
    result = page.locator("#command-results-list a", has_text="demo-frankfurt/yellow-pool")
    result.first.wait_for()
    icons = page.locator("#command-results-list .material-symbols-outlined")
    assert set(icons.evaluate_all("icons => icons.map(icon => icon.ariaHidden)")) == {"true"}
    assert not visit.scrolls_sideways()
    page.keyboard.press("Enter")  # the first result
    page.wait_for_url("**/allocate/")
    page.keyboard.press("Control+k")
    recent = page.locator("#command-history")
    recent.get_by_text("Allocate from yellow-pool").wait_for()
    page.keyboard.press("Escape")
    page.locator("#cad-palette").wait_for(state="hidden")


def test_an_ended_session_is_said_by_the_palette_and_by_live(visit: Visit) -> None:
    page = visit.page
    visit.open("/admin/pools/pool/?q=yellow")
    live = page.locator("#cad-live")
    expect(live).to_have_attribute("aria-pressed", "true")
    page.context.clear_cookies()
    expect(live).to_have_attribute("aria-pressed", "false", timeout=60_000)
    page.keyboard.press("Control+k")
    page.locator("#search-input-command:focus").wait_for()
    page.keyboard.type("yellow-pool")
    page.locator("#cad-palette").get_by_role("link", name="Session expired; sign in").click()
    page.wait_for_url("**/admin/login/?next=/admin/pools/pool/**")


def test_levels_of_the_plan_open_and_close_in_place(visit: Visit) -> None:
    page = visit.page
    visit.open("/admin/address-plan/")
    page.get_by_label("Open 10.0.0.0/8", exact=True).click()
    page.get_by_label("Open 10.32.0.0/11", exact=True).click()
    page.get_by_role("link", name="demo-frankfurt/blue-pool").wait_for()
    free = page.locator("tr", has_text="10.48.0.0/15")
    free.get_by_role("link", name="Add pool").wait_for()
    page.get_by_label("Open 10.0.0.0/8", exact=True).click()
    page.get_by_role("link", name="demo-frankfurt/blue-pool").wait_for(state="detached")
    assert page.url.endswith("/admin/address-plan/")


@pytest.mark.parametrize("visit", [390], indirect=True)
def test_a_free_part_becomes_a_pool(visit: Visit) -> None:
    page = visit.page
    visit.open("/admin/address-plan/?parent=10.99.0.0/16")
    assert not visit.scrolls_sideways()
    free = page.locator(".cad-plan tr", has_text="10.99.1.0/24")
    assert free.bounding_box()["height"] < 60  # one line: a narrow screen shows many free parts
    free.get_by_role("link", name="Add pool").click()
    page.wait_for_load_state()
    assert page.input_value("#id_cidrs-0-cidr") == "10.99.1.0/24"
