"""Forms in a browser: who saved meanwhile, what overlaps, where an error and a preview are, what is asked first."""

from typing import Any

import pytest
from django.contrib.auth import get_user_model
from playwright.sync_api import expect

from claims.models import Entry, VMImport, Wave
from pools.models import AddressSpace, BrowserSession, Cluster, Container, Pool
from tests import factories
from tests.claims import worlds
from tests.claims.imports import drafts
from tests.e2e.conftest import PASSWORD, Visit

pytestmark = pytest.mark.django_db(transaction=True)
MAC = "02:00:00:00:00:0a"


def _focused(page: Any) -> str:
    """Return the id of the element that has the focus, if it is in view."""
    return str(
        page.evaluate(
            """() => {
                const box = document.activeElement.getBoundingClientRect();
                const inView = box.top >= 0 && box.top < innerHeight;
                return inView ? document.activeElement.id : "out of view";
            }"""
        )
    )


def _entry() -> Entry:
    network = worlds.network("cluster_udn_lost", subnets=("10.99.0.0/24",), of=factories.cluster())
    return worlds.entry(
        worlds.ippool(network, "lost"), MAC, "10.99.0.7/24", vm="web", namespace="shop"
    )


def test_two_tabs_change_a_mac_entry(visit: Visit) -> None:
    entry = _entry()
    path = f"/admin/claims/entry/{entry.pk}/change/"
    visit.open(path)
    first, second = visit.page, visit.page.context.new_page()
    second.goto(visit.url + path)
    first.fill("input[name=note]", "CHG-4711")
    first.get_by_role("button", name="Save").click()
    first.get_by_text("has 10.99.0.7/24").wait_for()
    second.fill("input[name=vm]", "db")
    second.get_by_role("button", name="Save").click()
    conflicts = second.locator("#conflicts")
    conflicts.get_by_text("admin changed this MAC entry").wait_for()
    assert conflicts.locator("tbody").inner_text().split("\t")[2:4] == ["CHG-4711", "admin"]
    assert _focused(second) == "conflicts"
    assert second.input_value("input[name=vm]") == "db"
    entry.refresh_from_db()
    assert (entry.vm, entry.note) == ("web", "CHG-4711")
    second.fill("input[name=note]", "CHG-4711 and more")
    second.get_by_role("button", name="Save anyway").click()
    second.get_by_text("has 10.99.0.7/24").wait_for()
    entry.refresh_from_db()
    assert (entry.vm, entry.note) == ("db", "CHG-4711 and more")


def test_reload_shows_what_was_saved(visit: Visit) -> None:
    entry = _entry()
    visit.open(f"/admin/claims/entry/{entry.pk}/change/")
    Entry.objects.filter(pk=entry.pk).update(note="by a script")
    visit.page.fill("input[name=vm]", "db")
    visit.page.get_by_role("button", name="Save").click()
    visit.page.get_by_role("link", name="Reload").click()
    visit.page.wait_for_function("document.querySelector('[name=note]').value === 'by a script'")
    assert visit.page.input_value("input[name=vm]") == "web"


def test_free_is_free_and_an_overlap_is_told_first(visit: Visit) -> None:
    network = worlds.network("cluster_udn_plan", subnets=("10.98.0.0/20",), of=factories.cluster())
    page = visit.page
    visit.open("/admin/address-plan/?q=10.98.1.21")
    page.get_by_role("link", name="cluster_udn_plan").first.wait_for()
    assert not page.locator("tr.cad-plan-free").count()
    visit.open("/admin/address-plan/?q=10.98.0.0/16")
    row = page.locator("tr", has_text="cluster_udn_plan")
    assert "isolated VM network" in row.inner_text()
    page.goto(f"{visit.url}/admin/pools/pool/add/?cluster={network.cluster_id}&cidr=10.98.0.0/20")
    page.fill("input[name=name]", "twice")
    page.fill("input[name=mask_size_v4]", "24")
    page.get_by_role("button", name="Preview capacity").click()
    page.locator("#overlaps").get_by_text("cluster_udn_plan").wait_for()
    page.get_by_role("button", name="Add the pool").click()
    page.locator("#overlaps").get_by_text("cluster_udn_plan").wait_for()
    assert not Pool.objects.filter(name="twice").exists()
    page.get_by_label("Save although it overlaps").check()
    page.get_by_role("button", name="Add the pool").click()
    page.get_by_text("Pool twice was added").wait_for()
    visit.open("/admin/address-plan/?q=10.98.0.0/16")
    page.get_by_role("link", name="▲ overlap", exact=True).first.wait_for()


