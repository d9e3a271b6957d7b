"""Networks in a browser: a network is made with what never changes told first."""

import pytest
from playwright.sync_api import expect

from claims.models import Network
from tests.claims import worlds
from tests.e2e.conftest import Visit

pytestmark = pytest.mark.django_db(transaction=True)


def test_fields_of_the_other_kind_are_hidden_and_rare_ones_are_folded(visit: Visit) -> None:
    visit.open("/admin/claims/network/add/")
    page = visit.page
    shown = {kind: (kind == "udn", kind == "cudn") for kind in ("udn", "cudn")}
    for kind, (namespace, namespaces) in shown.items():
        page.select_option("select[name=kind]", value=kind)
        expect(page.locator("[name=namespace]"), kind).to_be_visible(visible=namespace)
        expect(page.locator("[name=namespaces]"), kind).to_be_visible(visible=namespaces)
    expect(page.locator("[name=mtu]")).to_be_hidden()
    page.locator("summary", has_text="Advanced").click()
    expect(page.locator("[name=mtu]")).to_be_visible()


def test_a_network_is_made(visit: Visit) -> None:
    worlds.cluster()
    visit.open("/admin/claims/network/add/")
    page = visit.page
    page.select_option("select[name=cluster]", label="prod")
    page.fill("input[name=object_name]", "green")
    page.fill("textarea[name=namespaces]", "shop")
    page.fill("textarea[name=subnets]", "10.0.0.1/24")
    page.click("button:has-text('Preview')")
    page.get_by_text("Host bits are set; did you mean 10.0.0.0/24?", exact=True).wait_for()
    page.fill("textarea[name=subnets]", "10.0.0.0/24")
    page.click("button:has-text('Preview')")
    told = page.locator("section", has_text="Settings that cannot be changed later")
    told.get_by_text("10.0.0.0/24").first.wait_for()
    told.get_by_text("Persistent").wait_for()
    assert not Network.objects.filter(name="cluster_udn_green").exists()
    page.click("button:has-text('Back to the form')")
    page.get_by_role("button", name="Preview").wait_for()
    assert page.input_value("textarea[name=subnets]") == "10.0.0.0/24"
    page.click("button:has-text('Preview')")
    page.get_by_role("button", name="Create").wait_for()
    page.click("button:has-text('Create')")
    page.wait_for_url("**/change/")
    assert Network.objects.filter(name="cluster_udn_green").count() == 1
