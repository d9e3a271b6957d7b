"""`manage.py up` with DATABASE_URL and REDIS_URL: on servers that are not its own."""

import os

import psycopg

from ipam_site import data_folder
from tests import eventually, running_site, servers

_NAME = "cadastre_up_external"


def test_up_uses_the_servers_it_was_given(redis_url: str) -> None:
    server = os.environ["DATABASE_URL"]
    base, _, _ = server.rpartition("/")
    urls = {"DATABASE_URL": f"{base}/{_NAME}", "REDIS_URL": f"{redis_url.removesuffix('/0')}/1"}
    with psycopg.connect(server, autocommit=True) as connection, running_site.folder() as data:
        connection.execute(f"CREATE DATABASE {_NAME}")
        site = running_site.Site(data, "--no-demo", env=urls)
        try:
            site.wait_until_ready()
            assert running_site.Browser(site.url).login("admin", site.password)
            assert running_site.status(f"{site.url}/readyz")[1]["status"] == "ok"
            assert site.command("token", "admin").startswith("cad_")
            assert data_folder.connections(data) == {
                name.lower(): url for name, url in urls.items()
            }
            assert not (data / "servers").exists()
            # Not at once: whatever they start for a moment is among them.
            eventually.until(lambda: _programs(site) == {"gunicorn", "celery", "django"})
        finally:
            site.end()
            servers.drop(connection, _NAME)


def _programs(site: running_site.Site) -> set[str]:
    """The modules that Python runs, and other programs as a whole; what is ending has no command."""
    commands = [command for command in site.descendants().values() if command]
    return {(command.split()[2:] or [command])[0] for command in commands}


def test_a_database_that_is_away_is_said_at_once() -> None:
    with running_site.folder() as data:
        away = {"DATABASE_URL": "postgresql://u:s3cret@127.0.0.1:1/n"}
        site = running_site.Site(data, "--no-demo", env=away)
        assert site.process.wait(120) == 1
        assert "could not be prepared" in site.output
        assert "Connection refused" in site.output
        assert "s3cret" not in site.output
