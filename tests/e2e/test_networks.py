"""Networks in a browser: the pages fit, and a network is made with what never changes told first."""

import pytest
from playwright.sync_api import expect

from claims.core.networks.udn import UDN
from claims.models import NAD, Network
from claims.networks import networks
from tests.claims import worlds
from tests.e2e.conftest import Visit

pytestmark = pytest.mark.django_db(transaction=True)


def _made() -> Network:
    expected = UDN(
        "cluster_udn_blue",
        "cudn",
        "blue",
        topology="layer2",
        role="primary",
        ipam_mode="Enabled",
        lifecycle="Persistent",
        subnets=("10.0.0.0/24", "fd00::/64"),
        reserved_subnets=("10.0.0.128/26",),
        infrastructure_subnets=("10.0.0.0/29",),
    )
    created = networks.create_network(worlds.cluster(), expected, author=worlds.BY)
    NAD.objects.create(network=created, namespace="shop", name="blue", allow_persistent_ips=True)
    worlds.entry(worlds.ippool(created), "00:1a:4b:00:00:01", "10.0.0.40/24", vm="web")
    return created


@pytest.mark.parametrize("visit", [1440, 390], indirect=True)
def test_every_page_of_networks_fits(visit: Visit) -> None:
    row = f"/admin/claims/network/{_made().pk}"
    networks.create_network(
        worlds.cluster(),
        UDN("cluster_udn_red", "cudn", "red", subnets=("2001:db8:1234:5678::/64",)),
        author=worlds.BY,
    )
    for path in (
        "/admin/claims/network/", f"{row}/change/", f"{row}/edit/", f"{row}/delete/",
        "/admin/claims/network/add/",
    ):  # fmt: skip
        visit.open(path)
        assert visit.complaints == [], path
        assert not visit.scrolls_sideways(), path


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
    page.get_by_text("Settings that cannot be changed later").wait_for()
    page.click("button:has-text('Back to the form')")
    page.get_by_role("button", name="Preview").wait_for()
    assert page.input_value("textarea[name=subnets]") == "10.0.0.0/24"
    page.click("button:has-text('Preview')")
    page.get_by_role("button", name="Create").wait_for()
    page.click("button:has-text('Create')")
    page.wait_for_url("**/change/")
    assert Network.objects.filter(name="cluster_udn_green").count() == 1
