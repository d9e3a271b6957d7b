"""The page of an object: a head that stays, tabs with addresses, details edited in place, copied addresses."""

from typing import Any

import pytest
from django.urls import reverse
from playwright.sync_api import expect

from claims.models import Entry, Network
from pools.models import Block, Cluster, Pool
from pools.register.demo import demo
from tests import factories
from tests.e2e.conftest import Visit
from tests.e2e.strict import Watched

pytestmark = pytest.mark.django_db(transaction=True)


def _pool(name: str) -> Pool:
    return Pool.objects.get(cluster__name=demo.FRANKFURT, name=name)


def _path(row: Any) -> str:
    return reverse(f"admin:{row._meta.label_lower.replace('.', '_')}_change", args=[row.pk])


def _tabs(visit: Visit) -> list[str]:
    return [text.strip() for text in visit.page.locator("#tabs-items a").all_inner_texts()]


def test_the_page_of_a_pool_fits_a_screen(visit: Visit) -> None:
    for name in ("green-pool", "nodes", "vm-lab"):
        visit.open(_path(_pool(name)))
        summary = visit.page.locator("#general .cad-card").first.inner_text()
        for figure in ("Allocated", "In cooldown", "Reserved", "Free", "Forecast"):
            assert figure in summary
        assert visit.page.locator("#general .cad-table .cad-bar").count()
        assert visit.page.evaluate("document.documentElement.scrollHeight") <= 900, name


def test_a_tab_has_an_address_and_the_head_stays(visit: Visit) -> None:
    page = visit.page
    visit.open(f"{_path(_pool('nodes'))}#map")
    expect(page.locator("#map")).to_be_visible()
    expect(page.locator("#general")).to_be_hidden()
    expect(page.locator("#tabs-items [aria-current]")).to_have_text("Map")
    page.mouse.wheel(0, 2000)
    page.wait_for_function("scrollY > 100")
    assert page.locator(".cad-object-head .cad-title").bounding_box()["y"] >= 0
    page.get_by_role("link", name="Events", exact=True).last.click()
    expect(page.locator("#events")).to_be_visible()
    assert page.url.endswith("#events")
    page.go_back()
    page.locator("#map").wait_for()


def test_a_link_to_something_inside_a_tab_opens_it(visit: Visit) -> None:
    pool = _pool("green-pool")
    visit.open(_path(pool))
    visit.page.get_by_role("link", name="Over time").last.click()
    visit.page.locator("#over-time").wait_for()
    visit.open(f"{_path(_pool('yellow-pool'))}#journal")
    expect(visit.page.locator("#general")).to_be_visible()


def test_empty_tabs_are_not_shown(visit: Visit) -> None:
    pool = _pool("green-pool")
    visit.open(_path(pool))
    assert _tabs(visit) == ["Summary", "Map", "Blocks", "Over time", "Events", "YAML and API"]
    visit.open(_path(factories.pool("10.97.0.0/24")))
    assert _tabs(visit) == ["Summary", "Map", "Events", "YAML and API"]


def test_without_scripts_all_parts_are_shown(visit: Visit, browser: Watched) -> None:
    context = browser.new_context(java_script_enabled=False)
    context.add_cookies(visit.page.context.cookies())
    page = context.new_page()
    page.goto(visit.url + _path(_pool("green-pool")))
    for name in ("general", "map", "blocks", "events", "yaml"):
        expect(page.locator(f"#{name}"), name).to_be_visible()
    page.locator(".cad-object-head summary").click()
    expect(page.get_by_role("link", name="Delete", exact=True)).to_be_visible()
    page.get_by_role("link", name="Edit details").click()
    page.wait_for_url("**/edit/")


@pytest.mark.parametrize("width", [1440, 390])
def test_at_most_two_actions_stand_beside_the_menu(visit: Visit, width: int) -> None:
    visit.page.set_viewport_size({"width": width, "height": 900})
    for model in (Pool, Cluster, Network, Block, Entry):
        visit.open(_path(model.objects.earliest("pk")))
        actions = ".cad-object-head .cad-actions > :is(a, form, button)"
        assert visit.page.locator(actions).count() <= 2, model
        assert not visit.scrolls_sideways(), model


