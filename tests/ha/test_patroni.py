"""The primary of three PostgreSQL servers under Patroni dies, is cut off or stands still, under load.

Rules `acknowledged-is-durable` and `no-database-no-allocation`: nothing that was answered is lost, nothing is
held by two, and allocation goes on by itself.
"""

import os
import secrets
import signal
import time
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path

import psycopg
import pytest

from tests import running_site
from tests.concurrent import chaos, crowd as crowds, journal
from tests.ha import patroni

pytestmark = pytest.mark.skipif(bool(patroni.missing()), reason=f"no Patroni: {patroni.missing()}")

# Seconds from the fault to the next answered allocation. A leader that says nothing is replaced after 20 s.
ANSWERS_AGAIN = 30
SECONDS = 50.0


@pytest.fixture(scope="module")
def cluster() -> Iterator[patroni.Cluster]:
    with patroni.running() as running:
        yield running


@pytest.fixture
def url(cluster: patroni.Cluster) -> str:
    """A database of this test alone."""
    name = f"cadastre_{secrets.token_hex(4)}"
    cluster.make_database(name)
    return cluster.url(name)


@pytest.fixture
def site(url: str) -> Iterator[running_site.Site]:
    with running_site.folder() as data:
        site = running_site.Site(data, "--no-demo", env={"DATABASE_URL": url})
        try:
            yield site.wait_until_ready()
        finally:
            site.end(seconds=120)


def _kill(node: patroni.Node) -> None:
    node.signal(signal.SIGKILL)


def _cut_off(node: patroni.Node) -> None:
    node.connect(up=False)


def _freeze(node: patroni.Node) -> None:
    node.signal(signal.SIGSTOP)


@pytest.mark.parametrize("harm", [_kill, _cut_off, _freeze], ids=["killed", "cut off", "frozen"])
def test_the_primary_is(
    harm: Callable[[patroni.Node], None],
    cluster: patroni.Cluster,
    site: running_site.Site,
    url: str,
    tmp_path: Path,
) -> None:
    harmed: list[tuple[patroni.Node, float]] = []

    def trouble(_crowd: crowds.Crowd) -> bool:
        if harmed:
            return False
        leader = cluster.wait_until_whole()
        harm(leader)
        harmed.append((leader, time.monotonic()))
        return True

    try:
        report = chaos.judge(
            site, [trouble], partial(psycopg.connect, url, autocommit=True), tmp_path,
            seconds=SECONDS, clients=6, seed=os.getpid(), slower=5,
        )  # fmt: skip
        ((node, since),) = harmed
        again = min(
            op.ended
            for path in tmp_path.glob("c*")
            for op in journal.read(path)
            if op.result == journal.OK and op.invoked > since and op.ended is not None
        )
        assert report.violations == ()
        assert report.audit == {}
        assert report.too_weak(rate=20, faults=1) == []
        assert again - since < ANSWERS_AGAIN
        successor = cluster.leader()
        assert successor is not None
        assert successor.number != node.number
        print(f"answers again after {again - since:.1f} s, {report.numbers}")  # noqa: T201
    finally:
        cluster.heal()
        cluster.wait_until_whole()
