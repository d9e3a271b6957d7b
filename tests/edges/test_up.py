"""`manage.py up` from outside: it really starts, and it keeps its children alive."""

import os
import pathlib
import signal
import stat
import subprocess
import sys
from collections.abc import Iterator

import pytest

from ipam_site import data_folder
from ipam_site.supervisor import processes
from tests import eventually, running_site


@pytest.fixture(scope="module")
def full_disk() -> Iterator[tuple[pathlib.Path, subprocess.CompletedProcess[str]]]:
    """A data folder, and how a first start without room for a database ended."""
    with running_site.folder() as data:
        up = [sys.executable, "manage.py", "up", f"--port={processes.free_port()}"]
        done = subprocess.run(
            ["sh", "-c", 'ulimit -f 64; exec "$@"', "sh", *up, f"--data={data}"],
            cwd=data_folder.PROJECT,
            env=running_site.environment(),
            capture_output=True,
            text=True,
            check=False,
        )
        assert not (data / "servers/postgres").exists()
        yield data, done


@pytest.fixture(scope="module")
def site(
    full_disk: tuple[pathlib.Path, subprocess.CompletedProcess[str]],
) -> Iterator[running_site.Site]:
    """The start after that one, which is a first start like any other."""
    running = running_site.Site(full_disk[0], "--no-demo")
    try:
        yield running.wait_until_ready()
    finally:
        running.end()


@pytest.mark.exhaustive
def test_a_database_that_cannot_be_made_is_said_and_tried_again(
    full_disk: tuple[pathlib.Path, subprocess.CompletedProcess[str]], site: running_site.Site
) -> None:
    _, done = full_disk
    assert done.returncode == 1
    assert "CommandError: initdb failed" in done.stderr
    assert "Traceback" not in done.stderr
    assert running_site.status(f"{site.url}/readyz")[0] == 200


def test_the_printed_password_opens_the_admin(site: running_site.Site) -> None:
    browser = running_site.Browser(site.url)
    assert browser.login("admin", site.password)
    assert not running_site.Browser(site.url).login("admin", "wrong")


def test_static_files_come_from_this_site(site: running_site.Site) -> None:
    browser = running_site.Browser(site.url)
    _, page = browser.get("/admin/login/")
    assert "https://" not in page.replace("https://unfoldadmin.com", "")
    status, _ = browser.get("/static/unfold/css/styles.css")
    assert status == 200


@pytest.mark.exhaustive
def test_a_command_finds_the_running_database(site: running_site.Site) -> None:
    token = site.command("token", "admin")
    assert token.strip().startswith("cad_")
    assert len(token.split()) == 1
    assert "t\n" in site.command("shell", "-c", _IS_LIMITED)


_IS_LIMITED = """
from django.db import connection
with connection.cursor() as cursor:
    cursor.execute("SELECT NOT rolsuper AND NOT rolcreatedb FROM pg_roles WHERE rolname = current_user")
    print("t" if cursor.fetchone()[0] else "f")
"""


def test_secrets_are_the_owners_only(site: running_site.Site) -> None:
    for name in ("secrets.json", "connections.json"):
        assert stat.S_IMODE((site.data / name).stat().st_mode) == 0o600
    secrets = data_folder.secrets(site.data).values()
    shown = " ".join(site.descendants().values())
    logged = "".join(log.read_text() for log in (site.data / "logs").iterdir())
    assert not [secret for secret in secrets if secret in shown + logged + site.output]


def test_the_servers_want_a_password(site: running_site.Site) -> None:
    connections = data_folder.connections(site.data)
    for url in connections.values():
        assert "@127.0.0.1:" in url
    import psycopg
    import redis

    wrong = connections["database_url"].replace("://cadastre:", "://cadastre:x")
    with pytest.raises(psycopg.OperationalError, match="password authentication failed"):
        psycopg.connect(wrong)
    port = int(connections["redis_url"].rpartition(":")[2].split("/")[0])
    with redis.Redis(port=port) as client, pytest.raises(redis.AuthenticationError):
        client.ping()


@pytest.mark.exhaustive
def test_a_second_up_on_the_folder_is_refused(site: running_site.Site) -> None:
    second = running_site.Site(site.data, "--no-demo")
    assert second.process.wait(120) == 1
    assert f"in use by another `up`, process {site.process.pid}" in second.output
    assert running_site.status(f"{site.url}/readyz")[0] == 200


@pytest.mark.exhaustive
def test_a_taken_port_is_refused(site: running_site.Site) -> None:
    with running_site.folder() as data:
        command = [sys.executable, "manage.py", "up", f"--port={site.port}", f"--data={data}"]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 1
    assert "choose another PORT" in done.stderr


@pytest.mark.exhaustive
@pytest.mark.parametrize(
    "name",
    [
        "gunicorn",
        "--queues=ipam.default",
        "--queues=ipam.clusters",
        "ipam_site beat",
        "django watch",
        "redis-server",
        "bin/postgres",
    ],
)
def test_a_dead_child_is_started_again(site: running_site.Site, name: str) -> None:
    before = site.pids(f"{name} ")
    assert before
    os.kill(before[0], signal.SIGKILL)
    eventually.until(lambda: bool({*site.pids(f"{name} ")} - {*before}))
    eventually.until(lambda: _ready(site))
    eventually.until(lambda: not running_site.alive(dict.fromkeys(before, "")))


def _ready(site: running_site.Site) -> bool:
    code, body = running_site.status(f"{site.url}/readyz")
    return code == 200 and body["status"] == "ok"
