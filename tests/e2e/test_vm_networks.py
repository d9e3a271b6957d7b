"""VM networks in a browser: duplicates are flagged, VM owners see their own and what to do next."""

from typing import Any

import pytest
from django.contrib.auth.models import User
from playwright.sync_api import expect

from claims.access import memberships
from claims.entries import ippools
from claims.models import NAD, Entry, IPPool, Network
from tests.claims import worlds
from tests.e2e.conftest import Visit

pytestmark = pytest.mark.django_db(transaction=True)
A, B = "02:00:00:00:00:0a", "02:00:00:00:00:0b"


@pytest.fixture
def blue(visit: Visit) -> Network:
    """Two VMs of `shop`, one of which has the MAC of a VM of `bank`."""
    network = worlds.network("cluster_udn_blue")
    for namespace in ("shop", "bank"):
        NAD.objects.create(
            network=network, namespace=namespace, name="blue", allow_persistent_ips=True
        )
    ippool = worlds.ippool(network, "blue")
    worlds.entry(ippool, A, "10.0.0.40/24", vm="web", namespace="shop")
    worlds.entry(ippool, B, "10.0.0.41/24", vm="db", namespace="shop")
    worlds.entry(ippool, A, "10.0.0.50/24", vm="ledger", namespace="bank")
    worlds.claim(network, "web", "10.0.0.40/24", namespace="shop", mac=A)
    ippools.update_conditions(IPPool.objects.get(pk=ippool.pk))
    return network


@pytest.fixture
def owner(visit: Visit, blue: Network) -> Visit:
    """The same browser as the VM owner of `shop`."""
    user = User.objects.create_user("vera", password="a password of an owner")
    memberships.create(blue.cluster, ["shop"], author=worlds.BY, user=user)
    page = visit.page
    page.context.clear_cookies()
    visit.open("/admin/login/")
    page.fill("input[name=username]", "vera")
    page.fill("input[name=password]", "a password of an owner")
    page.press("input[name=password]", "Enter")
    page.wait_for_url("**/admin/")
    page.wait_for_load_state("networkidle")
    return visit


def _card(page: Any, title: str) -> Any:
    return page.locator("section.cad-card", has=page.get_by_role("heading", name=title))


def test_the_list_flags_duplicates_and_filters_by_them(visit: Visit, blue: Network) -> None:
    visit.open(f"/admin/claims/entry/?network={blue.pk}")
    page = visit.page
    rows = page.locator("#result_list tbody tr")
    assert rows.count() == 3
    web = rows.filter(has=page.get_by_role("link", name="web", exact=True))
    web.get_by_text("1 conflict").click()
    expect(web.get_by_text("duplicate MAC")).to_be_visible()
    expect(web.get_by_role("link", name="MAC entry of bank/ledger in blue")).to_be_visible()
    assert not rows.filter(has_text=B).get_by_text("conflict").count()
    page.locator("[role=button]", has_text="Filters").press("Enter")
    page.wait_for_selector("select[name=duplicate]", state="visible")
    page.select_option("select[name=duplicate]", "mac")
    page.get_by_role("button", name="Apply").click()
    page.wait_for_url("**duplicate=mac**")
    assert rows.count() == 2
    assert not rows.filter(has_text=B).count()


def test_an_owner_starts_with_what_to_do(owner: Visit) -> None:
    page = owner.page
    expect(page.get_by_role("link", name="Request an address")).to_be_visible()
    needs = _card(page, "Claims that wait or have problems")
    expect(needs.get_by_role("link", name="web.cluster_udn_blue")).to_be_visible()
    expect(needs.get_by_text("Change the MAC or the address")).to_be_visible()
    entries = _card(page, "Your MAC entries")
    assert entries.locator("tbody tr").count() == 2
    entries.get_by_text("1 conflict").click()
    expect(entries.get_by_text("another owner")).to_be_visible()
    content = page.content()
    assert "ledger" not in content
    assert "bank" not in content
    manifest = _card(page, "Manifest of shop/db").locator("pre")
    assert f"macAddress: {B}" in manifest.inner_text()
    assert not owner.scrolls_sideways()


def test_an_owner_meets_nothing_of_others(owner: Visit) -> None:
    own_entry, foreign = (Entry.objects.get(vm=vm).pk for vm in ("web", "ledger"))
    page = owner.page
    owner.open(f"/admin/claims/entry/{own_entry}/change/")
    expect(page.get_by_role("heading", name="VM manifest")).to_be_visible()
    assert "also another owner" in page.locator("#content").inner_text()
    owner.expected.add(404)
    assert page.goto(f"{owner.url}/admin/claims/entry/{foreign}/change/").status == 404
    owner.open("/admin/find/?q=shop/web")
    expect(_card(page, "MAC entries").get_by_text(A)).to_be_visible()
    owner.open("/admin/find/?q=bank/ledger")
    expect(page.get_by_text("No results for")).to_be_visible()
    owner.open("/admin/claims/entry/")
    assert page.locator("#result_list tbody tr").count() == 2
    assert "ledger" not in page.content()


def test_an_owner_asks_for_an_address_and_is_warned_while_typing(owner: Visit) -> None:
    page = owner.page
    page.get_by_role("link", name="Request an address").click()
    page.fill("input[name=mac]", "02-00-00-00-00-0C")
    page.fill("input[name=ips]", "10.0.0.50")
    notice = page.locator("[data-told]")
    notice.get_by_text("10.0.0.50 is a duplicate: also another owner").wait_for()
    page.fill("input[name=ips]", "10.0.0.60")
    page.fill("input[name=vm]", "new")
    page.fill("input[name=namespace]", "shop")
    notice.locator("p").wait_for(state="detached")
    page.get_by_role("button", name="Request address").click()
    page.wait_for_url("**/change/")
    assert "macAddress: 02:00:00:00:00:0c" in page.locator("#manifest pre").inner_text()


def test_a_manifest_is_copied(owner: Visit) -> None:
    page = owner.page
    page.context.grant_permissions(["clipboard-read", "clipboard-write"])
    manifest = page.locator("#manifest")
    manifest.get_by_role("button", name="Copy").click()
    manifest.get_by_role("button", name="Copied").wait_for()
    copied = page.evaluate("navigator.clipboard.readText()")
    assert copied == manifest.locator("pre").text_content()
    assert copied.startswith("apiVersion: kubevirt.io/v1\nkind: VirtualMachine\n")


def test_without_a_clipboard_the_manifest_is_selected(owner: Visit) -> None:
    page = owner.page
    page.evaluate("() => { navigator.clipboard.writeText = () => Promise.reject('refused') }")
    page.evaluate("() => { document.execCommand = () => false }")
    page.locator("#manifest").get_by_role("button", name="Copy").click()
    page.get_by_role("button", name="Selected: press Ctrl+C").wait_for()
    assert page.evaluate("getSelection().toString()").startswith("apiVersion: kubevirt.io/v1")
