"""Allocations, failures and releases are counted from the event tables: each once."""

import pgtrigger
import pytest

from pools.core import errors
from pools.models import BlockEvent, CountedUntil
from pools.platform.metrics import registry
from tests import factories
from tests.metrics import scrapes

ALLOCATED = {"category": "vm", "result": "allocated"}
FAILED = {"category": "vm", "result": "failed"}


@pytest.fixture(autouse=True)
def _numbers(db: None) -> None:
    factories.number_events_from_one()


@pytest.mark.exhaustive
def test_what_happened_is_counted_once() -> None:
    pool = factories.pool("10.0.0.0/30", allow_first_ip=True, allow_last_ip=True)
    blocks = [factories.take(pool) for _ in range(4)]
    with pytest.raises(errors.PoolExhausted):
        factories.take(pool)
    factories.give_back(blocks[0])
    for _scrape in range(3):
        assert scrapes.value("ipam_allocations_total", **ALLOCATED) == 4
        assert scrapes.value("ipam_allocations_total", **FAILED) == 1
        reasons = scrapes.author("reason", "ipam_allocation_failures_total", category="vm")
        assert reasons == {"ipam_exhausted": 1}
        assert scrapes.value("ipam_releases_total", category="vm") == 1
    factories.take(pool)
    assert scrapes.value("ipam_allocations_total", **ALLOCATED) == 5


def test_a_batch_counts_each_block() -> None:
    pool = factories.pool("10.0.0.0/24")
    factories.ask(pool, *factories.holders(50))
    assert scrapes.value("ipam_allocations_total", **ALLOCATED) == 50


def test_a_release_within_a_cooldown_and_the_return_are_both_counted() -> None:
    pool = factories.pool("10.0.0.0/24", cooldown=3600)
    who = factories.holder("back")
    factories.give_back(factories.take(pool, who))
    factories.take(pool, who)
    assert scrapes.value("ipam_allocations_total", **ALLOCATED) == 2
    assert scrapes.value("ipam_releases_total", category="vm") == 1


def test_events_that_are_purged_stay_counted() -> None:
    pool = factories.pool("10.0.0.0/24")
    block = factories.take(pool)
    factories.give_back(block)
    registry.count_events()
    with pgtrigger.ignore("pools.BlockEvent:append_only"):
        assert BlockEvent.objects.all().delete()[0] > 0
    assert scrapes.value("ipam_allocations_total", **ALLOCATED) == 1
    assert scrapes.value("ipam_releases_total", category="vm") == 1


def test_long_backlogs_are_counted_in_steps(monkeypatch: pytest.MonkeyPatch) -> None:
    assert registry.count_events(seconds=60)  # the numbers that other tests have drawn
    monkeypatch.setattr(registry, "STEP", 7)
    pool = factories.pool("10.0.0.0/24")
    factories.ask(pool, *factories.holders(50))
    assert not registry.count_events(seconds=-1)
    assert registry.count_events(seconds=60)
    assert scrapes.value("ipam_allocations_total", **ALLOCATED) == 50


def test_a_register_that_was_restored_to_an_earlier_number_goes_on() -> None:
    pool = factories.pool("10.0.0.0/24")
    factories.take(pool)
    registry.count_events()
    CountedUntil.objects.update(counted=1 << 40, assigned=1 << 40)
    factories.take(pool)
    registry.count_events()
    factories.take(pool)
    assert scrapes.value("ipam_allocations_total", **ALLOCATED) == 2


def test_before_anything_happened_every_category_is_there_with_zero() -> None:
    results = scrapes.families()["ipam_allocations"].samples
    assert len(results) == 10
    assert {sample.value for sample in results} == {0}
