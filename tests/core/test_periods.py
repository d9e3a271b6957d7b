"""Times and periods as people write them."""

from datetime import UTC, datetime
from zoneinfo import ZoneInfo

import hypothesis
import pytest
from hypothesis import strategies as st

from pools.core import errors, periods

BERLIN = ZoneInfo("Europe/Berlin")
NOW = datetime(2026, 11, 27, 18, 30, tzinfo=BERLIN)  # a Friday

PERIODS = {
    "2026-11-19": ("2026-11-19T00:00+01:00", "2026-11-20T00:00+01:00"),
    "19.11.2026": ("2026-11-19T00:00+01:00", "2026-11-20T00:00+01:00"),
    "1. 9. 2026": ("2026-09-01T00:00+02:00", "2026-09-02T00:00+02:00"),
    "2026-10-25": ("2026-10-25T00:00+02:00", "2026-10-26T00:00+01:00"),  # of 25 hours
    "2026-10": ("2026-10-01T00:00+02:00", "2026-11-01T00:00+01:00"),
    "10.2026": ("2026-10-01T00:00+02:00", "2026-11-01T00:00+01:00"),
    "Yesterday": ("2026-11-26T00:00+01:00", "2026-11-27T00:00+01:00"),
    "last  week": ("2026-11-16T00:00+01:00", "2026-11-23T00:00+01:00"),
    "last month": ("2026-10-01T00:00+02:00", "2026-11-01T00:00+01:00"),
    "today": ("2026-11-27T00:00+01:00", "2026-11-27T18:30+01:00"),  # no later than now
    "2026-11": ("2026-11-01T00:00+01:00", "2026-11-27T18:30+01:00"),
    "1 h": ("2026-11-27T17:30+01:00", "2026-11-27T18:30+01:00"),
    "24h": ("2026-11-26T18:30+01:00", "2026-11-27T18:30+01:00"),
    "7 days": ("2026-11-20T18:30+01:00", "2026-11-27T18:30+01:00"),
}
MOMENTS = {
    "2026-11-19 14:02": "2026-11-19T14:02+01:00",
    "19.11.2026 14:02:30": "2026-11-19T14:02:30+01:00",
    "2026-11-19T14:02": "2026-11-19T14:02+01:00",  # as a browser's picker writes it
    "2026-11-19T14:02:00Z": "2026-11-19T14:02+00:00",
    "2026-11-19T14:02:25.536044Z": "2026-11-19T14:02:25.536044+00:00",
    "2026-11-19T14:02:00 05:30": "2026-11-19T14:02+05:30",
    "7 d ago": "2026-11-20T18:30+01:00",
    "now": "2026-11-27T18:30+01:00",
}


@pytest.mark.parametrize("text", PERIODS)
def test_periods(text: str) -> None:
    period = periods.parse_period(text, NOW)
    assert (period.start, period.end) == tuple(map(datetime.fromisoformat, PERIODS[text]))
    assert not period.is_moment
    assert period.last_moment < period.end


@pytest.mark.parametrize("text", MOMENTS)
def test_points_in_time(text: str) -> None:
    period = periods.parse_period(text, NOW)
    moment = datetime.fromisoformat(MOMENTS[text])
    assert (period.start, period.end, period.last_moment) == (moment, moment, moment)


@pytest.mark.parametrize(
    ("text", "code"),
    [
        ("2026-11-28", "future_time"),
        ("2027-01", "future_time"),
        ("2026-11-27 19:00", "future_time"),
        ("2026-02-30", "time"),
        ("2026-13", "time"),
        ("31.11.2026", "time"),
        ("1999-12-31", "time"),
        ("2026-11-19 25:00", "time"),
        ("99999 w", "time"),
        ("noon", "time"),
        ("11/19/2026", "time"),
    ],
)
def test_what_cannot_be_meant(text: str, code: str) -> None:
    with pytest.raises(errors.InvalidInput) as caught:
        periods.parse_period(text, NOW, "at")
    assert (caught.value.code, caught.value.problems[0].field) == (code, "at")


@hypothesis.given(st.text(max_size=40))
def test_any_text_is_a_period_or_refused(text: str) -> None:
    try:
        period = periods.parse_period(text, NOW.astimezone(UTC))
    except errors.InvalidInput:
        return
    assert period.start <= period.end
