"""A running site whose parts are stopped, and its REST API."""

import contextlib
import http.client
import json
import os
import signal
import time
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import psycopg

from ipam_site import data_folder
from tests import eventually, running_site
from tests.edges import api as apis

PARTS = {
    "web": "gunicorn",
    "worker": "--queues=ipam.default",
    "reconciler": "--queues=ipam.clusters",
    "watcher": "django watch",
    "beat": "ipam_site beat",
    "redis": "redis-server",
    "postgres": "postgres",
}


@dataclass(frozen=True)
class Answer:
    """`body` is the JSON document, or the text of a page; `seconds` is how long it took."""

    status: int
    body: Any
    headers: dict[str, str]
    seconds: float

    @property
    def unavailable(self) -> bool:
        """503 with a Retry-After, and below /api/ with the stable code."""
        code = self.body.get("code") if isinstance(self.body, dict) else "ipam_unavailable"
        retry = int(self.headers.get("retry-after", 0))
        return (self.status, code) == (503, "ipam_unavailable") and retry >= 1


class Site:
    """A site without demo data, with the cluster `prod`."""

    def __init__(self, running: running_site.Site) -> None:
        self.running = running
        self.token = running.command("token", "admin").strip()
        self.create("clusters/", {"name": "prod"})

    @property
    def database_url(self) -> str:
        return data_folder.connections(self.running.data)["database_url"]

    # --- what callers do --------------------------------------------------------------------------

    def ask(self, method: str, path: str, body: Any = None, **headers: str) -> Answer:
        """Path of the API, or an absolute one."""
        began = time.monotonic()
        line = http.client.HTTPConnection("127.0.0.1", self.running.port, timeout=40)
        sent = {"Authorization": f"Token {self.token}", "Content-Type": "application/json"}
        sent |= {name.replace("_", "-"): value for name, value in headers.items()}
        try:
            text = None if body is None else json.dumps(body)
            line.request(method, path if path[0] == "/" else apis.ROOT + path, text, sent)
            answer = line.getresponse()
            content = answer.read().decode()
        finally:
            line.close()
        names = {name.lower(): value for name, value in answer.getheaders()}
        is_json = "json" in names.get("content-type", "")
        return Answer(
            answer.status, json.loads(content) if is_json else content, names,
            time.monotonic() - began,
        )  # fmt: skip

    def create(self, path: str, body: Any, *, status: int = 201) -> Any:
        answer = self.ask("POST", path, body)
        assert answer.status == status, answer
        return answer.body

    def pool(self, name: str, cidr: str, cooldown: int = 0) -> str:
        """Where its allocations are asked for."""
        part = {"mask_size": 32, "cidrs": [{"cidr": cidr}]}
        body = {"cluster": "prod", "name": name, "category": "vm", "cooldown_seconds": cooldown}
        return f"pools/{self.create('pools/', {**body, 'ipv4': part})['id']}/allocations/"

    def take(self, allocations: str, name: str, **more: Any) -> dict[str, Any]:
        (block,) = self.create(allocations, apis.holder(name) | more)["blocks"]
        return dict(block)

    def give_back(self, block: dict[str, Any]) -> Answer:
        who = apis.holder(block["holder"]["id"])
        return self.ask("POST", f"blocks/{block['id']}/release/", who)

    def ready(self) -> bool:
        try:
            answer = self.ask("GET", "/readyz")
        except (OSError, http.client.HTTPException):
            return False  # its web server is being started
        return answer.status == 200 and answer.body["status"] == "ok"

    def scalar(self, statement: str, *values: object) -> Any:
        with psycopg.connect(self.database_url, autocommit=True) as database:
            row = database.execute(statement, values).fetchone()
        return row[0] if row else None

    # --- what happens to its parts ----------------------------------------------------------------

    def pids(self, part: str) -> list[int]:
        """Parents before their children."""
        return self.running.pids(PARTS[part])

    def signal(self, part: str, signum: int) -> list[int]:
        pids = self.pids(part)
        assert pids, part
        for pid in pids:
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signum)
        return pids

    @contextlib.contextmanager
    def stopped(self, *parts: str) -> Iterator[None]:
        """They are there and do nothing, as on a machine that stands still."""
        for part in parts:
            self.signal(part, signal.SIGSTOP)
        try:
            yield
        finally:
            for part in parts:
                self.signal(part, signal.SIGCONT)

    @contextlib.contextmanager
    def away(self, part: str, signum: int) -> Iterator[None]:
        """Ended by the signal, and not started again before the end of the block."""
        os.kill(self.running.process.pid, signal.SIGSTOP)
        try:
            main, *others = self.pids(part)
            os.kill(main, signum)
            eventually.until(lambda: not running_site.alive(dict.fromkeys([main, *others], "")))
            yield
        finally:
            os.kill(self.running.process.pid, signal.SIGCONT)

    def got_on(self, part: str) -> float:
        """When a process got on last."""
        return (self.running.data / "alive" / part).stat().st_mtime

    def gets_on(self, *parts: str, seconds: float = 120) -> None:
        """Each of them gets on after this moment."""
        began = {part: self.got_on(part) for part in parts}
        eventually.until(lambda: all(self.got_on(p) > began[p] for p in parts), seconds)


@contextlib.contextmanager
def running() -> Iterator[Site]:
    with running_site.used() as data:
        local = {"IPAM_ALLOW_LOOPBACK_WEBHOOKS": "1", "IPAM_ALLOW_LOOPBACK_CLUSTERS": "1"}
        up = running_site.Site(data, "--no-demo", "--workers=2", env=local)
        try:
            yield Site(up.wait_until_ready(240))
        finally:
            up.end()
