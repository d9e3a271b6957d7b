"""Names of 253 characters and long texts make no page wider than the window and push nothing out of sight."""

from typing import Any

import pytest
from django.urls import reverse

from claims.models import Entry, IPAMClaim, IPPool, Network
from pools.models import Block, Cluster, Container, Environment, Pool
from tests.e2e.conftest import Visit

pytestmark = pytest.mark.django_db(transaction=True)

_LABEL = "a-very-long-label-of-a-name-which-has-exactly-63-characters-0-0"
NAME = ".".join([_LABEL] * 4)[:253]
TEXT = "d" * 300 + " and more words " + "e" * 150
LISTS = (
    "pools/pool", "pools/cluster", "pools/container", "pools/poolcidr", "pools/block", "pools/environment",
    "pools/event", "claims/network", "claims/ippool", "claims/entry", "claims/ipamclaim",
)  # fmt: skip
# An ellipsis is a box beside that of the text, not below it.
_BROKEN = """addresses => addresses.filter(e => e.checkVisibility()
    && ([...e.getClientRects()].some(r => r.top >= e.getClientRects()[0].bottom)
    || e.offsetHeight > 1.9 * parseFloat(getComputedStyle(e).fontSize) * 1.5)).map(e => e.innerText)"""
_OUTSIDE = """() => [...document.querySelectorAll('#content :is(p, a, span, strong, dd, button, h2)')]
    .filter(e => e.checkVisibility() && e.getBoundingClientRect().right > innerWidth + 1
        && !e.closest('.cad-scroll, .cad-listing, .cad-hidden, .cad-pre, .simplebar-track'))
    .map(e => e.outerHTML.slice(0, 100))"""


def _first(model: Any, **values: Any) -> Any:
    rows = model.objects.filter(state="held") if model is Block else model.objects.all()
    row = rows.earliest("pk")
    model.objects.filter(pk=row.pk).update(**values)
    return row


@pytest.fixture
def rows(visit: Visit) -> list[Any]:  # it loads the demo
    """Rows of the demo with the longest names and texts."""
    return [
        _first(Cluster, name=NAME, description=TEXT),
        _first(Pool, name=NAME, description=TEXT),
        _first(Container, name=NAME, description=TEXT),
        _first(Environment, org=NAME, env=NAME, description=TEXT, message=TEXT),
        _first(Block, holder_id="h" * 253, org=NAME, env=NAME),
        _first(Network, name=NAME, description=TEXT),
        _first(Entry, vm=NAME, note=TEXT),
        _first(IPAMClaim, vm=NAME, name=NAME, note=TEXT),
        _first(IPPool, name=NAME, note=TEXT),
    ]


def _pages(rows: list[Any]) -> list[str]:
    objects = [
        reverse(f"admin:{row._meta.app_label}_{row._meta.model_name}_change", args=[row.pk])
        for row in rows
    ]
    pool = next(row for row in rows if isinstance(row, Pool))
    forms = [reverse(f"admin:pools_pool_{name}", args=[pool.pk]) for name in ("edit", "allocate")]
    others = ["address-plan/?parent=10.0.0.0/8", "find/?q=very-long", "find/?q=10.20.0.0/12"]
    lists = [f"/admin/{name}/" for name in LISTS]
    return ["/admin/", *lists, *(f"/admin/{path}" for path in others), *objects, *forms]


@pytest.mark.parametrize("visit", [1440, 1280, 720, 390], indirect=True)
def test_no_page_is_wider_than_the_window(visit: Visit, rows: list[Any]) -> None:
    for path in _pages(rows):
        visit.open(path)
        assert not visit.scrolls_sideways(), path
        assert visit.page.evaluate(_OUTSIDE) == [], path
        broken = visit.page.locator("#content .cad-address").evaluate_all(_BROKEN)
        assert broken == [], path


def test_the_list_of_pools_shows_all_its_columns(visit: Visit, rows: list[Any]) -> None:
    visit.open("/admin/pools/pool/")
    state = visit.page.locator("#result_list td.field-state").first.bounding_box()
    assert state is not None
    assert state["x"] + state["width"] <= 1440
    names = visit.page.locator("#result_list td.field-name a[title]").all()
    assert [name.get_attribute("title") for name in names] == [NAME]
    for name in names:
        box = name.bounding_box()
        assert box is not None
        assert box["height"] < 60, "two lines"


@pytest.mark.parametrize("visit", [1440, 720, 390], indirect=True)
def test_what_the_plan_offers_is_in_sight(visit: Visit, rows: list[Any]) -> None:
    visit.open("/admin/address-plan/?parent=10.0.0.0/8")
    width = visit.page.viewport_size["width"]
    for link in visit.page.get_by_role("link", name="Add pool").all()[:5]:
        box = link.bounding_box()
        assert box is not None
        assert box["x"] + box["width"] <= width
