"""Where Alpine does not load, pages show what is on them; a table is printed from page 1."""

import re
import zlib
from typing import Any

import pytest
from playwright.sync_api import expect

from claims.models import Wave
from tests.e2e.conftest import Visit

pytestmark = pytest.mark.django_db(transaction=True)

PAGES = (
    "/admin/", "/admin/pools/pool/", "/admin/claims/entry/", "/admin/address-plan/", "/admin/pools/pool/add/",
    "/admin/find/?q=green",
)  # fmt: skip


def test_a_page_is_shown_when_alpine_does_not_load(visit: Visit) -> None:
    visit.page.route("**/alpine*.js", lambda route: route.fulfill(body=""))
    for path in PAGES:
        visit.open(path)
        visit.page.locator("#content").wait_for()
        expect(visit.page.locator("#changelist-filter"), path).to_be_hidden()
    visit.complaints[:] = []  # what needs Alpine complains


def _texts(pdf: bytes) -> int:
    """The number of texts that the pages of a PDF show."""
    streams = re.findall(rb"stream\r?\n(.*?)endstream", pdf, re.DOTALL)
    shown = 0
    for stream in streams:
        try:
            shown += len(re.findall(rb"T[jJ]\b", zlib.decompressobj().decompress(stream)))
        except zlib.error:
            continue
    return shown


def _first_page(page: Any) -> int:
    return _texts(page.pdf(format="A4", page_ranges="1"))


@pytest.mark.parametrize("path", ["pools/pool", "pools/block", "claims/entry", "wave"])
def test_a_table_is_printed_from_the_first_page(visit: Visit, path: str) -> None:
    if path == "wave":
        path = f"claims/wave/{Wave.objects.get().pk}/change/?print=1"
    else:
        path += "/"
    visit.open(f"/admin/{path}")
    page = visit.page
    page.emulate_media(media="print")
    for tool in (".cad-tools", "#cad-search", "#changelist-search"):
        expect(page.locator(tool).first, tool).to_be_hidden()
    table = "#result_list tbody" if "wave" not in path else ".cad-wave-vms tbody"
    # The rows are many: those of a wave are few in the demo.
    page.evaluate(
        """selector => { const body = document.querySelector(selector), row = body.rows[0];
        for (let i = 0; i < 80; i++) body.append(row.cloneNode(true)); }""",
        table,
    )
    whole = _first_page(page)
    page.evaluate("selector => document.querySelector(selector).replaceChildren()", table)
    assert whole > _first_page(page) + 20


@pytest.mark.parametrize("visit", [720], indirect=True)
def test_the_name_of_an_alert_stays_in_its_column(visit: Visit) -> None:
    from pools.platform.conditions import evaluation

    evaluation.evaluate()
    visit.open("/admin/")
    wide = """links => links.filter(e => e.scrollWidth > e.clientWidth + 1 && getComputedStyle(e).display != 'inline'
        || [...e.getClientRects()].some(r => r.right > e.nextElementSibling?.getBoundingClientRect().left
            && r.left < e.nextElementSibling.getBoundingClientRect().left)).map(e => e.innerText)"""
    assert visit.page.locator(".cad-alerts li > .cad-link").evaluate_all(wide) == []
