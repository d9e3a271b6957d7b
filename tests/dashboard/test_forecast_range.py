"""The range of a forecast contains the true day about as often as it says: 80 %.

Pools are simulated until they are full; the forecast sees only the beginning. The series are of several
makes, none of which the forecast was fitted to: arrivals and departures, weeks with weekends, rare large
batches, noise around a line. Of rare large batches, which no short past shows in full, fewer are met;
of noise around a line more, because the forecast takes it for lasting change.
"""

import math
import random
from collections.abc import Callable, Iterator

import pytest

from pools.core import forecast

SERIES = 150
NEVER = 10**9
Changes = Callable[[random.Random, int], float]


def arrivals(rng: random.Random, mean: float) -> int:
    """A Poisson number."""
    limit, count, product = math.exp(-mean), 0, rng.random()
    while product > limit:
        count, product = count + 1, product * rng.random()
    return count


def net(come: float, go: float) -> Changes:
    return lambda rng, _day: arrivals(rng, come) - arrivals(rng, go)


def weekdays(rng: random.Random, day: int) -> int:
    return arrivals(rng, 7) if day % 7 < 5 else 0


def batches(rng: random.Random, day: int) -> int:
    return 30 if rng.random() < 0.1 else 0


def swings(rng: random.Random, day: int) -> int:
    return round(rng.gauss(3, 6))


def levels(change: Changes, rng: random.Random) -> Iterator[int]:
    level = 10_000.0
    for day in range(20_000):
        level += change(rng, day)
        yield round(level)


def share_met(change: Changes, history: int, mean: float) -> float:
    met = 0
    for seed in range(SERIES):
        rng = random.Random(f"{seed}/{history}/{mean}")  # noqa: S311  # the same in each run
        free = max(1, round(mean * rng.choice([7, 20, 40, 90])))
        series = levels(change, rng)
        past = dict(enumerate(next(series) for _ in range(history)))
        end = past[history - 1] + free
        true = next((ahead for ahead, level in enumerate(series, 1) if level >= end), NEVER)
        result = forecast.forecast(past, today=history - 1, free=free)
        earliest = forecast.HORIZON if result.earliest is None else result.earliest
        latest = NEVER if result.latest is None else result.latest
        met += earliest <= true <= latest
    return met / SERIES


@pytest.mark.sample(15)
@pytest.mark.parametrize("history", [14, 30, 60])
@pytest.mark.parametrize(
    ("change", "mean"),
    [(net(2, 0), 2), (net(20, 12), 8), (net(6, 5), 1), (weekdays, 5), (swings, 3)],
    ids=["arrivals", "turnover", "slow growth", "weekdays", "swings"],
)
def test_the_range_is_honest(change: Changes, mean: float, history: int) -> None:
    assert 0.72 <= share_met(change, history, mean) <= 1.0


@pytest.mark.parametrize("history", [30, 60])
def test_of_rare_large_batches_fewer_are_met(history: int) -> None:
    assert 0.6 <= share_met(batches, history, 3) <= 0.95


@pytest.mark.exhaustive
def test_over_all_makes_it_is_the_promised_share() -> None:
    shares = [
        share_met(change, history, mean)
        for change, mean in ((net(2, 0), 2), (net(20, 12), 8), (net(6, 5), 1), (swings, 3))
        for history in (30, 60)
    ]
    assert abs(sum(shares) / len(shares) - forecast.CONFIDENCE) < 0.06


def test_a_narrow_range_would_be_no_art_without_being_narrow() -> None:
    """With a long, steady past the range is a small part of the time ahead."""
    widths = []
    for seed in range(40):
        rng = random.Random(seed)  # noqa: S311
        series = levels(net(20, 0), rng)
        result = forecast.forecast(
            dict(enumerate(next(series) for _ in range(60))), today=59, free=1200
        )
        assert result.latest is not None
        assert result.earliest is not None
        widths.append(result.latest - result.earliest)
    assert sum(widths) / len(widths) < 15  # of 60 days ahead
