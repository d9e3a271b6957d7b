"""A real `manage.py up` for tests: its own port, its own data folder, plain HTTP."""

from __future__ import annotations

import contextlib
import fcntl
import http.cookiejar
import json
import os
import pathlib
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import urllib.error
import urllib.parse
import urllib.request
from collections.abc import Iterator
from typing import IO

import psycopg

from ipam_site import data_folder
from ipam_site.supervisor import processes
from tests import eventually, servers

_PASSWORD = "password"
_MINE = ("DATABASE_URL", "REDIS_URL", "SECRET_KEY", "IPAM_HTTPS", "IPAM_DATA", "IPAM_ROLE", "DATA")


class Site:
    """One running `up`; `output` is what it has said so far."""

    def __init__(
        self,
        data: pathlib.Path,
        *options: str,
        env: dict[str, str] | None = None,
        port: int = 0,
    ) -> None:
        self.data = data
        self.port = port or processes.free_port()
        self.url = f"http://127.0.0.1:{self.port}"
        self._said = data.parent / f"{data.name}-{self.port}.said"
        with self._said.open("w") as output_file:
            self.process = self._start(options, env or {}, output_file)

    def _start(
        self, options: tuple[str, ...], env: dict[str, str], output_file: IO[str]
    ) -> subprocess.Popen[bytes]:
        return subprocess.Popen(
            [sys.executable, *self._command(), *options],
            cwd=data_folder.PROJECT,
            env=environment() | env,
            stdin=subprocess.DEVNULL,
            stdout=output_file,
            stderr=subprocess.STDOUT,
            start_new_session=True,
            preexec_fn=processes.die_with_parent(signal.SIGTERM),
        )

    def _command(self) -> list[str]:
        return ["manage.py", "up", f"--port={self.port}", f"--data={self.data}"]

    @property
    def output(self) -> str:
        return self._said.read_text()

    @property
    def password(self) -> str:
        """The first user's, which only the first start says; that of `used` is kept."""
        password_file = self.data.parent / _PASSWORD
        match = re.search(r"password  (\S+)   \(shown", self.output)
        assert match or password_file.exists(), self.output
        return match.group(1) if match else password_file.read_text()

    def wait_until_ready(self, seconds: float = 240) -> Site:
        eventually.until(
            lambda: "is ready" in self.output or self.process.poll() is not None, seconds
        )
        assert self.process.poll() is None, self.output
        return self

    def command(self, *arguments: str) -> str:
        """What a management command prints; it finds the servers by the data folder."""
        done = subprocess.run(
            [sys.executable, "manage.py", *arguments],
            cwd=data_folder.PROJECT,
            env=environment() | {"IPAM_DATA": str(self.data)},
            capture_output=True,
            text=True,
            check=True,
        )
        return done.stdout

    def descendants(self) -> dict[int, str]:
        """Those below the supervisor."""
        return descendants_of(self.process.pid)

    def pids(self, text: str) -> list[int]:
        """Of the processes whose command line, and a blank after it, has the text; parents first."""
        return [pid for pid, command in self.descendants().items() if text in f"{command} "]

    def end(self, signum: int = signal.SIGTERM, seconds: float = 60) -> float:
        """Signal the supervisor and wait for it; the seconds that it took."""
        began = time.monotonic()
        self.process.send_signal(signum)
        self.process.wait(seconds)
        return time.monotonic() - began


class Web(Site):
    """The web server alone, as `up` starts it."""

    def __init__(self, data: pathlib.Path, *, env: dict[str, str]) -> None:
        port = processes.free_port()
        bind = {"WEB_BIND": f"127.0.0.1:{port}", "WEB_GRACEFUL_SECONDS": "2"}
        web_env = {"IPAM_DATA": str(data), "IPAM_ROLE": "web", "IPAM_HTTPS": "0"}
        super().__init__(data, env=bind | web_env | env, port=port)

    def _command(self) -> list[str]:
        return ["-m", "gunicorn", "-c", "ipam_site/gunicorn_conf.py"]

    def wait_until_ready(self, seconds: float = 240) -> Web:
        eventually.until(
            lambda: "Booting worker" in self.output or self.process.poll() is not None, seconds
        )
        assert self.process.poll() is None, self.output
        return self


