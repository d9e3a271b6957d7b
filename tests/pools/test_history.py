"""Who held an address at a time, as text and as bars of time."""

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from django.contrib.auth.models import AnonymousUser
from django.db import connection
from django.test import RequestFactory

from pools.admin import time_bars
from pools.admin.time_bars import Segment, SegmentRow, TimeBar
from pools.core import addresses
from pools.models import Block
from pools.platform.admin import display
from pools.register import pools, retention
from pools.register.allocator import allocation, requests
from pools.register.history import addresses as history_addresses, holders
from pools.register.history.addresses import Tenure
from tests import factories, people


def _now() -> datetime:
    with connection.cursor() as cursor:
        cursor.execute("SELECT ipam_now()")
        moment: datetime = cursor.fetchone()[0]
        return moment


def _who(address: str, moment: datetime | None = None, **settings: Any) -> list[tuple[str, str]]:
    matches, _ = history_addresses.find_holders(
        addresses.parse_address(address), at=moment, **settings
    )
    return [(match.holder["id"], match.state) for match in matches]


def test_one_holder_after_another(clock) -> None:
    pool = factories.pool("10.0.0.0/32", cooldown=60)
    start = _now()
    clock.advance(10)
    first = factories.take(pool, factories.holder("a"))
    clock.advance(10)
    factories.give_back(first)
    clock.advance(100)
    factories.take(pool, factories.holder("b"))
    expected = [(5, []), (10, [("a", "held")]), (19, [("a", "held")]), (20, [("a", "cooling")]),
        (79, [("a", "cooling")]), (80, []), (119, []), (120, [("b", "held")]),
        (999, [("b", "held")])]  # fmt: skip
    result = [(s, _who("10.0.0.0", start + timedelta(seconds=s))) for s, _ in expected]
    assert result == expected
    assert _who("10.0.0.0") == [("b", "held")]


def test_the_tenures_newest_first(clock) -> None:
    pool = factories.pool("10.0.0.0/32", cooldown=60)
    first = factories.take(pool, factories.holder("a", uid="u"), org="o", env="e")
    clock.advance(10)
    factories.give_back(first)
    _, tenures = history_addresses.find_holders(addresses.parse_address("10.0.0.0"))
    assert [tenure.state for tenure in tenures] == ["cooling", "held"]
    assert tenures[0].since == tenures[1].until
    assert tenures[0].until == tenures[0].since + timedelta(seconds=60)
    held = tenures[1].as_json()
    assert held["holder"] == {"kind": "vm", "id": "a", "uid": "u"}
    assert (held["org"], held["env"], held["block"]) == ("o", "e", "10.0.0.0/32")
    assert (held["pool"], held["cluster"]) == (pool.name, pool.cluster.name)
    assert held["since"].endswith("Z")


def test_now_is_told_by_the_clock_even_when_nothing_was_tidied(clock) -> None:
    pool = factories.pool("10.0.0.0/32", cooldown=60)
    factories.give_back(factories.take(pool, factories.holder("a")))
    assert _who("10.0.0.0") == [("a", "cooling")]
    clock.advance(61)
    assert _who("10.0.0.0") == []
    requests.end_cooldowns()
    assert _who("10.0.0.0") == []


def test_a_cooldown_that_was_skipped_ended_then(clock) -> None:
    pool = factories.pool("10.0.0.0/32", cooldown=60)
    block = factories.take(pool, factories.holder("a"))
    factories.give_back(block)
    clock.advance(10)
    allocation.skip_cooldown(block["id"], author=factories.WITH_REASON)
    assert _who("10.0.0.0") == []
    assert _who("10.0.0.0", _now() - timedelta(seconds=1)) == [("a", "cooling")]


@pytest.mark.parametrize("mask", [120, 128])
def test_ipv6(mask: int) -> None:
    pool = factories.pool("fd00::/104", mask=mask)
    block = factories.take(pool, factories.holder("a"))
    assert _who(block["cidr"].partition("/")[0]) == [("a", "held")]


def test_of_a_pool_that_is_gone(clock) -> None:
    pool = factories.pool("10.0.0.0/32", name="old")
    block = factories.take(pool, factories.holder("a"))
    moment = _now()
    clock.advance(10)
    factories.give_back(block)
    pools.delete(pool.pk, author=factories.BY)
    factories.pool("10.0.0.0/24", within=pool.cluster)
    matches, _ = history_addresses.find_holders(addresses.parse_address("10.0.0.0"), at=moment)
    assert [(match.pool, match.holder["id"]) for match in matches] == [("old", "a")]


def test_even_when_no_pool_has_blocks_of_that_size_any_more(clock) -> None:
    pool = factories.pool("10.20.0.0/16", mask=24)
    block = factories.take(pool, factories.holder("a"))
    moment = _now()
    clock.advance(10)
    factories.give_back(block)
    pools.delete(pool.pk, author=factories.BY)
    assert _who("10.20.0.5", moment) == [("a", "held")]


def test_a_change_by_hand_begins_a_tenure_then(clock) -> None:
    pool = factories.pool("10.0.0.0/32")
    factories.take(pool, factories.holder("a"))
    moment = _now()
    clock.advance(10)
    Block.objects.filter(state="held").update(holder_id="b")
    assert _who("10.0.0.0", moment) == [("a", "held")]
    assert _who("10.0.0.0") == [("b", "held")]


def test_who_holds_it_now_is_known_however_short_events_are_kept(clock) -> None:
    factories.take(factories.pool("10.0.0.0/32"), factories.holder("a"))
    clock.advance(40 * 86400)
    retention.purge_events(30)
    assert _who("10.0.0.0") == [("a", "held")]


# --- Bars of time: segments, marks and what is left out -------------------------------------------
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
