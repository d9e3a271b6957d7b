"""A hundred clusters on two workers, one of which hangs; and the memory of a worker over many passes.

The clusters are fakes in a process of their own; the workers are processes that do what the Celery
task does. The one that hangs accepts connections and never says a word.
"""

import contextlib
import dataclasses
import json
import multiprocessing
import os
import socket
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from django.db import connection

from benchmarks import passes as passes_, registers
from pools.clusters.client import kubeconfig
from pools.clusters.reconcile import connecting, leases, registry, sync
from pools.models import Connection, ObservedObject, Watcher
from pools.platform.outbound import secrets

CLUSTERS = 100
OBJECTS = 1_000
WORKERS = 2
PASSES = 100
_FAR = datetime(2100, 1, 1, tzinfo=UTC)
SETTLED = 20  # passes after which a worker has all that it needs


def measure() -> Iterator[tuple[str, float, float, float]]:
    """(name, what was measured, what it is compared with, how many times that it may be).

    Seconds until two workers have passed over all the well clusters, beside one that hangs, against
    without one; bytes of a worker after 100 passes against after 20.
    """
    with _fakes() as clusters:
        ids = _connect(clusters)
        _all_passed(ids)  # what is seen for the first time takes longer
        well = _all_passed(ids)
        with _silence() as url:
            _let_hang(ids[0], url)
            hanging = _all_passed(ids, but=ids[0])
        yield "fleet_beside_a_hanging_cluster", hanging * 1000, well * 1000, WORKERS
        yield "worker_memory", *_memory(ids[1]), 1.05


@contextlib.contextmanager
def _fakes() -> Iterator[list[dict[str, str]]]:
    command = [sys.executable, "-m", "tests.kube.fake"]
    command += [f"--clusters={CLUSTERS}", f"--nodes={OBJECTS}"]
    with subprocess.Popen(
        command, cwd=passes_.ROOT, stdin=subprocess.PIPE, stdout=subprocess.PIPE
    ) as process:
        assert process.stdout
        yield [json.loads(process.stdout.readline()) for _ in range(CLUSTERS)]
        process.communicate()


def _connect(clusters: Sequence[dict[str, str]]) -> list[int]:
    """The ids of their connections, which no watcher and no worker of the site takes."""
    Watcher.objects.update_or_create(name="benchmark", defaults={"seen_at": _FAR})
    Connection.objects.all().delete()
    ObservedObject.objects.all().delete()
    ring, ids = secrets.key_ring(), []
    for cluster in clusters:
        row = registers.cluster()
        access = kubeconfig.read(cluster["kubeconfig"], now=datetime.now(UTC)).access
        sealed = ring.seal(access.dump(), owner=connecting.secret_owner(row.pk))
        made = Connection.objects.create(
            cluster=row,
            server=cluster["url"],
            sealed=sealed,
            due_at=_FAR,
            watched_by="benchmark",
        )
        passes_.add_pool(made)  # without one every node would be looked at again in every pass
        ids.append(made.pk)
    return ids


@contextlib.contextmanager
def _silence() -> Iterator[str]:
    with socket.create_server(("127.0.0.1", 0)) as listening:
        yield f"https://127.0.0.1:{listening.getsockname()[1]}"


def _let_hang(connection_id: int, url: str) -> None:
    row = Connection.objects.get(pk=connection_id)
    ring, owner = secrets.key_ring(), connecting.secret_owner(row.cluster_id)
    access = dataclasses.replace(connecting.cluster_access(row), server=url)
    Connection.objects.filter(pk=connection_id).update(
        server=url, sealed=ring.seal(access.dump(), owner=owner)
    )


def _all_passed(ids: Sequence[int], *, but: int = 0) -> float:
    """Seconds until each cluster but one was passed over once; the hanging one comes first."""
    began = time.monotonic()
    work = multiprocessing.get_context("fork").Queue()
    for connection_id in ids:
        work.put(connection_id)
    start = Connection.objects.filter(pk__in=ids)
    # Not due: the site's own workers would take them, and may not reach this machine.
    start.update(due_at=_FAR, succeeded_at=None, leased_until=None, failures=0)
    connection.close()
    workers = [
        multiprocessing.get_context("fork").Process(target=_work, args=(work,), daemon=True)
        for _ in range(WORKERS)
    ]
    for worker in workers:
        worker.start()
    while start.filter(succeeded_at=None).exclude(pk=but).exists():
        if failed := start.exclude(pk=but).filter(failures__gt=0).first():
            raise RuntimeError(f"a pass failed: {failed.error}")
        time.sleep(0.05)
    taken = time.monotonic() - began
    for worker in workers:
        worker.kill()
        worker.join()
    return taken


def _work(work: Any) -> None:
    while True:
        lease = leases.take(work.get(), leases.worker_name())
        if lease is not None:
            sync.run(lease, registry.HANDLERS)


def _memory(connection_id: int) -> tuple[float, float]:
    """The resident bytes of a worker after all the passes, and after the first of them."""
    context = multiprocessing.get_context("fork")
    told = context.Queue()
    connection.close()
    worker = context.Process(target=_pass_often, args=(connection_id, told), daemon=True)
    worker.start()
    first, last = told.get(), told.get()
    worker.join()
    return last, first


def _pass_often(connection_id: int, told: Any) -> None:
    for number in range(1, PASSES + 1):
        # As after a restart of everything: all objects are new in every second pass.
        if number % 2:
            ObservedObject.objects.filter(cluster__connection=connection_id).delete()
        lease = leases.take(connection_id, "benchmark")
        assert lease is not None
        sync.run(lease, registry.HANDLERS)
        if number in {SETTLED, PASSES}:
            told.put(_resident(os.getpid()))


def _resident(pid: int) -> int:
    pages = int(Path(f"/proc/{pid}/statm").read_text().split()[1])
    return pages * os.sysconf("SC_PAGE_SIZE")