class Browser:
    """Cookies and CSRF, nothing more."""

    def __init__(self, url: str) -> None:
        self.url = url
        self._cookies = http.cookiejar.CookieJar()
        self._opener = urllib.request.build_opener(
            urllib.request.HTTPCookieProcessor(self._cookies)
        )

    def get(self, path: str) -> tuple[int, str]:
        with self._opener.open(self.url + path, timeout=60) as answer:
            return answer.status, answer.read().decode()

    def login(self, user: str, password: str) -> bool:
        self.get("/admin/login/")
        fields = {
            "username": user,
            "password": password,
            "next": "/admin/password_change/",
            "csrfmiddlewaretoken": next(c.value for c in self._cookies if c.name == "csrftoken"),
        }
        body = urllib.parse.urlencode(fields).encode()
        with self._opener.open(f"{self.url}/admin/login/", body, timeout=60) as answer:
            return answer.url.endswith("/admin/password_change/")


def status(url: str) -> tuple[int, dict[str, object]]:
    """Status and JSON body of a GET; (0, {}) when nobody listens."""
    try:
        with urllib.request.urlopen(url, timeout=60) as answer:
            return answer.status, json.load(answer)
    except urllib.error.HTTPError as error:
        with error:
            return error.code, json.load(error)
    except OSError:
        return 0, {}


@contextlib.contextmanager
def folder() -> Iterator[pathlib.Path]:
    """A data folder's place that the servers' account can reach: pytest's own is closed to it."""
    base = pathlib.Path(tempfile.mkdtemp(prefix="cadastre-up-"))
    base.chmod(0o755)
    try:
        yield base / "data"
    finally:
        shutil.rmtree(base)


@contextlib.contextmanager
def used() -> Iterator[pathlib.Path]:
    """A data folder as a first start without the demo left it: one start for the whole test run."""
    template = pathlib.Path(os.environ["TEST_FOLDER"])
    with (template / "lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not (template / _PASSWORD).exists():
            site = Site(template / "data", "--no-demo").wait_until_ready()
            password = site.password
            site.end()
            # Each takes ports of its own: with those of this one they would meet, with one password.
            (template / "data" / "connections.json").unlink()
            (template / _PASSWORD).write_text(password)
    with folder() as data:
        subprocess.run(
            ["cp", "-a", template / "data", template / _PASSWORD, data.parent], check=True
        )
        yield data


@contextlib.contextmanager
def web(**env: str) -> Iterator[Web]:
    """A running web server on a database of its own: for tests in which neither workers nor `up` have a part.

    It takes a fifth of the processor time of a whole site.
    """
    url = os.environ["DATABASE_URL"]
    with psycopg.connect(url, autocommit=True) as connection, folder() as data:
        name = f"cadastre_{data.parent.name.replace('-', '_').lower()}"
        servers.drop(connection, name)
        connection.execute(f'CREATE DATABASE "{name}" TEMPLATE {servers.migrated(url)}')
        (data / "logs").mkdir(parents=True)
        data_folder.make_secrets(data)
        database_url = urllib.parse.urlsplit(url)._replace(path=f"/{name}").geturl()
        data_folder.write(
            data / "connections.json", {"database_url": database_url, "redis_url": ""}
        )
        running = Web(data, env=env)
        try:
            yield running.wait_until_ready()
        finally:
            running.end()
            servers.drop(connection, name)


def environment() -> dict[str, str]:
    """Of this process, without what would tell `up` where its servers are."""
    return {name: value for name, value in os.environ.items() if name not in _MINE}


def _running() -> dict[int, int]:
    """The parent of each process by pid, without zombies."""
    table = {}
    for entry in pathlib.Path("/proc").glob("[0-9]*"):
        with contextlib.suppress(OSError):
            # After the name, which may contain any character: state and parent (man 5 proc).
            state, parent, *_ = (
                (entry / "stat").read_text(errors="replace").rpartition(")")[2].split()
            )
            if state not in {"Z", "X"}:
                table[int(entry.name)] = int(parent)
    return table


def alive(pids: dict[int, str]) -> dict[int, str]:
    """Those that still run; a zombie waits for its parent only."""
    running = _running()
    return {pid: command for pid, command in pids.items() if pid in running}


def descendants_of(root: int) -> dict[int, str]:
    """Number and command line of every process below another, parents before their children."""
    running = _running()
    descendants: dict[int, str] = {}
    level = {root}
    while level := {pid for pid, parent in running.items() if parent in level}:
        descendants |= {pid: _command(pid) for pid in level}
    return descendants


def _command(pid: int) -> str:
    with contextlib.suppress(OSError):
        raw = pathlib.Path(f"/proc/{pid}/cmdline").read_bytes()
        return raw.replace(b"\0", b" ").decode(errors="replace").strip()
    return ""
