"""Counting and timing: never in the way of the caller, and never more than fits."""

import math
import threading
import time

import pytest
from celery import signals

from pools.models import Measure
from pools.platform import process_metrics
from tests import clock
from tests.metrics import scrapes


@pytest.fixture(autouse=True)
def _fresh(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(process_metrics, "_process", process_metrics._Process())


def stored() -> dict[tuple[str, str], float]:
    return {(row.name, row.labels): row.value for row in Measure.objects.all()}


def test_counts_are_summed_by_labels_in_any_order() -> None:
    process_metrics.count("a_total", cluster="x", verb="get")
    process_metrics.count("a_total", 2, verb="get", cluster="x")
    process_metrics.count("a_total", cluster="y", verb="get")
    process_metrics.flush()
    process_metrics.count("a_total", 4, cluster="x", verb="get")
    process_metrics.flush()
    assert stored() == {
        ("a_total", '{"cluster": "x", "verb": "get"}'): 7,
        ("a_total", '{"cluster": "y", "verb": "get"}'): 1,
    }


@pytest.mark.sample(5)
@pytest.mark.parametrize(
    ("seconds", "buckets"),
    [
        (0.0005, {"0.001": 1, "0.0025": 1, "5.0": 1, "+Inf": 1}),
        (0.001, {"0.001": 1, "+Inf": 1}),
        (0.0011, {"0.001": 0, "0.0025": 1, "+Inf": 1}),
        (5, {"2.5": 0, "5.0": 1, "+Inf": 1}),
        (60, {"5.0": 0, "+Inf": 1}),
    ],
)
def test_a_histogram_holds_in_each_bucket_those_below_it(
    seconds: float, buckets: dict[str, float]
) -> None:
    process_metrics.observe("ipam_allocation_duration_seconds", seconds)
    process_metrics.flush()
    result = scrapes.author("le", "ipam_allocation_duration_seconds_bucket")
    assert {end: result[end] for end in buckets} == buckets
    assert scrapes.value("ipam_allocation_duration_seconds_count") == 1
    assert scrapes.value("ipam_allocation_duration_seconds_sum") == seconds


def test_a_mark_is_the_time_of_the_database_when_it_was_set() -> None:
    process_metrics.mark("ipam_scheduler_last_tick_timestamp_seconds")
    time.sleep(1)
    later = clock.moment().timestamp()
    process_metrics.flush()
    value = scrapes.value("ipam_scheduler_last_tick_timestamp_seconds")
    assert value < later - 0.5, "when it was written does not matter"


def test_an_older_mark_does_not_move_a_later_one_back() -> None:
    Measure.objects.create(name="ipam_scheduler_last_tick_timestamp_seconds", value=4e9)
    process_metrics.mark("ipam_scheduler_last_tick_timestamp_seconds")
    process_metrics.flush()
    assert scrapes.value("ipam_scheduler_last_tick_timestamp_seconds") == 4e9


@pytest.mark.parametrize("amount", [math.nan, math.inf, -math.inf])
def test_what_is_no_number_spoils_no_total(amount: float) -> None:
    process_metrics.count("a_total", amount)
    process_metrics.observe("ipam_allocation_duration_seconds", amount)
    process_metrics.count("a_total")
    process_metrics.flush()
    assert all(math.isfinite(value) for value in stored().values())


def test_what_does_not_fit_is_left_out_and_what_is_known_goes_on(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(process_metrics, "MOST_SERIES", 3)
    for number in range(10):
        process_metrics.count("a_total", cluster=str(number))
        process_metrics.count("a_total", cluster="0")
    process_metrics.flush()
    assert len(stored()) == 3
    assert stored()["a_total", '{"cluster": "0"}'] == 11


def test_threads_lose_nothing() -> None:
    def work() -> None:
        for _ in range(2000):
            process_metrics.count("a_total")

    running = [threading.Thread(target=work) for _ in range(8)]
    for thread in running:
        thread.start()
    process_metrics.flush()
    for thread in running:
        thread.join()
    process_metrics.flush()
    assert stored() == {("a_total", "{}"): 16_000}


def test_a_child_of_a_celery_worker_writes_before_it_ends() -> None:
    import ipam_site.celery  # noqa: F401  # registers the signal

    process_metrics.count("a_total")
    signals.worker_process_shutdown.send(sender=None, pid=1, exitcode=0)
    assert stored() == {("a_total", "{}"): 1}
