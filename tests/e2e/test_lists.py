"""The menus of a list: columns by keyboard, and a filter under a name."""

from typing import Any

import pytest
from playwright.sync_api import expect

from tests.e2e.conftest import Visit

pytestmark = pytest.mark.django_db(transaction=True)


def headings(page: Any) -> list[str]:
    texts = page.locator("#result_list thead th:visible").all_inner_texts()
    return [text.strip().lower() for text in texts if text.strip()]


def test_columns_and_a_filter_are_kept(visit: Visit) -> None:
    page = visit.page
    visit.open("/admin/pools/block/?state=held")
    page.locator("summary", has_text="Columns").press("Enter")
    for title in ("Until", "Cluster", "Organization", "Environment"):
        page.get_by_label(title, exact=True).uncheck()
    page.get_by_label("Holder UID", exact=True).check()
    up = page.get_by_role("button", name="Move State up")
    up.focus()
    for _ in range(2):
        page.keyboard.press("Enter")  # the button keeps the focus
    page.get_by_role("button", name="Apply", exact=True).last.press("Enter")
    page.wait_for_load_state("networkidle")
    assert "state=held" in page.url
    expected = ["state", "address or block", "holder", "since", "pool", "holder uid"]
    assert headings(page) == expected

    page.locator("summary", has_text="Saved filters").click()
    page.fill("#saved-filter-name", "Held blocks")
    page.get_by_label("Shared with everybody who sees this list").check()
    page.get_by_role("button", name="Save filter").click()
    page.wait_for_load_state("networkidle")
    visit.open("/admin/pools/block/")
    page.locator("summary", has_text="Saved filters").click()
    page.get_by_role("link", name="Held blocks", exact=True).click()
    page.wait_for_load_state("networkidle")
    assert page.url.endswith("?state=held")
    assert headings(page) == expected

    page.locator("summary", has_text="Columns").click()
    page.keyboard.press("Escape")
    expect(page.get_by_role("button", name="Default columns")).to_be_hidden()
    page.locator("summary", has_text="Columns").click()
    page.get_by_role("button", name="Default columns").click()
    page.wait_for_load_state("networkidle")
    assert headings(page)[0] == "address or block"
