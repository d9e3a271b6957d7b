"""The search field of each page and the tree of the address plan, in a browser."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from tests.e2e.conftest import Visit

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.mark.parametrize("visit", [1440, 390], indirect=True)
@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_a_slash_goes_to_the_search_field(visit: Visit, scheme: str) -> None:
    page = visit.page
    page.emulate_media(color_scheme=scheme)
    visit.open("/admin/pools/pool/")
    assert not visit.scrolls_sideways()
    page.keyboard.press("/")
    assert page.evaluate("document.activeElement.id") == "cad-search"
    page.keyboard.type("yellow/")
    assert page.input_value("#cad-search") == "yellow/"
    page.keyboard.press("Backspace")
    page.keyboard.press("Enter")
    page.wait_for_url("**/admin/find/?q=yellow")
    page.get_by_role("link", name="demo-frankfurt/yellow-pool").first.wait_for()


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
    free = page.locator("tr", has_text="10.99.1.0/24")
    assert free.bounding_box()["height"] < 60  # one line: a narrow screen shows many free parts
    free.get_by_role("link", name="Add pool").click()
    page.wait_for_load_state()
    assert page.input_value("#id_cidrs-0-cidr") == "10.99.1.0/24"
