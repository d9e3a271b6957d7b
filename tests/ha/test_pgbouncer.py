"""Behind PgBouncer in transaction mode: everything works with DB_POOLER, and without it the start says so.

Debian's version; TEST_PGBOUNCER_BIN names another one.
"""

import os
import secrets
import subprocess
import sys
import urllib.parse
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any

import psycopg
import pytest

from ipam_site import data_folder
from tests import running_site, servers
from tests.concurrent import chaos, crowd as crowds
from tests.ha import pgbouncer

pytestmark = pytest.mark.skipif(not pgbouncer.PROGRAMS, reason="no pgbouncer")


@pytest.fixture(params=pgbouncer.PROGRAMS)
def program(request: pytest.FixtureRequest) -> str:
    return str(request.param)


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


def test_a_pooler_that_refuses_settings_is_named(program: str, url: str) -> None:
    with pgbouncer.running(program, url) as pooled:
        done = _run("manage.py", "migrate", DATABASE_URL=pooled)
        assert done.returncode != 0
        assert "DB_POOLER=1" in done.stderr
        answer = _readiness(pooled)
        assert answer["database"] == "pooler"
        assert "DB_POOLER=1" in answer["log"]


def test_a_pooler_that_drops_settings_is_named(program: str, url: str) -> None:
    with pgbouncer.running(
        program, url, "ignore_startup_parameters = options", limits=""
    ) as pooled:
        assert _readiness(pooled)["database"] == "pooler"


def test_a_pooler_without_limits_is_named(program: str, url: str) -> None:
    with pgbouncer.running(program, url, limits="") as pooled:
        answer = _readiness(pooled, DB_POOLER="1")
        assert answer["database"] == "no limits"
        assert "statement_timeout" in answer["log"]


@pytest.mark.parametrize("role", ["command", "worker"])
def test_a_process_refuses_to_work_without_the_settings_of_its_sessions(
    program: str, url: str, role: str
) -> None:
    with pgbouncer.running(program, url, "ignore_startup_parameters = options") as pooled:
        done = _run("manage.py", "migrate", DATABASE_URL=pooled, IPAM_ROLE=role)
    assert done.returncode != 0
    assert "set DB_POOLER=1" in done.stderr


@pytest.mark.parametrize(("command", "role"), [("migrate", "worker"), ("prepare", "command")])
def test_workers_and_a_start_refuse_to_work_without_limits(
    program: str, url: str, command: str, role: str
) -> None:
    with pgbouncer.running(program, url, limits="") as pooled:
        done = _run("manage.py", command, DATABASE_URL=pooled, DB_POOLER="1", IPAM_ROLE=role)
    assert done.returncode != 0
    assert "no statement_timeout" in done.stderr


_STATEMENTS = """
import django; django.setup()
from django.db import transaction
from pools.platform import database
for number in range(300):
    assert database.call(f"SELECT '{number} ' || %s::text", ["x"]) == f"{number} x"
    try:
        with transaction.atomic():
            database.rows(f"SELECT %s::int + {number}", [1], prepare=True)
            raise KeyError
    except KeyError:  # a rollback: psycopg drops all that it has prepared
        assert database.call("SELECT 'after ' || %s::text", ["x"]) == "after x"
"""


def test_statements_outlive_rollbacks(program: str, url: str) -> None:
    with pgbouncer.running(program, url) as pooled:
        done = _run("-c", _STATEMENTS, DATABASE_URL=pooled, DB_POOLER="1")
    assert done.returncode == 0, done.stderr


def test_backup_and_restore_refuse_a_pooler(program: str, url: str) -> None:
    with pgbouncer.running(program, url) as pooled:
        done = _run("manage.py", "pg_environment", DATABASE_URL=pooled, DB_POOLER="1")
    assert done.returncode != 0
    assert "through_a_pooler" in done.stderr


def test_everything_works(
    program: str, url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Clients that are killed lose nothing; the demo fleet is made, pages and exports answer."""
    monkeypatch.setenv("DB_POOLER", "1")  # of the site and of its commands
    with pgbouncer.running(program, url) as pooled, running_site.folder() as data:
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
            site.command("check_data")  # fails when a check finds a violation
        finally:
            site.end(seconds=120)
