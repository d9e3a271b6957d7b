"""Nothing of an answer is cut, broken in two or written twice."""

import datetime
import re
from typing import Any

import pytest
from django.urls import reverse

from claims.models import IPAMClaim, IPPool, Network
from pools.models import Block, BlockState, Pool
from pools.platform.conditions import evaluation
from tests.e2e.conftest import Visit

pytestmark = pytest.mark.django_db(transaction=True)

# Tables of the page that are wider than the place they have.
_CUT = """() => [...document.querySelectorAll('#content .cad-scroll')]
    .filter(e => e.offsetParent && e.scrollWidth > e.clientWidth + 1)
    .map(e => e.closest('section').querySelector('h2').innerText)"""


def _page(row: Any) -> str:
    return reverse(f"admin:{row._meta.label_lower.replace('.', '_')}_change", args=[row.pk])


@pytest.mark.parametrize("visit", [1440, 1920], indirect=True)
def test_then_and_now_show_all_columns(visit: Visit) -> None:
    block = Block.objects.filter(state=BlockState.COOLING, pool__category="ipv4").first()
    assert block is not None
    assert block.allocated_at is not None
    text = f"{block.allocated_at + datetime.timedelta(minutes=1):%Y-%m-%dT%H:%M:%S}"
    visit.open(f"/admin/history/?q={block.cidr.network_address}&at={text}")
    assert visit.page.get_by_role("columnheader", name="Environment").count() == 2
    assert visit.page.evaluate(_CUT) == []


def test_there_is_one_history_button(visit: Visit) -> None:
    for row in (Network.objects.first(), IPPool.objects.first()):
        visit.open(_page(row))
        visit.page.locator(".cad-object-head summary").click()
        links = visit.page.get_by_role("main").get_by_role("link", name="History", exact=True)
        assert links.count() == 1


def test_an_address_with_its_prefix_is_one_line(visit: Visit) -> None:
    assert IPAMClaim.objects.exclude(ips=[]).exists()
    visit.open("/admin/claims/ipamclaim/")
    broken = """cells => cells.filter(cell => cell.getClientRects().length > 1
        || cell.offsetHeight > 1.8 * parseFloat(getComputedStyle(cell).lineHeight))
        .map(cell => cell.innerText)"""
    assert visit.page.locator("#result_list td .cad-mono").evaluate_all(broken) == []


@pytest.mark.parametrize("visit", [390], indirect=True)
def test_what_can_be_done_with_a_cidr_is_in_sight(visit: Visit) -> None:
    for name in ("green-pool", "nodes"):
        visit.open(_page(Pool.objects.filter(name=name).earliest("pk")))
        migrate = visit.page.get_by_role("link", name=re.compile("^Migrate")).all()
        assert migrate
        for link in (*migrate, visit.page.get_by_role("link", name="Blocks", exact=True).last):
            box = link.bounding_box()
            assert box is not None
            assert box["x"] + box["width"] <= 390 - 16
        assert "CIDRs" not in visit.page.evaluate(_CUT)


def test_names_and_paths_keep_their_letters(visit: Visit) -> None:
    pool = Pool.objects.filter(name="green-pool").earliest("pk")
    visit.open(f"/admin/history/pool/{pool.pk}/")
    assert "green-pool: state at a point in time" in visit.page.content()
    assert "Green-pool" not in visit.page.content()
    config = (
        "apiVersion: v1\nkind: Config\ncurrent-context: prod\n"
        "contexts: [{name: prod, context: {cluster: prod, user: eks}}]\n"
        "clusters: [{name: prod, cluster: {server: 'https://api.example:6443'}}]\n"
        "users: [{name: eks, user: {exec: {command: aws}}}]\n"
    )
    visit.open(f"/admin/pools/cluster/{pool.cluster_id}/connect/")
    visit.page.fill("[name=text]", config)
    visit.page.get_by_role("button", name="Test connection").click()
    visit.page.get_by_text("users.eks.exec").first.wait_for()
    assert "Users.eks" not in visit.page.content()


@pytest.mark.parametrize("visit", [390], indirect=True)
def test_an_alert_has_the_width_of_a_phone(visit: Visit) -> None:
    evaluation.evaluate()
    visit.open("/admin/")
    titles = visit.page.locator(".cad-alerts li:visible > .cad-link").all()
    assert len(titles) > 3
    for title in titles:
        row = title.locator("xpath=..").bounding_box()
        detail = title.locator("xpath=following-sibling::*[1]").bounding_box()
        assert row is not None
        assert detail is None or detail["width"] > 0.8 * row["width"]


@pytest.mark.parametrize("visit", [1280, 1440], indirect=True)
def test_no_list_scrolls_sideways(visit: Visit) -> None:
    scrolls = """() => [...document.querySelectorAll('.simplebar-content-wrapper')]
        .some(e => e.querySelector('#result_list') && e.scrollWidth > e.clientWidth)"""
    names = ["pools/block", "pools/event", "pools/pool"]
    if visit.page.viewport_size["width"] == 1440:
        names += ["pools/allocationrequest", "claims/entry"]
    for name in names:
        visit.open(f"/admin/{name}/")
        assert not visit.page.evaluate(scrolls), name


@pytest.mark.parametrize("visit", [390, 1440], indirect=True)
def test_a_list_is_as_wide_as_its_page(visit: Visit) -> None:
    for name in ("pools/pool", "pools/block", "pools/silence"):
        visit.open(f"/admin/{name}/")
        gaps = """() => [...document.querySelectorAll('#changelist, #content')]
            .map(e => innerWidth - e.getBoundingClientRect().right)"""
        content, changelist = visit.page.evaluate(gaps)
        assert changelist == content - 16, name


def test_a_list_of_lines_has_no_frame(visit: Visit) -> None:
    network = Network.objects.get(name="cluster_udn_legacy")  # which says why it cannot hold VMs
    visit.open(reverse("admin:claims_network_change", args=[network.pk]))
    frame = "list => [getComputedStyle(list).borderTopWidth, getComputedStyle(list).display]"
    assert visit.page.locator("ul.cad-list").first.evaluate(frame) == ["0px", "grid"]


@pytest.mark.parametrize("visit", [390], indirect=True)
def test_a_row_on_a_phone_has_the_headings_of_the_table(visit: Visit) -> None:
    visit.open("/admin/pools/block/")
    cell = visit.page.locator("#result_list td[data-label='Address or block']").first
    assert cell.evaluate("cell => getComputedStyle(cell, '::before').textTransform") == "none"


@pytest.mark.parametrize("visit", [390], indirect=True)
def test_the_address_plan_fits_a_phone(visit: Visit) -> None:
    visit.open("/admin/address-plan/?parent=10.0.0.0/8")
    assert visit.page.evaluate("document.querySelector('.cad-scroll').scrollWidth") <= 390
    box = visit.page.get_by_role("link", name="Add pool").first.bounding_box()
    assert box is not None
    assert box["x"] + box["width"] <= 390 - 16
