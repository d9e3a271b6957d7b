"""How `manage.py up` ends: nothing stays behind, nothing is lost."""

import pathlib
import signal
from collections.abc import Iterator

import pytest

from ipam_site import data_folder
from ipam_site.supervisor import embedded, run
from tests import eventually, running_site

_PROGRAMS = (
    "gunicorn",
    "celery -A ipam_site worker",
    "celery -A ipam_site beat",
    "redis",
    "postgres",
)


@pytest.fixture(scope="module")
def data() -> Iterator[pathlib.Path]:
    with running_site.used() as folder:
        yield folder


def test_kill_9_leaves_no_process_and_loses_nothing_and_ctrl_c_stops_in_time(
    data: pathlib.Path,
) -> None:
    site = running_site.Site(data, "--no-demo").wait_until_ready()
    password, secrets = site.password, data_folder.secrets(data)
    token = site.command("token", "admin")
    children = site.descendants()
    assert not [
        program
        for program in _PROGRAMS
        if not any(program in command for command in children.values())
    ]
    site.end(signal.SIGKILL)
    # Started again at once, when the servers may still be on their way down.
    again = running_site.Site(data, "--no-demo")
    try:
        eventually.until(lambda: not running_site.alive(children))
        again.wait_until_ready()
        assert "shown only once" not in again.output
        assert running_site.Browser(again.url).login("admin", password)
        assert data_folder.secrets(data) == secrets
        assert "1" in again.command("shell", "-c", _COUNT.format(token=token.strip()))
    finally:
        children = again.descendants()
        assert again.end(signal.SIGINT) < 10  # Ctrl-C; SIGTERM: tests/edges/test_up_stops.py
    assert again.process.returncode == 0
    assert not running_site.alive(children)


_COUNT = """
from knox import auth
print(auth.TokenAuthentication().authenticate_credentials(b"{token}")[0].pk)
"""


def test_all_are_ended_within_ten_seconds_however_long_each_takes() -> None:
    site = [sum(seconds for _, seconds in spec.stop) for spec in run._site_specs({})]
    servers = [sum(seconds for _, seconds in stop) for stop in embedded.STOP.values()]
    assert len(site) == 5
    assert len(servers) == 2
    assert max(site) + sum(servers) < 10  # see run._stop


def test_a_stop_in_the_middle_of_the_start_leaves_nothing(data: pathlib.Path) -> None:
    site = running_site.Site(data, "--no-demo")
    eventually.until(lambda: "preparing" in site.output)
    children = site.descendants()
    assert children
    assert site.end(signal.SIGTERM) < 10
    assert not running_site.alive(children)
