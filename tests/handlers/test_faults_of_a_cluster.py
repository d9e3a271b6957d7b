"""Rule `unknown-is-not-absent`: whatever a cluster answers, nothing is released; then it heals."""

from __future__ import annotations

import contextlib
import dataclasses
import datetime
import socket
from collections.abc import Iterator
from typing import Any

import pytest

from pools.clusters.client import api_client, kubeconfig
from pools.models import Connection
from pools.platform.outbound.credentials import Access
from tests.handlers.cilium_world import NODES, POOLS, CiliumWorld, Open
from tests.handlers.conftest import SHIPPED
from tests.kube import certificates
from tests.kube.fake import FakeCluster
from tests.pools.conftest import Clock

IMPATIENT = (1.0, 0.5)
ANSWERS: dict[str, tuple[str, dict[str, Any]]] = {
    "429 with Retry-After": ("cluster_busy", {"status": 429, "retry_after": 7}),
    "500": ("cluster_server_error", {"status": 500}),
    "503": ("cluster_server_error", {"status": 503}),
    "503 with Retry-After": ("cluster_busy", {"status": 503, "retry_after": 7}),
    "read time-out": ("cluster_unreachable", {"effect": "hang"}),
    "read time-out after headers": ("cluster_unreachable", {"effect": "stall"}),
    "truncated JSON": ("cluster_garbled", {"effect": "truncate"}),
    "200 with HTML": ("cluster_garbled", {"effect": "html"}),
    "chunk cut": ("cluster_unreachable", {"effect": "cut-chunk"}),
    "cut mid-object": ("cluster_unreachable", {"effect": "cut-body"}),
    "cut after headers": ("cluster_unreachable", {"effect": "cut-headers"}),
    "gzip garbage": ("cluster_garbled", {"effect": "gzip"}),
}
WHERE: dict[str, Any] = {
    "pools": {"verb": "list", "path": POOLS},
    "nodes": {"verb": "list", "path": NODES},
}


@pytest.fixture(scope="module")
def calm() -> Iterator[FakeCluster]:
    """Another cluster, which all tests share."""
    with FakeCluster() as running:
        running.crds(SHIPPED, "cilium.io_ciliumnodes")
        yield running


@pytest.fixture
def world(fake: FakeCluster) -> CiliumWorld:
    """Pools and nodes that were seen, with blocks in use."""
    world = CiliumWorld(fake, managed_resource=True)
    world.cidrs("a", "10.0.0.0/22")
    world.cidrs("b", "10.1.0.0/22")
    world.node("n1", lists={"a": ["10.0.0.0/24", "10.0.1.0/24"]})
    world.follow_node("n2", demands={"b": 8})
    assert len(world.held()) == 3
    return world


def _impatient(world: CiliumWorld, timeouts: tuple[float, float] = IMPATIENT, **other: Any) -> Open:
    now = datetime.datetime.now(datetime.UTC)
    access: Access = kubeconfig.read(world.fake.kubeconfig(), now=now).access
    access = dataclasses.replace(access, **other)
    return lambda _: api_client.ClusterClient(access, allow_loopback=True, timeouts=timeouts)


def _nothing_is_lost(
    world: CiliumWorld, calm: FakeCluster, clock: Clock, code: str, reached: Open | None = None
) -> None:
    """Two passes in trouble, far apart; another cluster is served between them; then all is well."""
    before, pools, listed = world.held(), world.names(), world.listed()
    asks = world.node("n3", demands={"a": 8})
    other = CiliumWorld(calm, managed_resource=True)
    other.cidrs("a", "10.0.0.0/22")
    other.node("n1", demands={"a": 8})
    for failures in (1, 2):
        run = world.run(open_client=reached)
        assert not run.succeeded
        assert code in {run.error_code, *(kind.get("code") for kind in run.kinds.values())}
        row = Connection.objects.get(pk=world.connection.pk)
        assert (row.error_code, row.failures, row.leased_until) == (code, failures, None)
        assert before.items() <= world.held().items()
        assert (world.names(), set(listed) - set(world.listed())) == (pools, set())
        other.passed()
        assert other.listed() == {"10.0.0.0/24": "n1"}
        clock.advance(600)
    world.fake.faults.clear()
    world.passed()
    assert len(world.lists(asks["metadata"]["name"])) == 1
    assert world.listed() == world.held()
    assert Connection.objects.get(pk=world.connection.pk).failures == 0


@pytest.mark.sample(4)
@pytest.mark.parametrize("where", WHERE)
@pytest.mark.parametrize("name", ANSWERS)
def test_nothing_is_released(
    name: str, where: str, world: CiliumWorld, calm: FakeCluster, clock: Clock
) -> None:
    code, fault = ANSWERS[name]
    # What is there is not shown: were it taken for an answer, it would be gone.
    world.fake.faults.add(times=None, **WHERE[where], **fault)
    slow = fault.get("effect") in {"hang", "stall"}
    _nothing_is_lost(world, calm, clock, code, _impatient(world) if slow else None)


@pytest.mark.sample(4)
@pytest.mark.parametrize("name", ANSWERS)
def test_a_write_that_fails_is_done_by_the_next_pass(
    name: str, world: CiliumWorld, calm: FakeCluster, clock: Clock
) -> None:
    """Nodes are served, and the cluster takes what was tried out and not what is written then."""
    code, fault = ANSWERS[name]
    world.fake.faults.add(verb="update", path=NODES, times=None, **fault)
    slow = fault.get("effect") in {"hang", "stall"}
    if code == "cluster_server_error":  # of this object alone: a webhook of the cluster may say so
        world.node("n3", demands={"a": 8})
        assert world.run().kinds["CiliumNode"]["failed"] == 1
        world.fake.faults.clear()
        world.passed()
        assert world.listed() == world.held()
        return
    _nothing_is_lost(world, calm, clock, code, _impatient(world) if slow else None)


@contextlib.contextmanager
def _silent() -> Iterator[str]:
    """An address where nobody answers a SYN: the queue of those who wait is full."""
    with contextlib.ExitStack() as stack:
        listener = stack.enter_context(socket.create_server(("127.0.0.1", 0), backlog=0))
        for _ in range(8):
            waiting = stack.enter_context(socket.socket())
            waiting.setblocking(False)
            waiting.connect_ex(listener.getsockname())
        yield f"https://127.0.0.1:{listener.getsockname()[1]}"


@contextlib.contextmanager
def _no_tls() -> Iterator[str]:
    """An address where a connection is taken, and no handshake answered."""
    with socket.create_server(("127.0.0.1", 0)) as listener:
        yield f"https://127.0.0.1:{listener.getsockname()[1]}"


@pytest.mark.parametrize("address", [_silent, _no_tls], ids=["connect time-out", "no handshake"])
def test_no_connection(address: Any, world: CiliumWorld, calm: FakeCluster, clock: Clock) -> None:
    with address() as url:
        reached = _impatient(world, server=url)
        _nothing_is_lost(world, calm, clock, "cluster_unreachable", reached)


def test_a_tls_error(world: CiliumWorld, calm: FakeCluster, clock: Clock) -> None:
    reached = _impatient(world, (5, 10), ca=certificates.Authority().pem)
    _nothing_is_lost(world, calm, clock, "cluster_tls", reached)
