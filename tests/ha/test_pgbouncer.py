"""Behind PgBouncer in transaction mode: everything works with DB_POOLER, and without it the start says so.

Debian's version is older than 1.21, so that it loses prepared statements, too.
"""

from __future__ import annotations

import os
import secrets
import subprocess
import sys
import urllib.parse
from collections.abc import Iterator
from functools import partial
from typing import TYPE_CHECKING, Any

import psycopg
import pytest

from ipam_site import data_folder
from tests import running_site, servers
from tests.concurrent import chaos
from tests.concurrent import crowd as crowds
from tests.ha import pgbouncer

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = pytest.mark.skipif(pgbouncer.program() is None, reason="no pgbouncer")


@pytest.fixture
def url() -> Iterator[str]:
    """An empty database of the server of the tests."""
    server = os.environ["DATABASE_URL"]
    name = f"cadastre_pooled_{secrets.token_hex(4)}"
    with psycopg.connect(server, autocommit=True) as connection:
        connection.execute(f"CREATE DATABASE {name}")
        yield urllib.parse.urlsplit(server)._replace(path=f"/{name}").geturl()
        servers.drop(connection, name)


def _run(*arguments: str, **env: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, *arguments],
        cwd=data_folder.PROJECT,
        env=os.environ | env,
        capture_output=True,
        text=True,
        check=False,
    )


def _readiness(url: str, **env: str) -> dict[str, Any]:
    """What /readyz of a web process with this database says, and what it logs."""
    code = (
        "import django; django.setup();"
        "from ipam_site.http import health; print(health.readiness()['checks']['database'])"
    )
    done = _run("-c", code, DATABASE_URL=url, IPAM_ROLE="web", **env)
    assert done.returncode == 0, done.stderr
    *log, answer = done.stdout.splitlines()
    return {"database": answer, "log": "\n".join(log)}


def test_a_pooler_that_refuses_settings_is_named(url: str) -> None:
    with pgbouncer.running(url) as pooled:
        done = _run("manage.py", "migrate", DATABASE_URL=pooled)
        assert done.returncode != 0
        assert "DB_POOLER=1" in done.stderr
        answer = _readiness(pooled)
        assert answer["database"] == "pooler"
        assert "DB_POOLER=1" in answer["log"]


def test_a_pooler_that_drops_settings_is_named(url: str) -> None:
    with pgbouncer.running(url, "ignore_startup_parameters = options", limits="") as pooled:
        assert _readiness(pooled)["database"] == "pooler"


def test_a_pooler_without_limits_is_named(url: str) -> None:
    with pgbouncer.running(url, limits="") as pooled:
        answer = _readiness(pooled, DB_POOLER="1")
        assert answer["database"] == "no limits"
        assert "statement_timeout" in answer["log"]


def test_everything_works(url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Clients that are killed lose nothing; the demo fleet is made, pages and exports answer."""
    monkeypatch.setenv("DB_POOLER", "1")  # of the site and of its commands
    with pgbouncer.running(url) as pooled, running_site.folder() as data:
        site = running_site.Site(data, "--no-demo", env={"DATABASE_URL": pooled})
        try:
            site.wait_until_ready()
            report = chaos.judge(
                site, [crowds.kill_client], partial(psycopg.connect, url, autocommit=True), tmp_path,
                seconds=12, clients=8, seed=1,
            )  # fmt: skip
            assert report.violations == ()
            assert report.deadlocks == 0
            assert report.too_weak(rate=10, faults=2) == []
            site.command("demo")
            browser = running_site.Browser(site.url)
            assert browser.login("admin", site.password)
            for path in (
                "/admin/", "/admin/pools/pool/", "/admin/pools/block/export/csv/", "/admin/claims/entry/",
                "/admin/pools/event/export/json/", "/admin/find/?q=10.0", "/api/v1/pools/", "/metrics",
            ):  # fmt: skip
                assert browser.get(path)[0] == 200, path
            site.command("ipam", "check")  # fails when a check finds a violation
        finally:
            site.end(seconds=120)
