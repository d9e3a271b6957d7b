"""Taking blocks back from a list: the reason is kept, and so are the list's filters."""

import pytest

from pools.models import Event
from tests.e2e.conftest import Visit

pytestmark = pytest.mark.django_db(transaction=True)


def _release(visit: Visit, reason: str, *, by_force: bool) -> None:
    """The first two blocks of a filtered list."""
    page = visit.page
    visit.open("/admin/pools/block/?state=held&q=lab-vm")
    for box in page.locator("input.action-select").all()[:2]:
        box.check()
    page.select_option("select[name=action]", label="Release")
    page.click("button[name=index]")
    page.wait_for_url("**/release/**")
    page.fill("[name=reason]", reason)
    if by_force:
        page.check("[name=force]")
    page.locator("#content").get_by_role("button", name="Release").click()


@pytest.mark.parametrize(("by_force", "kind"), [(False, "released"), (True, "reclaimed")])
def test_the_reason_and_the_filters_are_kept(visit: Visit, by_force: bool, kind: str) -> None:
    _release(visit, "moved to the new lab", by_force=by_force)
    visit.page.wait_for_url("**/admin/pools/block/?state=held&q=lab-vm")
    assert visit.page.locator("text=was released from lab-vm").count() == 2
    events = Event.objects.order_by("-id")[:2]
    assert [(event.type, event.reason) for event in events] == [(kind, "moved to the new lab")] * 2
    visit.open(f"/admin/pools/event/{events[0].pk}/change/")
    assert "moved to the new lab" in visit.page.locator("#content").inner_text()


def test_cancel_goes_back_to_the_filtered_list(visit: Visit) -> None:
    page = visit.page
    visit.open("/admin/pools/block/?state=held&q=lab-vm")
    page.locator("input.action-select").first.check()
    page.select_option("select[name=action]", label="Release")
    page.click("button[name=index]")
    page.locator("#content").get_by_role("link", name="Cancel").click()
    page.wait_for_url("**/admin/pools/block/?state=held&q=lab-vm")
