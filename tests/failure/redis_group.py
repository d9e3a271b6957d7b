"""Three Redis servers, one of them the primary, and three sentinels that watch them: real programs of this machine."""

import contextlib
import pathlib
import secrets
import shutil
import signal
import subprocess
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass, field

import redis

from ipam_site.supervisor import embedded, processes
from tests import eventually

NAME = "cadastre"


@dataclass
class Group:
    folder: pathlib.Path
    account: embedded.Account
    password: str = field(default_factory=lambda: secrets.token_hex(8))
    sentinel_password: str = field(default_factory=lambda: secrets.token_hex(8))
    servers: dict[int, subprocess.Popen[bytes]] = field(default_factory=dict)  # by port
    sentinels: dict[int, subprocess.Popen[bytes]] = field(default_factory=dict)

    @property
    def url(self) -> str:
        hosts = ",".join(f"127.0.0.1:{port}" for port in self.sentinels)
        query = f"master={NAME}&sentinel_password={self.sentinel_password}"
        return f"redis+sentinel://:{self.password}@{hosts}/0?{query}"

    def primary(self) -> int:
        """Return the port of the server that most sentinels name."""
        ports = []
        for port in self.sentinels:
            with (
                contextlib.suppress(redis.RedisError),
                redis.Redis(port=port, password=self.sentinel_password, socket_timeout=2) as client,
            ):
                ports.append(int(client.sentinel_get_master_addr_by_name(NAME)[1]))
        return max(set(ports), key=ports.count)

    def start_server(self, port: int, primary: int) -> None:
        lines = [f"port {port}", f"requirepass {self.password}", f"masterauth {self.password}"]
        if port != primary:
            lines.append(f"replicaof 127.0.0.1 {primary}")
        self.servers[port] = self._start(f"redis-{port}", lines)

    def start_sentinel(self, port: int, primary: int) -> None:
        lines = [
            f"port {port}",
            f"requirepass {self.sentinel_password}",
            f"sentinel monitor {NAME} 127.0.0.1 {primary} 2",
            f"sentinel auth-pass {NAME} {self.password}",
            f"sentinel sentinel-pass {self.sentinel_password}",
            f"sentinel down-after-milliseconds {NAME} 2000",
            f"sentinel failover-timeout {NAME} 6000",
        ]
        self.sentinels[port] = self._start(f"sentinel-{port}", lines, "--sentinel")

    def wait_until_whole(self) -> int:
        """Wait for a primary with two replicas that every sentinel knows; return its port."""

        def is_whole() -> bool:
            try:
                with redis.Redis(port=self.primary(), password=self.password) as client:
                    replicas = client.info("replication")["connected_slaves"]
                return bool(replicas == 2) and all(map(self._knows_others, self.sentinels))
            except (redis.RedisError, ValueError):
                return False

        eventually.until(is_whole, seconds=60)
        return self.primary()

    def stop(self) -> None:
        for process in [*self.sentinels.values(), *self.servers.values()]:
            process.send_signal(signal.SIGCONT)
            process.kill()
            process.wait()

    def _knows_others(self, port: int) -> bool:
        with redis.Redis(port=port, password=self.sentinel_password) as client:
            state = client.sentinel_master(NAME)
        return state["num-other-sentinels"] == 2 and state["num-slaves"] == 2

    def _start(self, name: str, lines: list[str], *options: str) -> subprocess.Popen[bytes]:
        file = self.folder / f"{name}.conf"
        file.write_text(
            "\n".join(["bind 127.0.0.1", f"dir {self.folder}", 'save ""', *lines, ""])
        )  # sentinels write their state into it
        self.account.chown(file)
        program = embedded.programs(self.account)[1]
        return subprocess.Popen(
            [str(program), str(file), *options],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.STDOUT,
            cwd=self.folder,
            preexec_fn=processes.die_with_parent(signal.SIGKILL),
        )


@contextlib.contextmanager
def running() -> Iterator[Group]:
    folder = pathlib.Path(tempfile.mkdtemp(prefix="cadastre-redis-"))
    group = Group(folder, embedded.account_for_servers(folder))
    try:
        primary, *others = free_ports(3)
        for port in (primary, *others):
            group.start_server(port, primary)
        for port in free_ports(3):
            group.start_sentinel(port, primary)
        group.wait_until_whole()
        yield group
    finally:
        group.stop()
        shutil.rmtree(folder, ignore_errors=True)


def free_ports(number: int) -> list[int]:
    """Return distinct free ports."""
    ports: set[int] = set()
    while len(ports) < number:
        ports.add(processes.free_port())
    return sorted(ports)
