"""Forecast of the day on which a pool is exhausted, with a prediction interval.

The model of the number of used blocks is a random walk with drift. The drift is the Theil-Sen slope
of the last weeks, which is robust against outliers. The variance comes from changes between weeks, so
that weekends do not add to it. From drift, variance and the uncertainty of the drift follows the
distribution of the day of exhaustion (inverse Gaussian, averaged over the plausible drifts): the
median is the forecast, the 10th and the 90th percentile are the interval. Held and cooling blocks
both count as used, because neither can be allocated to another holder.
"""

from __future__ import annotations

import itertools
import math
import statistics
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum

CONFIDENCE = 0.8  # probability that the interval contains the day
LOOK_BACK = 60  # days of history in the model
MIN_HISTORY = 14  # days of history that a forecast requires
HORIZON = 5 * 365  # days ahead; a later day is reported as "not within five years"
WEEK, MONTH = 7, 28
ODD = 6  # multiple of the median daily change that makes a day an outlier

_NORMAL = statistics.NormalDist()
_DRIFTS = 15  # sample size of the distribution of the drift
_SLOPE_OF_A_WALK = 1.2  # variance of the slope of a random walk, in variances of its mean change


class ForecastState(StrEnum):
    """The kind of forecast."""

    FULL = "full"  # no block is free now
    TOO_LITTLE_HISTORY = "too_little_history"
    NOT_GROWING = "not_growing"  # by its trend, probably not exhausted within HORIZON
    DISTANT = "distant"  # grows, but is not exhausted within HORIZON
    GROWING = "growing"  # `days` is the forecast


@dataclass(frozen=True)
class FillForecast:
    """Days from today until no block is free.

    `days` is the median. The interval from `earliest` to `latest` contains the day with probability
    CONFIDENCE. None means not within HORIZON. `per_day` is the trend in blocks.
    """

    state: ForecastState
    history: int  # number of days in the model, including today
    days: int | None = None
    earliest: int | None = None
    latest: int | None = None
    per_day: float = 0.0

    @property
    def missing(self) -> int:
        """The number of days of history that are still required."""
        return max(0, MIN_HISTORY - self.history)


def forecast(used: Mapping[int, int], *, today: int, free: int) -> FillForecast:
    """Return the forecast for a pool with `free` free blocks.

    `used` maps the number of a day to the blocks in use at its end; for `today` it has the current
    number. Days may be missing.
    """
    recent = {day: used[day] for day in sorted(used) if today - LOOK_BACK < day <= today}
    if free <= 0:
        return FillForecast(ForecastState.FULL, len(recent), 0, 0, 0)
    if len(recent) < MIN_HISTORY:
        return FillForecast(ForecastState.TOO_LITTLE_HISTORY, len(recent))
    # Differences of whole numbers: a float cannot tell two neighbours beyond 2^53.
    last = recent[max(recent)]
    levels = _levels({day: number - last for day, number in recent.items()})
    walk = _Walk.fit(levels)
    earliest, days, latest = (
        walk.first_day_reaching(free, share)
        for share in ((1 - CONFIDENCE) / 2, 0.5, (1 + CONFIDENCE) / 2)
    )
    if days is not None:
        state = ForecastState.GROWING
    else:
        state = ForecastState.DISTANT if walk.drift > walk.spread else ForecastState.NOT_GROWING
    return FillForecast(state, len(recent), days, earliest, latest, walk.drift)


def _levels(numbers: Mapping[int, int]) -> list[float]:
    """Return one number for each day: gaps are interpolated, single outliers are removed.

    A day is an outlier if it is above or below both neighbours by ODD times the median change.
    """
    points = list(numbers.items())
    days: list[float] = [float(points[0][1])]
    for (before, low), (after, high) in itertools.pairwise(points):
        step = (high - low) / (after - before)
        days += [low + step * number for number in range(1, after - before + 1)]
    usual = statistics.median(abs(change) for change in _changes(days, 1))
    return [
        days[0],
        *(_smooth_day(days, index, ODD * usual) for index in range(1, len(days) - 1)),
        days[-1],
    ]


def _smooth_day(days: Sequence[float], index: int, max_deviation: float) -> float:
    low, high = sorted((days[index - 1], days[index + 1]))
    odd = days[index] > high + max_deviation or days[index] < low - max_deviation
    return (low + high) / 2 if odd else days[index]


def _changes(levels: Sequence[float], interval: int) -> list[float]:
    return [after - before for before, after in zip(levels, levels[interval:], strict=False)]


@dataclass(frozen=True)
class _Walk:
    """Daily change: its mean, the standard error of the mean, and its variance."""

    drift: float
    spread: float  # the standard deviation of `drift`
    variance: float

    @classmethod
    def fit(cls, levels: Sequence[float]) -> _Walk:
        drift = _slope(levels)
        variance = _daily_variance(levels, drift)
        spread = math.sqrt(_SLOPE_OF_A_WALK * variance / (len(levels) - 1))
        return cls(drift, spread, variance)

    def first_day_reaching(self, distance: int, share: float) -> int | None:
        """Return the first day by which the walk reaches `distance` with probability `share`."""
        if self._probability_by(distance, HORIZON) < share:
            return None
        low, high = 0, HORIZON
        while high - low > 1:
            middle = (low + high) // 2
            low, high = (
                (low, middle) if self._probability_by(distance, middle) >= share else (middle, high)
            )
        return high

    def _probability_by(self, distance: int, days: int) -> float:
        drifts = (self.drift + self.spread * z for z in _QUANTILES)
        return (
            sum(_passage_probability(distance, days, drift, self.variance) for drift in drifts)
            / _DRIFTS
        )


_QUANTILES = tuple(_NORMAL.inv_cdf((number + 0.5) / _DRIFTS) for number in range(_DRIFTS))


def _slope(levels: Sequence[float]) -> float:
    """Return the Theil-Sen slope: the median of the slopes of all pairs of days."""
    return statistics.median(
        (levels[after] - levels[before]) / (after - before)
        for before in range(len(levels))
        for after in range(before + 1, len(levels))
    )


def _daily_variance(levels: Sequence[float], drift: float) -> float:
    """Return the variance of the change of one day.

    It is computed from weekly changes, so that weekends do not add to it. A month or less has too few
    weeks; then daily changes are used.
    """
    interval = WEEK if len(levels) > MONTH else 1
    changes = _changes(levels, interval)
    variance = sum((change - interval * drift) ** 2 for change in changes) / len(changes) / interval
    # The drift was fitted to the same days, so their residuals underestimate the future variance.
    return variance * (1 + (8 + 1.5 * interval) / len(levels))


def _passage_probability(distance: int, days: int, drift: float, variance: float) -> float:
    """Return the probability that a walk reaches `distance` within `days` (> 0)."""
    if not variance:
        return float(drift * days >= distance)
    scale = math.sqrt(variance * days)
    direct = _NORMAL.cdf((drift * days - distance) / scale)
    # exp(2 drift distance / variance) may overflow although the product does not.
    power = 2 * drift * distance / variance + _log_tail((drift * days + distance) / scale)
    return min(1.0, direct + math.exp(min(0.0, power)))


def _log_tail(z: float) -> float:
    """Return log P(X > z) of a standard normal X."""
    if z < 30:
        return math.log(0.5 * math.erfc(z / math.sqrt(2)))
    return -z * z / 2 - math.log(z * math.sqrt(2 * math.pi))


def whole_percent(share: float) -> int:
    """Return a share (0 to 1) as a percentage, rounded down; tolerates float error (0.29 * 100)."""
    return int(100 * share + 1e-9)
