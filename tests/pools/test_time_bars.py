"""Bars of time: segments, marks and what is left out."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

from pools.admin.time_bars import SEGMENTS, Segment, SegmentRow, TimeBar

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


def test_the_scale_is_from_the_first_to_now() -> None:
    assert _bar(Segment("a", "held", _days(10))).ends == ["2026-11-17", "2026-11-22", "now"]
    assert _bar(Segment("a", "held", _days(1))).ends[0] == "2026-11-26 00:00"


def test_a_short_segment_is_seen_and_has_no_text() -> None:
    bar = _bar(
        Segment("a", "held", _days(100), _days(99.99)),
        Segment("b", "held", _days(0.0001)),
    )
    svg = bar.drawn[0][1]
    assert svg.count('width="0.4%"') == 4
    assert 'x="99.6%"' in svg
    assert 'y="18"></text>' in svg


def test_a_name_is_text() -> None:
    assert "<b>" not in _bar(Segment("<b>", "held", _days(1))).drawn[0][1]


def test_only_the_newest_are_drawn() -> None:
    many = [Segment(str(n), "held", _days(n), _days(n - 1)) for n in range(1, SEGMENTS + 10)]
    bar = _bar(*many)
    assert bar.is_cut
    assert bar.start == _days(SEGMENTS)
