"""Bars of time: segments, marks and what is left out."""

from datetime import UTC, datetime, timedelta

import pytest
from django.contrib.auth.models import AnonymousUser
from django.test import RequestFactory

from pools.admin import time_bars
from pools.admin.time_bars import Segment, SegmentRow, TimeBar
from pools.platform.admin import display
from pools.register.allocator import allocation
from pools.register.history import holders
from pools.register.history.addresses import Tenure
from tests import factories, people

NOW = datetime(2026, 11, 27, tzinfo=UTC)


def _days(number: float) -> datetime:
    return NOW - timedelta(days=number)


def _bar(*segments: Segment) -> TimeBar:
    return TimeBar([SegmentRow("10.0.0.1", segments), SegmentRow("without any", [])], NOW)


def test_a_segment_has_its_place_name_and_link() -> None:
    bar = _bar(
        Segment("vm web", "held", _days(10), _days(5), "/then/"),
        Segment("vm web", "cooling", _days(5), _days(4)),
    )
    ((title, svg),) = bar.drawn
    assert title == "10.0.0.1"
    assert (
        '<a href="/then/" aria-label="vm web, allocated: 2026-11-17 00:00 to 2026-11-22 00:00">'
        in svg
    )
    assert '<rect class="t-held" x="0.0%" y="8" width="50.0%"' in svg
    assert '<rect class="t-cooling" x="50.0%" y="8" width="10.0%"' in svg
    assert svg.count("<text") == 2
    assert 't-cooling"' in svg
    assert "2026-11-23 00:00: free" in svg


@pytest.mark.django_db
def test_the_bar_of_a_pool_says_who_holds_how_much() -> None:
    pool = factories.pool("10.0.0.0/26", cooldown=600)
    large, small = factories.holder("node-1", kind="node"), factories.holder("node-2", kind="node")
    ids = [factories.take(pool, large)["id"] for _ in range(3)]
    small_id = factories.take(pool, small)["id"]
    allocation.release(ids[0], None, author=factories.WITH_REASON, force=True)
    largest = holders.find_largest(pool)
    assert [*largest] == [("node", "node-1"), ("node", "node-2")]
    assert len(largest["node", "node-1"]) == 4  # three times held, once in cooldown
    request = RequestFactory().get("/")
    request.user = AnonymousUser()
    bar = time_bars.of_pool(request, pool)
    assert bar is not None
    labels = {row.title: [segment.label for segment in row.newest] for row in bar.rows}
    assert labels == {"node node-1": ["2 blocks"], "node node-2": ["1 block"]}
    allocation.release(small_id, None, author=factories.WITH_REASON, force=True)
    assert [*holders.find_largest(pool)] == [("node", "node-1")]
    text = people.browser().get(display.url_of(pool)).content.decode()
    assert "Who holds most" in text
    assert 'aria-label="2 blocks, allocated: ' in text
    blind = people.browser([name for name in people.VIEWER if name != "view_block"])
    assert "Who holds most" not in blind.get(display.url_of(pool)).content.decode()
    live = people.browser().get(display.url_of(pool), headers={"HX-Trigger": "cad-live"})
    assert "Who holds most" not in live.content.decode()


def test_the_number_of_blocks_over_time() -> None:
    def tenure(state: str, since: float, until: float | None) -> Tenure:
        end = None if until is None else _days(until)
        return Tenure("c", "", "p", "10.0.0.0/28", state, {}, "", "", _days(since), end)

    tenures = [
        tenure("held", 10, 6), tenure("held", 8, 6), tenure("cooling", 6, 5),
        tenure("cooling", 6, 4), tenure("held", 2, None), tenure("cooling", 1, -1),
    ]  # fmt: skip
    segments = [*time_bars._count_blocks(tenures, NOW, "")]
    assert [(part.label, part.state, part.since, part.until) for part in segments] == [
        ("1 block", "held", _days(10), _days(8)),
        ("2 blocks", "held", _days(8), _days(6)),
        ("2 blocks", "cooling", _days(6), _days(5)),
        ("1 block", "cooling", _days(5), _days(4)),
        ("1 block", "held", _days(2), None),
    ]
