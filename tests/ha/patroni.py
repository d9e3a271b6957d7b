"""Three PostgreSQL servers under Debian's Patroni and etcd, each in a network namespace of its own.

Needs root, and the packages patroni, python3-etcd, etcd-server, postgresql-15 and iproute2.
"""

import contextlib
import json
import os
import pathlib
import secrets
import shutil
import signal
import subprocess
import tempfile
import urllib.request
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

import psycopg

from ipam_site.supervisor import embedded
from tests import eventually

BIN = pathlib.Path("/usr/lib/postgresql/15/bin")
_NET = "10.213.77"
_BRIDGE = "cadastre-ha"
_REST, _POSTGRES = 8008, 5432
# Patroni's lower limits: a leader that says nothing for `ttl` seconds is no leader any more.
_DCS = {
    "ttl": 20,
    "loop_wait": 2,
    "retry_timeout": 5,
    "maximum_lag_on_failover": 1048576,
    "synchronous_mode": True,
    "postgresql": {
        "use_pg_rewind": True,
        "parameters": {"max_connections": 100, "wal_log_hints": "on", "wal_keep_size": "256MB"},
    },
}


def missing() -> str:
    """Return what the machine lacks for these tests, "" if nothing."""
    if os.geteuid() != 0:
        return "no right to make network namespaces"
    programs = ("patroni", "etcd", "ip", str(BIN / "postgres"))
    return ", ".join(name for name in programs if not shutil.which(name))


@dataclass
class Node:
    number: int
    process: subprocess.Popen[bytes] | None = None

    @property
    def name(self) -> str:
        return f"cadastre-ha{self.number}"

    @property
    def address(self) -> str:
        return f"{_NET}.{10 + self.number}"

    def pids(self) -> list[int]:
        """All processes in the node's namespace."""
        shown = subprocess.run(
            ["ip", "netns", "pids", self.name], capture_output=True, text=True, check=True
        )
        return [int(pid) for pid in shown.stdout.split()]

    def signal(self, signum: int) -> None:
        for pid in self.pids():
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signum)

    def connect(self, *, up: bool) -> None:
        """Plug the node's network in, or pull it out."""
        _ip("link", "set", self.name, "up" if up else "down")

    def status(self) -> dict[str, Any]:
        """What its Patroni says of itself, {} without an answer."""
        try:
            with urllib.request.urlopen(
                f"http://{self.address}:{_REST}/patroni", timeout=2
            ) as answer:
                status: dict[str, Any] = json.load(answer)
        except urllib.error.HTTPError as error:
            status = json.load(error)
        except OSError:
            return {}
        return status


