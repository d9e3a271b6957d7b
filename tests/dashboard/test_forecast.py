"""When a pool will be full: what is said of which past, as a table."""

import itertools
from collections.abc import Callable

import pytest
from hypothesis import given, strategies as st

from pools.core import forecast
from pools.core.forecast import ForecastState

TODAY = 700_000


def past(levels: list[int]) -> dict[int, int]:
    """The last of them is today's."""
    return {TODAY - len(levels) + 1 + index: level for index, level in enumerate(levels)}


def fill_forecast(levels: list[int], free: int) -> forecast.FillForecast:
    return forecast.forecast(past(levels), today=TODAY, free=free)


LINE = [100 + 2 * day for day in range(40)]


def test_steady_growth_is_continued() -> None:
    result = fill_forecast(LINE, 60)
    assert (result.state, result.days, result.per_day) == (ForecastState.GROWING, 30, 2)
    assert result.earliest == result.latest == 30


@pytest.mark.parametrize(
    ("levels", "free", "state"),
    [
        (LINE, 0, ForecastState.FULL),
        ([5], 0, ForecastState.FULL),
        (LINE[:13], 60, ForecastState.TOO_LITTLE_HISTORY),
        (LINE[:14], 60, ForecastState.GROWING),
        ([7] * 40, 60, ForecastState.NOT_GROWING),
        ([7] * 40, 1, ForecastState.NOT_GROWING),
        (LINE[::-1], 60, ForecastState.NOT_GROWING),
        (LINE, 10_000, ForecastState.DISTANT),
        (LINE, 2**64, ForecastState.DISTANT),
        (LINE, 2**128, ForecastState.DISTANT),
    ],
    ids=["full", "full at once", "13 days", "14 days", "constant", "constant, nearly full",
         "falling", "slow", "2^64", "2^128"],
)  # fmt: skip
def test_what_is_said(levels: list[int], free: int, state: ForecastState) -> None:
    result = fill_forecast(levels, free)
    assert result.state == state
    if state in {
        ForecastState.NOT_GROWING,
        ForecastState.DISTANT,
        ForecastState.TOO_LITTLE_HISTORY,
    }:
        assert (result.days, result.earliest, result.latest) == (None, None, None)


@pytest.mark.parametrize(("days", "missing"), [(1, 13), (13, 1), (14, 0), (50, 0)])
def test_how_many_days_are_still_needed(days: int, missing: int) -> None:
    assert fill_forecast(LINE[:1] * days, 5).missing == missing


def test_numbers_beyond_what_a_float_can_tell_apart() -> None:
    assert fill_forecast([2**64 - 41 + day for day in range(40)], 1).days == 1
    assert fill_forecast([2**80 + day for day in range(40)], 20).days == 20


@pytest.mark.parametrize("odd", [10**6, -100])
def test_one_odd_day_changes_nothing(odd: int) -> None:
    levels = [*LINE[:25], LINE[25] + odd, *LINE[26:]]
    assert fill_forecast(levels, 60).days == 30


def test_a_step_moves_the_forecast_less_than_its_height() -> None:
    result = fill_forecast([100 + day + (200 if day >= 20 else 0) for day in range(40)], 60)
    assert result.days is not None
    assert result.earliest is not None
    assert result.earliest <= 60  # as without the step
    assert 1 <= result.per_day < 8  # the mean of all changes is 6, of all but one 1


def test_a_jump_today_is_room_lost_and_hardly_a_trend() -> None:
    result = fill_forecast([*LINE[:-1], LINE[-1] + 100], 60)
    assert 2 <= result.per_day < 2.5  # the mean of all changes is 4.6


def test_unrest_widens_the_range_and_may_leave_it_open() -> None:
    steady, restless = (
        [100 + 2 * day + swing * (day // 7 % 2) for day in range(60)] for swing in (2, 60)
    )
    narrow, wide = fill_forecast(steady, 60), fill_forecast(restless, 60)
    assert narrow.earliest is not None
    assert narrow.latest is not None
    assert wide.earliest is not None
    assert wide.earliest < narrow.earliest <= 30 <= narrow.latest
    assert wide.latest is None or wide.latest > narrow.latest


def test_weekends_are_no_unrest() -> None:
    gains = [0 if day % 7 >= 5 else 7 for day in range(60)]
    levels = list(itertools.accumulate(gains, initial=100))
    result = fill_forecast(levels, 350)
    assert result.latest is not None
    assert result.earliest is not None
    assert result.latest - result.earliest <= 14
    assert result.earliest <= 70 <= result.latest


def test_days_without_a_sample_are_filled_and_older_ones_forgotten() -> None:
    holes = {day: level for day, level in past(LINE).items() if day % 3 or day == TODAY}
    assert forecast.forecast(holes, today=TODAY, free=60).days == 30
    long_ago = {TODAY - 300 + item: 10_000 - item for item in range(50)}
    assert forecast.forecast({**long_ago, **past(LINE)}, today=TODAY, free=60) == fill_forecast(
        LINE, 60
    )


def test_more_room_is_later_with_the_same_trend() -> None:
    """The trend is one of blocks a day, so a new CIDR changes nothing but the room."""
    assert [fill_forecast(LINE, free).days for free in (1, 20, 60, 600)] == [1, 10, 30, 300]


LEVELS = st.lists(st.integers(0, 2**70), min_size=1, max_size=70)
SMALL = st.lists(st.integers(0, 500), min_size=14, max_size=70)


@given(levels=LEVELS, free=st.integers(0, 2**130))
def test_any_past_gets_an_answer_in_order(levels: list[int], free: int) -> None:
    result = fill_forecast(levels, free)
    assert (result.state == ForecastState.FULL) == (free == 0)
    days = [result.earliest, result.days, result.latest]
    forecast_days = [day for day in days if day is not None]
    assert (
        days[: len(forecast_days)] == forecast_days == sorted(forecast_days)
    )  # only the later ones are open
    assert all(0 <= day <= forecast.HORIZON for day in forecast_days)
    assert (result.days is not None) == (
        result.state in {ForecastState.FULL, ForecastState.GROWING}
    )


def _later(change: Callable[[list[int]], list[int]], levels: list[int], free: int) -> None:
    before, after = fill_forecast(levels, free), fill_forecast(change(levels), free)
    assert (before.state, before.days, before.latest) == (after.state, after.days, after.latest)


@given(levels=SMALL, free=st.integers(1, 1000), base=st.integers(0, 2**80))
def test_only_changes_count_not_the_level(levels: list[int], free: int, base: int) -> None:
    _later(lambda values: [level + base for level in values], levels, free)


@given(levels=SMALL, free=st.integers(1, 1000), more=st.integers(1, 1000))
def test_more_room_is_never_earlier(levels: list[int], free: int, more: int) -> None:
    never = forecast.HORIZON + 1
    little, much = fill_forecast(levels, free), fill_forecast(levels, free + more)
    for name in ("earliest", "days", "latest"):
        assert (getattr(little, name) or never) <= (getattr(much, name) or never), name
