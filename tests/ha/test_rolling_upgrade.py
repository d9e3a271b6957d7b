"""An upgrade of schema, web and workers under load, and the way back: docs/how-to/upgrade.md.

Rule `old-code-runs-on-the-new-schema`: two releases run beside each other, and no promise is broken.
"""

from __future__ import annotations

import base64
import itertools
import os
import pathlib
import secrets
from collections.abc import Iterator
from functools import partial

import psycopg
import pytest

from tests import eventually, running_site, servers
from tests.concurrent import chaos, journal
from tests.concurrent import crowd as crowds
from tests.deploy import conftest, trees
from tests.edges import api as apis
from tests.failure.sites import Site
from tests.ha import rolling

GAP = 10.0  # seconds without any answered allocation, on a machine with two cores and two sites


@pytest.fixture(scope="module")
def environment(worker_id: str) -> Iterator[dict[str, str]]:
    """The servers and the secrets that both releases share."""
    url = conftest.recreate(f"rolling_{worker_id}")
    key = base64.b64encode(secrets.token_bytes(32)).decode()
    with servers.redis() as redis:
        yield {
            "DATABASE_URL": url, "REDIS_URL": redis, "SECRET_KEY": secrets.token_urlsafe(64),
            "IPAM_KEY_RING": key,
        }  # fmt: skip
    with psycopg.connect(conftest.url_of("postgres"), autocommit=True) as connection:
        servers.drop(connection, f"rolling_{worker_id}")


def test_upgrade_and_rollback(environment: dict[str, str], tmp_path: pathlib.Path) -> None:
    following = trees.following(tmp_path / "next")
    url = environment["DATABASE_URL"]
    steps: list[str] = []
    with (
        running_site.folder() as old_data,
        running_site.folder() as new_data,
        running_site.folder() as again_data,
        rolling.balancer() as balancer,
    ):

        def start(data: pathlib.Path, tree: pathlib.Path) -> running_site.Site:
            site = running_site.Site(data, "--no-demo", env=environment, tree=tree)
            balancer.sites.append(site)
            return site.wait_until_ready()

        def replace(data: pathlib.Path, tree: pathlib.Path) -> None:
            """Start the other release, which migrates first; then drain and end the one before."""
            before = balancer.sites[-1]
            site = start(data, tree)
            eventually.until(lambda: running_site.status(f"{site.url}/readyz")[0] == 200)
            (before.data / "draining").touch()
            balancer.wait_until_only(site)
            before.end(seconds=120)
            balancer.sites.remove(before)

        def fault(_crowd: crowds.Crowd) -> bool:
            if len(steps) == 2:
                return False
            steps.append("back" if steps else "forth")
            data, tree = (
                (again_data, conftest.release.PROJECT) if steps[1:] else (new_data, following)
            )
            replace(data, tree)
            return True

        start(old_data, conftest.release.PROJECT)
        balancer.look()
        try:
            report = chaos.judge(
                balancer, [fault], partial(psycopg.connect, url, autocommit=True), tmp_path,  # type: ignore[arg-type]
                seconds=90, clients=4, seed=os.getpid(), slower=5,
            )  # fmt: skip
            assert steps == ["forth", "back"]
            assert (report.violations, report.audit) == ((), {})
            assert report.too_weak(rate=10, faults=2) == []
            ended = sorted(
                op.ended
                for path in tmp_path.glob("c*")
                for op in journal.read(path)
                if op.result == journal.OK and op.ended is not None
            )
            gap = max(after - before for before, after in itertools.pairwise(ended))
            print(f"longest gap {gap:.1f} s, {report.numbers}")  # noqa: T201
            assert gap < GAP
            with psycopg.connect(url) as database:
                assert database.execute("SELECT is_new()").fetchone() == (1,)
            _serve_a_waiting_request(Site(balancer.sites[0]))
        finally:
            for site in balancer.sites:
                site.end(seconds=120)


def _serve_a_waiting_request(site: Site) -> None:
    """The workers of the release that runs now do their work."""
    pool = site.pool("waited-for", "10.99.0.1/32")
    block = site.take(pool, "first")
    waiting = site.create(pool, apis.holder("next") | {"wait": True}, status=202)
    assert site.give_back(block).status == 200
    state = "SELECT state FROM pools_allocationrequest WHERE id = %s"
    eventually.until(lambda: site.one(state, waiting["id"]) == "fulfilled", seconds=30)
