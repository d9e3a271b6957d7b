"""Events are kept for ever, or for as many days as a setting says."""

from __future__ import annotations

import pytest

from pools.models import BlockEvent, Event
from pools.register import retention
from tests import factories

pytestmark = pytest.mark.django_db


def test_old_events_go_and_younger_ones_stay(clock) -> None:
    pool = factories.pool("10.0.0.0/24")
    factories.give_back(factories.take(pool))
    clock.advance(10 * 24 * 3600)
    young = factories.take(factories.pool("10.0.0.0/24"))
    assert retention.purge_events(9) > 0
    assert [str(event.cidr) for event in BlockEvent.objects.all()] == [young["cidr"]]


@pytest.mark.parametrize("days", [0, -1])
def test_nothing_goes_without_the_setting(days: int, clock) -> None:
    factories.take(factories.pool("10.0.0.0/24"))
    clock.advance(1000 * 24 * 3600)
    before = Event.objects.count()
    assert retention.purge_events(days) == 0
    assert Event.objects.count() == before