@pytest.mark.parametrize("visit", [1440, 390], indirect=True)
def test_a_preview_and_an_error_are_in_view(visit: Visit) -> None:
    cluster = Cluster.objects.order_by("pk")[0]
    page = visit.page
    visit.open(f"/admin/pools/pool/add/?cluster={cluster.pk}&cidr=10.97.0.0/16")
    page.get_by_role("button", name="Preview capacity").click()
    page.locator("#errors").get_by_role("link", name="Name").wait_for()
    page.wait_for_function("document.activeElement.id === 'id_name'")
    assert _focused(page) == "id_name"
    page.fill("input[name=name]", "seen")
    page.fill("input[name=mask_size_v4]", "24")
    page.get_by_role("button", name="Preview capacity").click()
    page.wait_for_function("document.activeElement.id === 'preview'")
    assert _focused(page) == "preview"
    visit.open("/admin/pools/cluster/add/")
    page.fill("input[name=name]", "new")
    page.fill("input[name=cluster_prefix]", "2001:db8:9700::/48")
    page.get_by_role("button", name="Preview subnets").click()
    page.wait_for_function("document.activeElement.id === 'preview'")
    assert _focused(page) == "preview"


def test_a_new_wave_needs_a_name(visit: Visit) -> None:
    network = worlds.network("cluster_udn_wave", subnets=("10.96.0.0/24",), of=factories.cluster())
    user = get_user_model().objects.get(username="admin")
    row = drafts.row("web-6", "02:aa:aa:aa:aa:66", "10.96.0.66")
    written: VMImport = drafts.draft(network, row, user=user, commit_wanted=True)
    Wave.objects.all().delete()
    visit.open(f"/admin/pools/import/{written.pk}/change/")
    visit.page.get_by_role("button", name="Add the VMs to the wave").click()
    visit.page.get_by_text("Enter a name").wait_for()


def test_what_was_typed_survives_an_expired_session(visit: Visit) -> None:
    visit.open("/admin/pools/pool/add/?cluster=1")
    page = visit.page
    page.fill("input[name=name]", "typed")
    page.get_by_role("button", name="Add another CIDR").click()
    page.locator("[name$=-cidr]").nth(1).fill("10.95.0.0/16")
    BrowserSession.objects.all().delete()
    page.get_by_role("button", name="Add the pool").click()
    page.get_by_text("Session expired; sign in to continue").wait_for()
    page.fill("input[name=username]", "admin")
    page.fill("input[name=password]", PASSWORD)
    page.get_by_role("button", name="Log in").click()
    page.get_by_text("What you typed is in the form again").wait_for()
    assert page.input_value("input[name=name]") == "typed"
    assert page.locator("[name$=-cidr]").nth(1).input_value() == "10.95.0.0/16"
    page.reload()
    assert page.input_value("input[name=name]") == "", "kept only for the sign-in"


def test_what_was_typed_in_a_part_of_a_page_survives_an_expired_session(visit: Visit) -> None:
    """The details of a pool and a note are sent to pages of their own."""
    pool = factories.pool("192.0.2.0/29", category="ipv4", within=factories.cluster())
    page = visit.page
    visit.open(f"/admin/pools/pool/{pool.pk}/change/")
    page.get_by_role("link", name="Edit details").click()
    page.fill("#attributes [name=owner]", "net-team")
    BrowserSession.objects.all().delete()
    page.locator("#attributes").get_by_role("button", name="Save").click()
    page.get_by_text("Session expired; sign in to continue").wait_for()
    page.fill("input[name=username]", "admin")
    page.fill("input[name=password]", PASSWORD)
    page.get_by_role("button", name="Log in").click()
    page.get_by_text("What you typed is in the form again").wait_for()
    expect(page.locator("[name=owner]")).to_have_value("net-team")


