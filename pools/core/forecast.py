"""When a pool will be full, as far as its past tells: a day and the range around it.

The number of blocks in use is taken for a sum of many small, independent changes (a random walk with
drift). Its drift is the Theil-Sen slope of the last weeks, which a few odd days do not move; its
unrest is what changes from one week to the next, so that weekends do not count as unrest. With both,
and with how little so many days tell of the drift, the day on which the free blocks run out has a
known distribution (inverse Gaussian, averaged over the drifts that fit): its median is the forecast,
its 10th and 90th per cent are the range. Held and cooling blocks both count as used: neither can be
handed out to somebody else.
"""

from __future__ import annotations

import itertools
import math
import statistics
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum

SHARE = 0.8  # how often the range is to contain the day
LOOK_BACK = 60  # days of history that are looked at
NEEDED = 14  # days of history without which nothing is said
HORIZON = 5 * 365  # days ahead; what lies beyond is "not within five years"
WEEK, MONTH = 7, 28
ODD = 6  # times the usual change of a day

_NORMAL = statistics.NormalDist()
_DRIFTS = 15  # drifts that stand for all that fit
_SLOPE_OF_A_WALK = 1.2  # variance of the slope of a random walk, in variances of its mean change


class ForecastState(StrEnum):
    """What can be said."""

    FULL = "full"  # nothing is free now
    TOO_LITTLE_HISTORY = "too_little_history"
    NOT_GROWING = "not_growing"  # more likely than not it is not full within HORIZON, by its trend
    DISTANT = "distant"  # it grows, but will not be full within HORIZON
    GROWING = "growing"  # `days` is the forecast


@dataclass(frozen=True)
class FillForecast:
    """Days from today until nothing is free.

    `days` is as likely too early as too late; the true day lies between `earliest` and `latest` in
    SHARE of all cases. None: not within HORIZON, or never. `per_day` is the trend, in blocks.
    """

    state: ForecastState
    history: int  # days that it is based on, today among them
    days: int | None = None
    earliest: int | None = None
    latest: int | None = None
    per_day: float = 0.0

    @property
    def missing(self) -> int:
        """Days of history that are still needed."""
        return max(0, NEEDED - self.history)


def forecast(used: Mapping[int, int], *, today: int, free: int) -> FillForecast:
    """What is to be expected of a pool with `free` blocks left.

    `used`: number of the day -> blocks in use at its end; `today` is among them, with the number as
    it is now. Days may be missing.
    """
    recent = {day: used[day] for day in sorted(used) if today - LOOK_BACK < day <= today}
    if free <= 0:
        return FillForecast(ForecastState.FULL, len(recent), 0, 0, 0)
    if len(recent) < NEEDED:
        return FillForecast(ForecastState.TOO_LITTLE_HISTORY, len(recent))
    # Differences of whole numbers: a float cannot tell two neighbours beyond 2^53.
    last = recent[max(recent)]
    levels = _levels({day: number - last for day, number in recent.items()})
    walk = _Walk.fit(levels)
    earliest, days, latest = (
        walk.passed(free, share) for share in ((1 - SHARE) / 2, 0.5, (1 + SHARE) / 2)
    )
    if days is not None:
        state = ForecastState.GROWING
    else:
        state = ForecastState.DISTANT if walk.drift > walk.spread else ForecastState.NOT_GROWING
    return FillForecast(state, len(recent), days, earliest, latest, walk.drift)


def _levels(numbers: Mapping[int, int]) -> list[float]:
    """One number for each day: gaps are filled evenly, a single odd day is left out.

    A day is odd when it lies above or below both its neighbours by much more than days differ.
    """
    points = list(numbers.items())
    days: list[float] = [float(points[0][1])]
    for (before, low), (after, high) in itertools.pairwise(points):
        step = (high - low) / (after - before)
        days += [low + step * number for number in range(1, after - before + 1)]
    usual = statistics.median(abs(change) for change in _changes(days, 1))
    return [
        days[0],
        *(_evened(days, index, ODD * usual) for index in range(1, len(days) - 1)),
        days[-1],
    ]


def _evened(days: Sequence[float], index: int, most: float) -> float:
    low, high = sorted((days[index - 1], days[index + 1]))
    odd = days[index] > high + most or days[index] < low - most
    return (low + high) / 2 if odd else days[index]


def _changes(levels: Sequence[float], apart: int) -> list[float]:
    return [after - before for before, after in zip(levels, levels[apart:], strict=False)]


@dataclass(frozen=True)
class _Walk:
    """Change per day: its mean, how well that is known, and the variance of a day's change."""

    drift: float
    spread: float  # the standard deviation of `drift`
    variance: float

    @classmethod
    def fit(cls, levels: Sequence[float]) -> _Walk:
        drift = _slope(levels)
        variance = _unrest(levels, drift)
        spread = math.sqrt(_SLOPE_OF_A_WALK * variance / (len(levels) - 1))
        return cls(drift, spread, variance)

    def passed(self, distance: int, share: float) -> int | None:
        """The first day by which the walk has risen so far in that share of cases."""
        if self._risen(distance, HORIZON) < share:
            return None
        low, high = 0, HORIZON
        while high - low > 1:
            middle = (low + high) // 2
            low, high = (low, middle) if self._risen(distance, middle) >= share else (middle, high)
        return high

    def _risen(self, distance: int, days: int) -> float:
        drifts = (self.drift + self.spread * z for z in _QUANTILES)
        return sum(_passage(distance, days, drift, self.variance) for drift in drifts) / _DRIFTS


_QUANTILES = tuple(_NORMAL.inv_cdf((number + 0.5) / _DRIFTS) for number in range(_DRIFTS))


def _slope(levels: Sequence[float]) -> float:
    """Theil-Sen: the median of the slopes of all pairs of days."""
    return statistics.median(
        (levels[after] - levels[before]) / (after - before)
        for before in range(len(levels))
        for after in range(before + 1, len(levels))
    )


def _unrest(levels: Sequence[float], drift: float) -> float:
    """The variance of the change of one day.

    From the changes of whole weeks, in which weekends are no unrest; a month or less has too few
    weeks for that, and the changes of days must do.
    """
    apart = WEEK if len(levels) > MONTH else 1
    changes = _changes(levels, apart)
    variance = sum((change - apart * drift) ** 2 for change in changes) / len(changes) / apart
    # The drift was fitted to the same days: what is left of them is less than what is to come.
    return variance * (1 + (8 + 1.5 * apart) / len(levels))


def _passage(distance: int, days: int, drift: float, variance: float) -> float:
    """The probability that a walk has risen by `distance` within so many days (> 0)."""
    if not variance:
        return float(drift * days >= distance)
    scale = math.sqrt(variance * days)
    direct = _NORMAL.cdf((drift * days - distance) / scale)
    # exp(2 drift distance / variance) may be beyond any float while the product is not.
    power = 2 * drift * distance / variance + _log_tail((drift * days + distance) / scale)
    return min(1.0, direct + math.exp(min(0.0, power)))


def _log_tail(z: float) -> float:
    """log P(X > z) of a normal X."""
    if z < 30:
        return math.log(0.5 * math.erfc(z / math.sqrt(2)))
    return -z * z / 2 - math.log(z * math.sqrt(2 * math.pi))
