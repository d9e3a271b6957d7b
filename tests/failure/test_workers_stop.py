"""Rule `workers-may-stop-or-double`: workers and beat stop, run twice, get messages three times."""

import os
import subprocess
import sys

import pytest
import redis

from ipam_site import data_folder, worker_health
from tests import eventually
from tests.edges import api as apis
from tests.failure.sites import Site

pytestmark = pytest.mark.usefixtures("well")
HELPERS = ("worker", "reconciler", "watcher", "beat")
_STATE = "SELECT state FROM pools_allocationrequest WHERE id = %s"
_EVENTS = "SELECT count(*) FROM pools_blockevent WHERE pgh_obj_id = %s AND pgh_label = %s"
_AT_ONCE = "UPDATE pools_allocationrequest SET next_try_at = now() RETURNING id"


def test_without_workers_cooldowns_end_and_requests_wait(site: Site) -> None:
    full = site.pool("full", "10.20.0.1/32")
    cools = site.pool("cools", "10.20.1.1/32", cooldown=1)
    held, used = site.take(full, "first"), site.take(cools, "brief")
    waiting = site.create(full, apis.holder("next") | {"wait": True}, status=202)
    with site.stopped(*HELPERS):
        site.give_back(used)
        site.give_back(held)
        # Nobody tidies: the allocator sees by itself that the time is over.
        eventually.until(lambda: site.ask("POST", cools, apis.holder("other")).status == 201)
        assert site.scalar(_STATE, waiting["id"]) == "pending"
        # Another may be faster than who waits; here nobody asks.
        data = site.running.data
        assert all(
            worker_health.stuck_reason(name, data, max_age=0.5) for name in ("watcher", "beat")
        )
    site.scalar(_AT_ONCE)
    eventually.until(lambda: site.scalar(_STATE, waiting["id"]) == "fulfilled")
    assert site.scalar(_EVENTS, used["id"], "allocated") == 2


@pytest.mark.exhaustive
def test_two_beats_and_tripled_messages_change_nothing_more(site: Site) -> None:
    pool = site.pool("tripled", "10.21.0.1/32", cooldown=1)
    environment = {
        **os.environ,
        "IPAM_DATA": str(site.running.data),
        "DATABASE_URL": site.database_url,
        "REDIS_URL": data_folder.connections(site.running.data)["redis_url"],
        "IPAM_ROLE": "beat",
    }
    second = [sys.executable, "-m", "celery", "-A", "ipam_site", "beat", "--loglevel=ERROR"]
    with subprocess.Popen(
        second, cwd=data_folder.PROJECT, env=environment, stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    ) as other:  # fmt: skip
        try:
            held = site.take(pool, "first")
            waiting = site.create(pool, apis.holder("next") | {"wait": True}, status=202)
            _triple(site)
            site.give_back(held)
            site.scalar(_AT_ONCE)
            eventually.until(lambda: site.scalar(_STATE, waiting["id"]) == "fulfilled")
        finally:
            other.terminate()
    assert site.scalar(_EVENTS, held["id"], "released") == 1
    assert site.scalar(_EVENTS, held["id"], "allocated") == 2
    assert site.scalar(
        "SELECT count(*) FROM pools_block WHERE state = 'held' AND id = %s", held["id"]
    )


def _triple(site: Site) -> None:
    """Each message that waits, twice more, for some seconds."""
    url = data_folder.connections(site.running.data)["redis_url"]
    tripled = 0
    with redis.Redis.from_url(url) as broker, site.stopped("worker"):
        eventually.until(lambda: broker.llen("ipam.default") > 3)
        for message in broker.lrange("ipam.default", 0, -1):
            broker.lpush("ipam.default", message, message)
            tripled += 1
    assert tripled


@pytest.mark.exhaustive
def test_a_worker_that_takes_nothing_is_seen(site: Site) -> None:
    """Not one that has nothing to do: messages wait for it."""
    data = site.running.data
    assert not worker_health.stuck_reason("worker", data)
    with site.stopped("worker"):
        eventually.until(lambda: bool(worker_health.stuck_reason("worker", data, max_age=1)))
    eventually.until(lambda: not worker_health.stuck_reason("worker", data, max_age=10))
    # The reconciler has no cluster, and so no message.
    assert not worker_health.stuck_reason("reconciler", data, max_age=0)
    assert worker_health.stuck_reason("beat", data / "elsewhere") == "beat did not start"
