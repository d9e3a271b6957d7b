"""MAC entries in a browser: duplicates are told while somebody types."""

import pytest
from playwright.sync_api import expect

from claims.entries import ippools
from claims.models import Entry, IPPool
from tests.claims import worlds
from tests.e2e.conftest import Visit

pytestmark = pytest.mark.django_db(transaction=True)
A, B = "02:00:00:00:00:0a", "02:00:00:00:00:0b"


def _made() -> tuple[IPPool, Entry]:
    network = worlds.network("cluster_udn_blue", subnets=("10.0.0.0/24", "fd00::/64"))
    ippool = worlds.ippool(network, "blue")
    first = worlds.entry(ippool, A, "10.0.0.40/24", "fd00::40/64", vm="web", namespace="shop")
    worlds.entry(ippool, A, "10.0.0.41/24", vm="a-vm-with-quite-a-long-name", namespace="shop")
    worlds.entry(ippool, B, "10.0.0.1/24")
    worlds.workload(network, "web", A, "10.0.0.40", "fd00::40", namespace="shop")
    ippools.update_conditions(IPPool.objects.get(pk=ippool.pk))
    return ippool, first


def test_duplicates_are_told_while_somebody_types(visit: Visit) -> None:
    ippool, _ = _made()
    visit.open(f"/admin/claims/entry/add/?ippool={ippool.pk}")
    page = visit.page
    page.fill("input[name=mac]", "02-00-00-00-00-0C")
    page.fill("input[name=ips]", "10.0.0.40")
    notice = page.locator("[data-told]")
    notice.get_by_text("10.0.0.40 is a duplicate").wait_for()
    expect(notice.get_by_role("link", name="MAC entry of shop/web in blue")).to_be_visible()
    page.fill("input[name=ips]", "10.0.0.0/24")
    notice.get_by_text("is the address of the network").wait_for()
    page.fill("input[name=ips]", "10.0.0.42")
    notice.locator("p").wait_for(state="detached")
    page.click("button:has-text('Add entry')")
    page.wait_for_url("**/change/")
    assert Entry.objects.get(mac="02:00:00:00:00:0c").ips == ["10.0.0.42/24"]


def test_rows_warn_where_they_stand(visit: Visit) -> None:
    ippool, _ = _made()
    visit.open(f"/admin/claims/ippool/{ippool.pk}/entries/")
    page = visit.page
    page.fill("input[name=new0-mac]", "02:00:00:00:00:0d")
    page.fill("input[name=new0-ips]", "10.0.0.41")
    row = page.locator("tbody", has=page.locator("input[name=new0-mac]"))
    row.get_by_text("10.0.0.41 is a duplicate").wait_for()
    page.click("button:has-text('Save')")
    page.get_by_text("Entries: 1 saved.").wait_for()
    page.wait_for_load_state("networkidle")
    assert Entry.objects.filter(ippool=ippool).count() == 4
