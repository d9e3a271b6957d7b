"""Point 14: cooldown is judged by the database's clock, whatever workers and clusters think it is."""

import datetime
import time

import pytest
from django.utils import timezone

from pools.models import Block
from tests.handlers.node_world import World, manifest
from tests.kube.fake import FakeCluster
from tests.pools.conftest import Clock

HOUR = 3600
MARGIN = 60  # seconds that a slow test may take


def _skewed(monkeypatch: pytest.MonkeyPatch, seconds: float) -> None:
    """The worker's clock; the database has its own."""
    right, now = time.time, timezone.now
    monkeypatch.setattr(time, "time", lambda: right() + seconds)
    monkeypatch.setattr(timezone, "now", lambda: now() + datetime.timedelta(seconds=seconds))


@pytest.mark.parametrize("worker", [0, HOUR, -HOUR, 30 * 24 * HOUR])
@pytest.mark.parametrize("created_at", ["1970-01-01T00:00:00Z", "2099-12-31T23:59:59Z"])
def test_clock_skew(
    worker: float, created_at: str, fake: FakeCluster, clock: Clock, monkeypatch: pytest.MonkeyPatch
) -> None:
    world = World(fake, managed_resource=True)
    world.pool("a", "10.0.0.0/24", cooldown=2 * HOUR)
    node = manifest("n1", lists={"a": ["10.0.0.0/24"]})
    node["metadata"]["creationTimestamp"] = created_at
    fake.put(node)
    world.passed()
    _skewed(monkeypatch, worker)
    world.follow_node("n1")
    assert Block.objects.get().state == "cooling"
    world.node("n2", demands={"a": 8})
    world.run()
    assert world.held() == {}
    clock.advance(2 * HOUR - MARGIN)
    world.run()
    assert world.held() == {}
    clock.advance(MARGIN)
    world.passed()
    assert world.held() == {"10.0.0.0/24": "n2"}


@pytest.mark.parametrize("back", [HOUR, 24 * HOUR])
def test_the_databases_clock_is_set_back(back: float, fake: FakeCluster, clock: Clock) -> None:
    """It gets longer, and never shorter."""
    world = World(fake, managed_resource=True)
    world.pool("a", "10.0.0.0/24", cooldown=HOUR)
    world.follow_node("n1", lists={"a": ["10.0.0.0/24"]})
    world.follow_node("n1")
    clock.advance(-back)
    world.node("n2", demands={"a": 8})
    world.run()
    clock.advance(HOUR - MARGIN)
    world.run()
    assert world.held() == {}
    clock.advance(back + MARGIN)
    world.run()
    assert world.held() == {"10.0.0.0/24": "n2"}