@dataclass
class Cluster:
    folder: pathlib.Path
    account: embedded.Account
    nodes: list[Node] = field(default_factory=lambda: [Node(number) for number in range(3)])
    password: str = field(default_factory=lambda: secrets.token_hex(16))

    def url(self, database: str) -> str:
        """For clients: all servers, of which they use the one that takes writes."""
        hosts = ",".join(node.address for node in self.nodes)
        query = f"host={hosts}&target_session_attrs=read-write"
        return f"postgresql://cadastre:{self.password}@/{database}?{query}"

    def make_database(self, name: str) -> None:
        with psycopg.connect(self.url("postgres"), autocommit=True) as connection:
            connection.execute(f"CREATE DATABASE {name}")

    def leader(self) -> Node | None:
        states = [(node, node.status()) for node in self.nodes]
        return next(
            (
                node
                for node, status in states
                if status.get("role") in {"master", "primary"} and status["state"] == "running"
            ),
            None,
        )

    def start(self, node: Node) -> None:
        with (self.folder / f"{node.name}.log").open("ab") as log:
            node.process = subprocess.Popen(
                ["ip", "netns", "exec", node.name, "setpriv", f"--reuid={self.account.uid}",
                 f"--regid={self.account.gid}", "--clear-groups",
                 "/usr/bin/patroni", str(self.folder / f"{node.name}.yml")],
                cwd="/", stdin=subprocess.DEVNULL, stdout=log, stderr=log,
                env={"PATH": f"{BIN}:/usr/bin:/bin", "LC_ALL": "C.UTF-8", "HOME": str(self.folder)},
            )  # fmt: skip

    def wait_until_whole(self) -> Node:
        """Wait for a leader with two standbys that stream, one of them synchronous."""

        def is_whole() -> bool:
            leader = self.leader()
            standbys = leader.status().get("replication", []) if leader else []
            states = sorted(row["sync_state"] for row in standbys if row["state"] == "streaming")
            return states == ["async", "sync"]

        eventually.until(is_whole, seconds=120)
        leader = self.leader()
        assert leader is not None
        return leader

    def heal(self) -> None:
        """Bring every node back, whatever was done to it."""
        for node in self.nodes:
            node.connect(up=True)
            node.signal(signal.SIGCONT)
            if node.process is None or node.process.poll() is not None:
                self.start(node)

    def _configure(self, node: Node) -> None:
        listen = {
            name: f"{node.address}:{port}" for name, port in (("rest", _REST), ("pg", _POSTGRES))
        }
        document = {
            "scope": "cadastre", "name": node.name,
            "restapi": {"listen": listen["rest"], "connect_address": listen["rest"]},
            "etcd3": {"hosts": f"{_NET}.1:2379"},
            "bootstrap": {"dcs": _DCS, "initdb": [{"encoding": "UTF8"}, {"locale": "C.UTF-8"}]},
            "postgresql": {
                "listen": listen["pg"], "connect_address": listen["pg"], "bin_dir": str(BIN),
                "data_dir": str(self.folder / node.name), "pgpass": str(self.folder / f"{node.name}.pass"),
                "authentication": {
                    name: {"username": name, "password": self.password}
                    for name in ("superuser", "replication", "rewind")
                },
                "parameters": {"unix_socket_directories": ""},
                "pg_hba": [
                    f"host all all {_NET}.0/24 scram-sha-256",
                    f"host replication all {_NET}.0/24 scram-sha-256",
                ],
            },
        }  # fmt: skip
        (self.folder / f"{node.name}.yml").write_text(json.dumps(document))  # JSON is YAML

    def begin(self) -> None:
        for node in self.nodes:
            self._configure(node)
            _add_namespace(node)
            self.start(node)
        leader = self.wait_until_whole()
        with psycopg.connect(
            host=leader.address, user="superuser", password=self.password, dbname="postgres",
            autocommit=True,
        ) as connection:  # fmt: skip
            connection.execute(f"CREATE ROLE cadastre LOGIN CREATEDB PASSWORD '{self.password}'")


def _ip(*arguments: str) -> None:
    subprocess.run(["ip", *arguments], check=True, capture_output=True)


def _add_namespace(node: Node) -> None:
    inside = f"eth{node.number}"
    _ip("netns", "add", node.name)
    _ip("link", "add", node.name, "type", "veth", "peer", "name", inside, "netns", node.name)
    _ip("link", "set", node.name, "master", _BRIDGE, "up")
    for command in (
        ("addr", "add", f"{node.address}/24", "dev", inside),
        ("link", "set", inside, "up"),
        ("link", "set", "lo", "up"),
    ):
        _ip("-n", node.name, *command)


@contextlib.contextmanager
def running() -> Iterator[Cluster]:
    account = embedded.account_for_servers(pathlib.Path("/nonexistent"))
    folder = pathlib.Path(tempfile.mkdtemp(prefix="cadastre-ha-"))
    account.chown(folder)
    cluster = Cluster(folder, account)
    _ip("link", "add", _BRIDGE, "type", "bridge")
    etcd = None
    try:
        _ip("addr", "add", f"{_NET}.1/24", "dev", _BRIDGE)
        _ip("link", "set", _BRIDGE, "up")
        with (folder / "etcd.log").open("ab") as log:
            url = f"http://{_NET}.1:2379"
            etcd = subprocess.Popen(
                ["etcd", f"--data-dir={folder}/etcd", f"--listen-client-urls={url}",
                 f"--advertise-client-urls={url}", f"--listen-peer-urls=http://{_NET}.1:2380"],
                stdout=log, stderr=log,
            )  # fmt: skip
        cluster.begin()
        yield cluster
    finally:
        for node in cluster.nodes:
            with contextlib.suppress(subprocess.CalledProcessError):
                node.signal(signal.SIGKILL)
                _ip("netns", "del", node.name)
            if node.process is not None:
                node.process.wait(30)
        if etcd is not None:
            etcd.kill()
            etcd.wait()
        with contextlib.suppress(subprocess.CalledProcessError):
            _ip("link", "del", _BRIDGE)
        shutil.rmtree(folder, ignore_errors=True)
