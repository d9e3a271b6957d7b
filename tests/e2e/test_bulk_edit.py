"""Several pools of a filtered list are edited on one page, and the list keeps its filters."""

import pytest

from pools.models import Event, Pool
from tests.e2e.conftest import Visit

pytestmark = pytest.mark.django_db(transaction=True)
LIST = "/admin/pools/pool/?category=pod&q=pool"


def test_preview_confirmation_and_filters(visit: Visit) -> None:
    page = visit.page
    visit.open(LIST)
    for box in page.locator("input.action-select").all()[:2]:
        box.check()
    assert page.locator(".action-counter").inner_text().startswith("2 of ")
    page.select_option("select[name=action]", label="Edit")
    page.click("button[name=index]")
    page.wait_for_url("**/bulk-edit/**")
    content = page.locator("#content")
    content.get_by_label("Description", exact=True).fill("kept while the preview is wrong")
    content.get_by_label("Cooldown", exact=True).fill("soon")
    page.fill("[name=reason]", "new policy")
    content.get_by_role("button", name="Preview").click()
    assert "24 hours" in content.locator("#errors").inner_text()
    assert (
        content.get_by_label("Description", exact=True).input_value()
        == "kept while the preview is wrong"
    )
    content.get_by_label("Cooldown", exact=True).fill("2 days")
    content.get_by_role("button", name="Preview").click()
    content.locator("tbody tr").first.wait_for()
    assert content.locator("tbody tr").count() == 2
    assert "2 days" in content.locator("tbody").inner_text()
    content.get_by_role("button", name="Change all").click()
    page.wait_for_url(f"**{LIST}")
    assert page.locator("text=2 rows were changed.").count() == 1
    changed = Pool.objects.filter(cooldown_seconds=2 * 86400)
    assert (
        list(changed.values_list("description", flat=True))
        == ["kept while the preview is wrong"] * 2
    )
    reasons = Event.objects.filter(type="pool.changed").order_by("-id")[:2]
    assert [event.reason for event in reasons] == ["new policy"] * 2
