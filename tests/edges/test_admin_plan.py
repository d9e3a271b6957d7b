"""The page of the address plan: the map of a level, what is free in it, and the mark of an overlap."""

import html
import itertools
import re
from ipaddress import ip_network

import pytest
from django.urls import reverse

from pools.admin.plan import plan_map
from pools.core import cidr_sets
from pools.core.observed.uses import Role
from pools.platform.admin import display
from pools.register.plan import containers
from tests import factories, people
from tests.claims import worlds
from tests.observed.rows import observed


def _container(text: str, name: str = "") -> None:
    containers.create(ip_network(text), name=name, author=factories.BY)


def _page(**query: str) -> str:
    return html.unescape(people.browser().get(reverse("admin:plan"), query).content.decode())


def _shapes(page: str) -> dict[str, str]:
    """The names of the rectangles of the map, and where they lead."""
    drawing = page[page.index("cad-plan-map") : page.index("cad-map-name")]
    return {
        name: url for url, name in re.findall(r'<a href="([^"]*)" aria-label="([^"]*)"', drawing)
    }


def test_the_map_names_what_the_tree_has_and_leads_into_it() -> None:
    _container("10.0.0.0/22", "Rack")
    pool = factories.pool("10.0.1.0/24", name="a", category="pod", mask=28)
    factories.take(pool)
    assert _shapes(_page()) == {"10.0.0.0/22: Rack, 25 % used": "?parent=10.0.0.0%2F22"}
    shapes = _shapes(_page(parent="10.0.0.0/22"))
    assert list(shapes) == [
        "10.0.0.0/24: free, 256 addresses",
        "10.0.1.0/24: a, 6 % used",
        "10.0.2.0/23: free, 512 addresses",
    ]
    assert list(shapes.values())[:2] == [
        "?parent=10.0.0.0%2F24",
        f"{display.url_of(pool)}?map=10.0.1.0/24#map",
    ]
    assert "10.0.0.0/24 is free." in _page(parent="10.0.0.0/24")


def test_an_overlap_is_marked_with_its_other_side() -> None:
    first = factories.pool("10.0.0.0/16", name="a", category="pod", mask=24)
    factories.pool("10.0.4.0/24", name="b", within=factories.cluster(), category="pod", mask=28)
    page = _page()
    assert ">▲ overlap</a>" in page
    assert '"?q=10.0.4.0%2F24"' in page
    assert "10.0.0.0/16: a, 0 % used, overlap" in _shapes(page)
    assert f"{first}</a>" in _page(overlaps="all", parent="10.0.4.0/24")


def test_the_first_prefixes_of_several_lengths_become_pools() -> None:
    _container("10.0.0.0/16")
    cluster = factories.cluster()
    factories.pool("10.0.0.0/20", name="a")
    observed(cluster, Role.NODE, "10.0.16.7/32")
    for query in ({}, {"parent": "10.0.0.0/16"}):
        page = _page(lengths="/20, 28", cluster=str(cluster.pk), **query)
        fits = page[page.index('id="free"') :]
        assert re.findall(r">([\d.]+/\d+)</span></td>", fits) == ["10.0.32.0/20", "10.0.16.16/28"]
        add = reverse("admin:pools_pool_add")
        assert f"{add}?cidr=10.0.32.0%2F20&cluster={cluster.pk}" in fits or (
            f"{add}?cidr=10.0.32.0/20&cluster={cluster.pk}" in fits
        )
    assert "Write prefix lengths" in _page(lengths="big")


def test_what_a_vm_network_has_is_marked_and_never_free() -> None:
    _container("10.0.0.0/16")
    worlds.network("tenant", subnets=("10.0.1.0/24",), of=factories.cluster())
    page = _page(parent="10.0.0.0/16", lengths="24")
    assert "◇ isolated VM network" in page
    assert any(
        name.startswith("10.0.1.0/24: tenant, isolated VM network") for name in _shapes(page)
    )
    assert not any(
        name.split(": ")[1].startswith("free")
        and ip_network(name.split(": ")[0]).overlaps(ip_network("10.0.1.0/24"))
        for name in _shapes(page)
    )


def test_an_empty_plan_offers_the_first_step() -> None:
    page = _page()
    assert "No CIDRs yet." in page
    assert "cad-plan-map" not in page


@pytest.mark.parametrize(
    "areas", [[1], [1, 1, 1, 1], [1, 0.1, 0.5, 0.06, 0.06, 1, 0.2], [0.06] * 100]
)
def test_rectangles_fill_the_drawing_and_have_their_areas(areas: list[float]) -> None:
    rectangles = list(plan_map.divide(areas, 480, 400))
    scale = 480 * 400 / sum(areas)
    for rectangle, area in zip(rectangles, areas, strict=True):
        assert rectangle.width * rectangle.height == pytest.approx(area * scale)
        assert rectangle.x + rectangle.width <= 480.001
        assert rectangle.y + rectangle.height <= 400.001
    for upper, lower in itertools.combinations(rectangles, 2):
        beside = lower.x >= upper.x + upper.width - 0.001
        assert beside or lower.y >= upper.y + upper.height - 0.001


@pytest.mark.parametrize("family", [4, 6])
def test_the_summary_counts_what_the_search_returns(family: int) -> None:
    gaps = [(0, 2), (5, 300), (1000, 1023)]
    bits = 32 if family == 4 else 128
    parts = [part for gap in gaps for part in cidr_sets.split(gap, family)]
    lengths = [bits - shift for shift in range(10)]
    summary = cidr_sets.summarize(gaps, family, lengths)
    assert summary.parts == len(parts)
    assert summary.largest == min(parts, key=lambda part: part.prefixlen)
    for fit in summary.fits:
        prefixes = cidr_sets.first_fit(gaps, family, fit.length, 1000)
        assert fit.count == len(prefixes)
        assert fit.first == (prefixes[0] if prefixes else None)
    assert cidr_sets.summarize([], family, [bits]).largest is None
