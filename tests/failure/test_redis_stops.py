"""Rule `redis-only-triggers-work`: allocation, release and pages go on; workers resume alone."""

import signal
from collections.abc import Callable
from contextlib import AbstractContextManager

import pytest

from tests import eventually
from tests.edges import api as apis
from tests.failure.sites import Site

pytestmark = pytest.mark.usefixtures("well")
WAYS: dict[str, Callable[[Site], AbstractContextManager[None]]] = {
    "killed": lambda site: site.away("redis", signal.SIGKILL),
    "hangs": lambda site: site.stopped("redis"),
}


@pytest.mark.exhaustive
@pytest.mark.parametrize("way", WAYS)
def test_allocation_goes_on_and_workers_resume(site: Site, way: str) -> None:
    pool = site.pool(f"redis-{way}", f"10.9.{len(way)}.1/32")
    held = site.take(pool, "first")
    waiting = site.create(pool, apis.holder("next") | {"wait": True}, status=202)
    workers = site.pids("worker")[0]
    with WAYS[way](site):
        ready = site.ask("GET", "/readyz")
        assert (ready.status, ready.body["status"]) == (200, "degraded")
        # Somebody waits for this block: the bell is rung in vain. It takes 3 s of waiting for Redis;
        # if a web request waited as a worker does, it would take 10 s.
        answer = site.give_back(held)
        assert (answer.status, answer.seconds < 10) == (200, True), answer
        assert site.ask("GET", "blocks/?limit=1").status == 200
        assert site.take(site.pool(f"other-{way}", f"10.8.{len(way)}.0/24"), "x")
    site.scalar(_AT_ONCE)
    eventually.until(lambda: site.scalar(_STATE, waiting["id"]) == "fulfilled")
    site.gets_on("worker", "beat")
    assert site.pids("worker")[0] == workers


# What a worker tried in vain is tried again after half a minute.
_AT_ONCE = "UPDATE pools_allocationrequest SET next_try_at = now() RETURNING id"
_STATE = "SELECT state FROM pools_allocationrequest WHERE id = %s"