def test_details_are_edited_in_place(visit: Visit) -> None:
    page, pool = visit.page, factories.pool("10.97.0.0/24", name="plain-pool")
    visit.open(_path(pool))
    assert page.locator("#attributes.cad-card").count() == 0  # one line while all is empty
    page.get_by_role("link", name="Edit details").click()
    details = page.locator("#attributes form")
    details.get_by_label("Owner").fill("net@example.org")
    shown = details.locator(".cad-field:visible label").all_inner_texts()
    assert [text.split()[0] for text in shown] == ["Description", "Tags", "Owner"]
    details.get_by_role("button", name="Save").click()
    page.get_by_text("Pool plain-pool was changed.").wait_for()
    assert "net@example.org" in page.locator("#attributes.cad-card").inner_text()


def test_what_somebody_else_saved_is_not_overwritten_in_place(visit: Visit) -> None:
    page, pool = visit.page, _pool("yellow-pool")
    visit.open(_path(pool))
    page.get_by_role("link", name="Edit details").click()
    page.locator("#attributes").get_by_label("Owner").fill("mine@example.org")
    Pool.objects.filter(pk=pool.pk).update(owner="theirs@example.org")
    page.locator("#attributes").get_by_role("button", name="Save").click()
    page.locator("#conflicts").wait_for()
    assert Pool.objects.get(pk=pool.pk).owner == "theirs@example.org"


def test_addresses_are_copied_by_keyboard(visit: Visit) -> None:
    page = visit.page
    page.context.grant_permissions(["clipboard-read", "clipboard-write"])
    entry = Entry.objects.exclude(mac="").earliest("pk")
    for path, text in (
        (_path(_pool("green-pool")), "10.20.0.0/16"),
        ("/admin/pools/block/", str(Block.objects.filter(pool=_pool("vm-lab")).earliest("cidr").cidr.network_address)),
        (_path(entry.ippool) + "#entries", entry.mac),
    ):  # fmt: skip
        visit.open(path + ("?q=10.99.0" if "block" in path else ""))
        button = page.get_by_role("button", name=f"Copy {text}", exact=True).first
        button.focus()
        page.keyboard.press("Enter")
        page.get_by_text("Copied", exact=True).wait_for()
        assert page.evaluate("navigator.clipboard.readText()") == text


def test_a_pool_three_addresses_and_a_release_take_twelve_clicks(visit: Visit) -> None:
    """A choice in a menu counts as two."""
    page, clicks = visit.page, 0

    def click(role: Any, name: str, *, inside: str = "body") -> None:
        nonlocal clicks
        clicks += 1
        page.locator(inside).get_by_role(role, name=name, exact=True).first.click()

    visit.open("/admin/")
    click("link", "Pools", inside="#nav-sidebar")
    page.wait_for_url("**/pools/pool/")
    clicks += 1
    page.locator("a[href$='/pools/pool/add/']").first.click()
    page.locator("[name=name]").fill("lab-2")
    page.get_by_label("IPv4 mask size").fill("32")
    for field, choice in (("cluster", demo.FRANKFURT), ("category", "VM networks")):
        page.select_option(f"select[name={field}]", label=choice)
        clicks += 2
    page.locator("[name$=-cidr]").first.fill("10.98.0.0/24")
    page.locator("[name$=-reserved]").first.fill("10.98.0.0-10.98.0.9")
    click("button", "Add the pool")
    page.get_by_text("Pool lab-2 was added.").wait_for()
    click("link", "Allocate")
    page.get_by_label("Holder ID").fill("web")
    page.get_by_label("How many").fill("3")
    click("button", "Allocate")
    page.get_by_text("10.98.0.12 was allocated to web.").wait_for()
    click("link", "Blocks", inside="#tabs-items")
    click("link", "Release 10.98.0.10", inside="#blocks")
    click("button", "Release", inside="#content")
    page.get_by_text("10.98.0.10 was released").wait_for()
    assert clicks <= 12
    assert Block.objects.filter(pool__name="lab-2", state="held").count() == 2


def test_a_claim_takes_four_clicks(visit: Visit) -> None:
    page = visit.page
    network = Network.objects.get(name="cluster_udn_tenant-blue")
    visit.open("/admin/")
    page.locator("#nav-sidebar").get_by_role("link", name="Networks", exact=True).click()
    page.locator("#result_list").get_by_role("link", name=network.name).first.click()
    page.get_by_role("link", name="Add claim", exact=True).click()
    page.get_by_label("Namespace").fill("shop")
    page.get_by_label("VM", exact=False).first.fill("four-clicks")
    page.get_by_role("button", name="Request addresses", exact=True).click()
    page.get_by_text("was added").wait_for()
