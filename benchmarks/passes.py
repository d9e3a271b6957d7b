"""Passes over 10,000 CiliumNodes, against the bare paged list of the same objects, parsed.

The cluster is a fake in a process of its own. Each measurement stands between two of the floor.
"""

import contextlib
import datetime
import http.client
import json
import ssl
import statistics
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any
from urllib import parse

from benchmarks import registers
from pools.clusters.client import kubeconfig
from pools.clusters.reconcile import connecting, leases, registry, sync
from pools.clusters.reconcile.handler import Handler
from pools.core.kubernetes import resources
from pools.models import Connection, ObservedObject, Watcher
from pools.platform.outbound import secrets

ROOT = Path(__file__).resolve().parent.parent
NODES = 10_000
PAGE = 500
ROUNDS = 5
_FAR = datetime.datetime(2100, 1, 1, tzinfo=datetime.UTC)


class Plain(Handler):
    """The engine's own cost: a handler that takes in everything and wants nothing."""

    kind = "CiliumNode"
    resources = (resources.CILIUM_NODE,)

    def parse(self, manifest: Any) -> Any:
        return manifest


@contextlib.contextmanager
def fake(nodes: int) -> Iterator[dict[str, str]]:
    """A cluster with so many nodes: url, ca, token, kubeconfig."""
    command = [sys.executable, "-m", "tests.kube.fake", f"--nodes={nodes}"]
    with subprocess.Popen(
        command, cwd=ROOT, stdin=subprocess.PIPE, stdout=subprocess.PIPE
    ) as process:
        assert process.stdout
        yield json.loads(process.stdout.readline())
        process.communicate()


def connect(cluster: dict[str, str]) -> Connection:
    """Watched and worked on by nobody but us."""
    now = datetime.datetime.now(datetime.UTC)
    Watcher.objects.update_or_create(name="benchmark", defaults={"seen_at": _FAR})
    Connection.objects.all().delete()
    ObservedObject.objects.all().delete()
    row = registers.cluster()
    access = kubeconfig.read(cluster["kubeconfig"], now=now).access
    sealed = secrets.key_ring().seal(access.dump(), owner=connecting.secret_owner(row.pk))
    return Connection.objects.create(
        cluster=row, server=cluster["url"], sealed=sealed, due_at=_FAR, watched_by="benchmark"
    )


class Bare:
    """The floor: pages over a connection that is kept alive, parsed and dropped."""

    def __init__(self, cluster: dict[str, str]) -> None:
        context = ssl.create_default_context(cadata=cluster["ca"])
        self._headers = {"Authorization": f"Bearer {cluster['token']}"}
        address = parse.urlsplit(cluster["url"])
        self._http = http.client.HTTPSConnection(
            str(address.hostname), address.port, context=context
        )

    def __call__(self) -> None:
        path, token, seen = "/apis/cilium.io/v2/ciliumnodes", "", 0
        while seen == 0 or token:
            query = {"limit": str(PAGE)} | ({"continue": token} if token else {})
            self._http.request("GET", f"{path}?{parse.urlencode(query)}", headers=self._headers)
            page = json.loads(self._http.getresponse().read())
            seen += len(page["items"])
            token = page["metadata"].get("continue", "")
        assert seen == NODES


def add_pool(connection: Connection) -> None:
    """The one that the nodes' PodCIDRs are of."""
    spec = {"ipv4": {"cidrs": ["10.0.0.0/8"], "maskSize": 24}}
    pool = {"apiVersion": "cilium.io/v2", "kind": "CiliumPodIPPool", "spec": spec}
    with connecting.client_for(connection) as gateway:
        gateway.create(
            resources.CILIUM_POD_IP_POOL,
            pool | {"metadata": {"name": "default"}},
            manager="benchmark",
        )


def a_pass(connection: Connection, handlers: Sequence[Handler]) -> None:
    lease = leases.take(connection.pk, "benchmark")
    assert lease is not None
    run = sync.run(lease, handlers)
    assert run.succeeded, (run.error, run.kinds)


def seconds(work: Callable[[], object]) -> float:
    began = time.monotonic()
    work()
    return time.monotonic() - began


def measure() -> Iterator[tuple[str, float, float, float]]:
    """(name, milliseconds, the floor's, how many times the floor it may be)."""
    with fake(NODES) as cluster:
        bare = Bare(cluster)
        bare()
        add_pool(connect(cluster))
        for name, handlers in (("engine", (Plain(),)), ("handlers", registry.HANDLERS)):
            first, again, floor = [], [], []
            for _ in range(ROUNDS):
                registers.clear()
                connection = connect(cluster)
                floor.append(seconds(bare))
                first.append(seconds(lambda c=connection, h=handlers: a_pass(c, h)))
                assert ObservedObject.objects.filter(kind="CiliumNode").count() == NODES
                registers.analyze()
                floor.append(seconds(bare))
                again.append(seconds(lambda c=connection, h=handlers: a_pass(c, h)))
            base = statistics.median(floor) * 1000
            yield f"reconcile_{name}_first_seen", statistics.median(first) * 1000, base, 4
            yield f"reconcile_{name}_unchanged", statistics.median(again) * 1000, base, 1.5
