"""A site is replaced by another on the same database while clients allocate: docs/how-to/upgrade.md.

Rule `upgrades-lose-nothing`: two versions with one schema run beside each other, and no promise is broken.
"""

import base64
import os
import pathlib
import secrets
from collections.abc import Iterator
from functools import partial

import psycopg
import pytest

from tests import running_site, servers
from tests.concurrent import chaos, crowd as crowds, journal
from tests.deploy import balancer as balancers, conftest


@pytest.fixture
def environment(worker_id: str) -> Iterator[dict[str, str]]:
    """The servers and the secrets that both versions share."""
    url = conftest.recreate(f"rolling_{worker_id}")
    key = base64.b64encode(secrets.token_bytes(32)).decode()
    with servers.redis() as redis:
        yield {
            "DATABASE_URL": url, "REDIS_URL": redis, "SECRET_KEY": secrets.token_urlsafe(64),
            "IPAM_KEY_RING": key,
        }  # fmt: skip
    with psycopg.connect(conftest.url_of("postgres"), autocommit=True) as connection:
        servers.drop(connection, f"rolling_{worker_id}")


def test_no_request_is_lost(environment: dict[str, str], tmp_path: pathlib.Path) -> None:
    replaced: list[running_site.Site] = []
    with (
        running_site.folder() as old_data,
        running_site.folder() as new_data,
        balancers.balancer() as balancer,
    ):

        def start(data: pathlib.Path) -> running_site.Site:
            site = running_site.Site(data, "--no-demo", env=environment)
            balancer.sites.append(site)
            return site.wait_until_ready()

        def replace(_crowd: crowds.Crowd) -> bool:
            """Start the new version, which migrates first; then drain and end the old one."""
            if replaced:
                return False
            (old,) = balancer.sites
            new = start(new_data)
            (old.data / "draining").touch()
            balancer.wait_until_only(new)
            old.end(seconds=120)
            balancer.sites.remove(old)
            replaced.append(old)
            return True

        start(old_data)
        balancer.look()
        try:
            report = chaos.judge(
                balancer, [replace], partial(psycopg.connect, environment["DATABASE_URL"], autocommit=True), tmp_path,  # type: ignore[arg-type]
                seconds=40, clients=4, seed=os.getpid(), slower=5,
            )  # fmt: skip
        finally:
            for site in balancer.sites:
                site.end(seconds=120)
    assert replaced
    assert (report.violations, report.audit) == ((), {})
    assert report.too_weak(rate=10, faults=1) == []
    operations = [op for path in tmp_path.glob("c*") for op in journal.read(path)]
    # "Try again" has a code, and is an answer.
    assert [op for op in operations if op.result == journal.UNKNOWN and not op.code] == []
