"""Rule `redis-only-triggers-work`, with a group of Redis servers: workers follow the primary that Sentinel chooses."""

import os
import signal
from collections.abc import Iterator
from functools import partial
from pathlib import Path

import psycopg
import pytest

from tests import eventually, running_site
from tests.concurrent import chaos, crowd as crowds
from tests.edges import api as apis
from tests.failure import redis_group
from tests.failure.sites import Site


@pytest.fixture(scope="module")
def group() -> Iterator[redis_group.Group]:
    with redis_group.running() as running:
        yield running


@pytest.fixture
def sentinel_site(group: redis_group.Group) -> Iterator[Site]:
    with running_site.folder() as data:
        running = running_site.Site(data, "--no-demo", env={"REDIS_URL": group.url})
        try:
            yield Site(running.wait_until_ready())
        finally:
            running.end()


@pytest.mark.parametrize("signum", [signal.SIGKILL, signal.SIGSTOP], ids=["killed", "hangs"])
def test_the_primary_is(
    group: redis_group.Group, sentinel_site: Site, signum: int, tmp_path: Path
) -> None:
    site = sentinel_site
    workers = site.pids("worker")[0]
    primary = group.wait_until_whole()
    harmed: list[int] = []

    def fault(_crowd: crowds.Crowd) -> bool:
        if harmed:
            return False
        harmed.append(primary)
        group.servers[primary].send_signal(signum)
        return True

    try:
        report = chaos.judge(
            site.running, [fault], partial(psycopg.connect, site.database_url, autocommit=True), tmp_path,
            seconds=10, clients=4, seed=os.getpid(), slower=5,
        )  # fmt: skip
        assert (report.violations, report.audit) == ((), {})
        assert report.too_weak(rate=10, faults=1, reuse=0) == []
        eventually.until(lambda: group.primary() != primary)
        eventually.until(site.ready)
        site.gets_on("worker", "beat")
        pool = site.pool(f"redis-{signum}", f"10.9.{signum}.1/32")
        block = site.take(pool, "first")
        waiting = site.create(pool, apis.holder("next") | {"wait": True}, status=202)
        assert site.give_back(block).status == 200
        # Sooner than without a message: what is overdue by a minute is done anyway.
        eventually.until(lambda: site.scalar(_STATE, waiting["id"]) == "fulfilled", seconds=30)
        assert site.pids("worker")[0] == workers
    finally:
        group.servers[primary].send_signal(signal.SIGCONT)
        group.servers[primary].kill()
        group.servers[primary].wait()
        group.start_server(primary, group.primary())
        group.wait_until_whole()


_STATE = "SELECT state FROM pools_allocationrequest WHERE id = %s"