def test_an_expired_session_keeps_no_secret_and_no_lost_update(visit: Visit) -> None:
    entry = _entry()
    visit.open(f"/admin/claims/entry/{entry.pk}/change/")
    page = visit.page
    page.fill("input[name=vm]", "db")
    Entry.objects.filter(pk=entry.pk).update(note="by a script")
    BrowserSession.objects.all().delete()
    page.get_by_role("button", name="Save").click()
    page.fill("input[name=username]", "admin")
    page.fill("input[name=password]", PASSWORD)
    page.get_by_role("button", name="Log in").click()
    page.get_by_text("What you typed is in the form again").wait_for()
    page.get_by_role("button", name="Save").click()
    page.locator("#conflicts").get_by_text("by a script").wait_for()
    cluster = Cluster.objects.order_by("pk")[0]
    visit.open(f"/admin/pools/cluster/{cluster.pk}/connect/")
    page.fill("[name=text]", "apiVersion: v1")
    page.goto(visit.url + "/admin/pools/pool/")
    assert "apiVersion" not in str(page.evaluate("JSON.stringify(sessionStorage)"))


def test_the_next_free_address_and_an_error_that_ends(visit: Visit) -> None:
    entry = _entry()
    page = visit.page
    visit.open(f"/admin/claims/entry/add/?ippool={entry.ippool_id}")
    page.get_by_role("button", name="Add entry").click()
    page.locator("#errors").get_by_role("link", name="MAC address").wait_for()
    page.fill("input[name=mac]", MAC)
    assert not page.locator("#errors").get_by_role("link", name="MAC address").count()
    page.get_by_role("button", name="Next free address").click()
    page.wait_for_function("document.querySelector('[name=ips]').value.endsWith('/24')")
    assert not page.locator("#errors").count()


def test_an_overlap_is_named_while_the_cidr_is_typed_and_a_free_one_is_filled_in(
    visit: Visit,
) -> None:
    network = worlds.network("cluster_udn_typed", subnets=("10.96.0.0/16",), of=factories.cluster())
    space = AddressSpace.objects.get(cluster=network.cluster, name="")
    Container.objects.create(cidr="10.96.0.0/15", name="company", space=space)
    page = visit.page
    visit.open(f"/admin/pools/pool/add/?cluster={network.cluster_id}")
    page.fill("input[name=name]", "typed")
    page.fill("input[name=mask_size_v4]", "24")
    page.fill("input[name=cidrs-0-cidr]", "10.96.0.0/20")
    page.locator("#overlaps").get_by_role("link", name="cluster_udn_typed").wait_for()
    page.fill("input[name=cidrs-0-cidr]", "10.95.0.0/20")
    page.locator("#overlaps").wait_for(state="detached")
    page.get_by_role("button", name="Add another CIDR").click()
    page.fill("input[name=cidrs-2-cidr]", "10.96.16.0/20")
    page.get_by_label("Save although it overlaps").check()
    first = page.locator(".cad-cidr").first
    first.get_by_role("button", name="Find free").click()
    first.get_by_role("button", name="10.97.0.0/20").click()
    assert page.input_value("input[name=cidrs-0-cidr]") == "10.97.0.0/20"
    last = page.locator(".cad-cidr").last
    last.get_by_label("Prefix length").fill("17")
    last.get_by_role("button", name="Find free").click()
    last.get_by_role("button", name="10.97.128.0/17").wait_for()
    assert page.get_by_label("Save although it overlaps").is_checked()
    page.get_by_role("button", name="Add the pool").click()
    page.get_by_text("Pool typed was added").wait_for()
    cidrs = Pool.objects.get(name="typed").cidrs.order_by("position")
    assert [str(row.cidr) for row in cidrs] == ["10.97.0.0/20", "10.96.16.0/20"]


def test_the_next_free_address_of_a_pool(visit: Visit) -> None:
    pool = factories.pool("192.0.2.0/29", category="ipv4", within=factories.cluster())
    page = visit.page
    visit.open(f"/admin/pools/pool/{pool.pk}/allocate/")
    page.get_by_role("button", name="Next free address").click()
    page.wait_for_function("document.querySelector('[name=exact]').value === '192.0.2.1'")
    page.fill("input[name=id]", "web")
    page.get_by_role("button", name="Allocate", exact=True).click()
    page.get_by_text("192.0.2.1 was allocated to web").wait_for()
    visit.open(f"/admin/pools/pool/{pool.pk}/reserve/")
    page.get_by_role("button", name="Next free address").click()
    page.wait_for_function("document.querySelector('[name=range]').value === '192.0.2.2'")
    page.keyboard.type("-192.0.2.3")
    page.fill("input[name=reason]", "printers")
    page.get_by_role("button", name="Reserve").click()
    page.locator("#preview").wait_for()
    page.get_by_role("button", name="Reserve").click()
    page.get_by_text("192.0.2.2-192.0.2.3 is reserved").wait_for()
