"""Forms of MAC entries and claims: what cannot work is refused beside its field, before it is saved."""

import pytest
from playwright.sync_api import expect

from claims.models import Entry, IPAMClaim
from tests.claims import worlds
from tests.e2e.conftest import Visit

pytestmark = pytest.mark.django_db(transaction=True)


def test_two_addresses_of_a_family_are_refused_beside_their_field(visit: Visit) -> None:
    ippool = worlds.ippool(worlds.network(subnets=("10.0.0.0/24", "fd00::/64")))
    visit.open(f"/admin/claims/entry/add/?ippool={ippool.pk}")
    page = visit.page
    page.fill("input[name=mac]", "02:00:00:00:00:0c")
    page.fill("input[name=ips]", "10.0.0.40, 10.0.0.41")
    page.click("button:has-text('Add entry')")
    field = page.locator(".cad-field", has=page.locator("input[name=ips]"))
    field.get_by_text("at most one of each family").first.wait_for()
    error = field.locator(".cad-error")
    assert "2 IPv4 addresses" in error.inner_text()
    assert not Entry.objects.filter(ippool=ippool).exists()
    page.fill("input[name=ips]", "10.0.0.40, fd00::40")
    assert error.count() == 0  # an error of the last try ends when its field is corrected
    page.click("button:has-text('Add entry')")
    page.wait_for_url("**/change/")
    assert Entry.objects.get(ippool=ippool).ips == ["10.0.0.40/24", "fd00::40/64"]


def test_a_network_that_cannot_hold_claims_is_refused(visit: Visit) -> None:
    layer3 = worlds.network("legacy", subnets=(), topology="layer3", lifecycle="")
    fitting = worlds.network("cluster_udn_blue")
    visit.open(f"/admin/claims/ipamclaim/add/?network={layer3.pk}&namespace=shop&vm=web")
    page = visit.page
    page.get_by_role("button", name="Request addresses").click()
    field = page.locator(".cad-field", has=page.locator("[name=network]"))
    error = field.locator(".cad-error")
    error.wait_for()
    assert "he network legacy cannot hold claims: Its topology is layer3" in error.inner_text()
    assert not IPAMClaim.objects.filter(network=layer3).exists()
    visit.open(f"/admin/claims/ipamclaim/add/?network={fitting.pk}&namespace=shop&vm=web")
    page.get_by_role("button", name="Request addresses").click()
    page.wait_for_url("**/change/")
    expect(page.get_by_text("Apply the claim's manifest in the cluster")).to_be_visible()
