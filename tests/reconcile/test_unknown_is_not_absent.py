"""Rule `unknown-is-not-absent`: no object, no right and no kind ends by an answer that is not whole."""

from collections.abc import Callable
from datetime import timedelta
from typing import Any

import pytest

from pools.clusters.reconcile import connecting
from pools.models import Connection, Finding, SyncRun
from tests import clock
from tests.kube import gateways
from tests.kube.fake import FakeCluster
from tests.reconcile import small

Trouble = Callable[[FakeCluster], object]


def _fault(**fault: Any) -> Trouble:
    return lambda fake: fake.faults.add(verb="list", path="ciliumnodes", times=None, **fault)


def _second_page(**fault: Any) -> Trouble:
    return lambda fake: fake.faults.add(
        verb="list", path="ciliumnodes", skip=1, times=None, **fault
    )


TROUBLES: dict[str, tuple[str, Trouble]] = {
    "f16_429": ("cluster_busy", _fault(status=429, retry_after=7)),
    "f16_500": ("cluster_server_error", _fault(status=500)),
    "f16_503": ("cluster_server_error", _fault(status=503)),
    "f16_truncated": ("cluster_garbled", _fault(effect="truncate")),
    "f16_html": ("cluster_garbled", _fault(effect="html")),
    "f16_gzip": ("cluster_garbled", _fault(effect="gzip")),
    "f16_cut": ("cluster_unreachable", _fault(effect="cut")),
    "f16_cut_headers": ("cluster_unreachable", _fault(effect="cut-headers")),
    "f16_cut_body": ("cluster_unreachable", _fault(effect="cut-body")),
    "f16_hang": ("cluster_unreachable", _fault(effect="hang")),
    "f16_stall": ("cluster_unreachable", _fault(effect="stall")),
    "f15_410_on_continue": ("resource_version_gone", _second_page(status=410)),
    "partial_500": ("cluster_server_error", _second_page(status=500)),
    "partial_hang": ("cluster_unreachable", _second_page(effect="hang")),
    "f17_401": ("cluster_unauthorized", _fault(status=401)),
    "f17_403": ("cluster_forbidden", _fault(status=403)),
    "f17_404_of_the_crd": ("crd_missing", _fault(status=404)),
    "no_uid": (
        "cluster_garbled",
        _fault(
            body=b'{"kind":"CiliumNodeList","metadata":{"resourceVersion":"9"},'
            b'"items":[{"metadata":{"name":"a"}}]}'
        ),
    ),
}


@pytest.fixture(scope="module")
def many() -> FakeCluster:
    """Two pages of nodes."""
    with FakeCluster() as running:
        running.crds("cilium.io_ciliumnodes")
        for number in range(501):
            running.put(small.node(f"node-{number:03}"))
        yield running


def _impatient(fake: FakeCluster, name: str) -> Callable[[Connection], Any]:
    """Impatient only where nothing comes: a slow answer is none of the other troubles."""
    seconds = 2 if "hang" in name or "stall" in name else 30
    return lambda _: gateways.to(fake, timeouts=(30, seconds))


@pytest.mark.sample(20)
@pytest.mark.parametrize("name", TROUBLES)
def test_unknown_is_not_absent(name: str, db: None, many: FakeCluster, nodes: small.Small) -> None:
    code, trouble = TROUBLES[name]
    connection = small.connect(many)
    assert small.reconcile(connection, nodes).succeeded
    # What trouble hides is not missed, not even for the first time.
    many.faults.clear()
    trouble(many)
    try:
        run = small.reconcile(connection, nodes, open_client=_impatient(many, name))
    finally:
        many.faults.clear()
        many.crds("cilium.io_ciliumnodes")
    assert not run.succeeded
    assert code in {run.error_code, run.kinds.get("CiliumNode", {}).get("code")}
    rows = small.rows(connection)
    assert len(rows) == 501
    assert all(row.missed_at is None for row in rows)
    assert not nodes.forgotten
    connection.refresh_from_db()
    assert (connection.error_code, connection.failures) == (code, 1)
    assert connection.leased_until is None


def test_a_crd_that_is_uninstalled_is_a_finding_and_ends_nothing(
    db: None, fake: FakeCluster, nodes: small.Small
) -> None:
    fake.put(small.node("node-1"))
    connection = small.connect(fake)
    assert small.reconcile(connection, nodes).succeeded
    fake.remove("customresourcedefinitions", "ciliumnodes.cilium.io")
    for _ in range(3):
        run = small.reconcile(connection, nodes)
        assert run.succeeded
        assert run.kinds["CiliumNode"]["code"] == "crd_missing"
    (row,) = small.rows(connection)
    assert row.missed_at is None
    assert not nodes.forgotten
    assert Finding.objects.get().code == "kind_not_served"
    connection.refresh_from_db()
    assert (connection.error_code, connection.failures) == ("", 0)


def test_another_cluster_behind_the_address(world: small.World) -> None:
    world.put("a")
    world.nodes.writes = small.labelling("a")
    assert world.reconcile().succeeded
    pinned, before = Connection.objects.get().identity, world.fake.kube_system_uid
    assert pinned == before
    world.fake.kube_system_uid = "another"
    world.remove("a")
    world.put("a")
    world.fake.log.clear()
    for _ in range(2):
        run = world.reconcile()
        assert run.error_code == connecting.IdentityChanged.code
    assert not world.fake.log.writes
    assert not world.fake.log.select("list", "ciliumnodes")
    assert not world.nodes.forgotten
    assert world.names() == ["a"]
    world.connection.refresh_from_db()
    assert (world.connection.error_code, world.connection.identity) == ("identity_changed", pinned)
    world.fake.kube_system_uid = before
    assert world.reconcile().succeeded


def test_the_same_cluster_twice_is_refused(world: small.World) -> None:
    assert world.reconcile().succeeded
    twin = small.connect(world.fake)
    run = small.reconcile(twin)
    assert run.error_code == "same_cluster"
    twin.refresh_from_db()
    assert (twin.identity, twin.error_code) == ("", "same_cluster")


@pytest.mark.parametrize("objects", [0, 1])
def test_a_kind_that_may_be_absent(objects: int, world: small.World) -> None:
    """A finding says so where objects of it were there: then it was uninstalled."""
    claims = small.Small("IPAMClaim", (small.CLAIM,))
    metadata = {"name": "c", "namespace": "default"}
    claim = {"apiVersion": small.CLAIM.api_version, "kind": "IPAMClaim", "metadata": metadata}
    spec = {"network": "n", "interface": "i"}
    for _ in range(objects):
        world.fake.put({**claim, "spec": spec})
    assert world.reconcile(claims).succeeded
    world.fake.remove("customresourcedefinitions", "ipamclaims.k8s.cni.cncf.io")
    run = world.reconcile(claims)
    assert run.succeeded
    assert Finding.objects.filter(code="kind_not_served").count() == objects
    assert len(small.rows(world.connection, "IPAMClaim")) == objects


def test_retry_after_is_kept_to_within_reason(world: small.World) -> None:
    def waits(retry_after: int) -> float:
        world.fake.faults.add(status=429, retry_after=retry_after)
        world.reconcile()
        row = Connection.objects.get()
        run = SyncRun.objects.order_by("-id")[0]
        assert row.error_code == run.error_code == "cluster_busy"
        return (row.due_at - run.started_at).total_seconds()

    assert waits(50) >= 50
    assert waits(10**9) < 2 * 3600


def test_back_off_grows_and_has_jitter(world: small.World) -> None:
    world.fake.faults.add(status=503, times=None)
    shares = []
    for number in range(12):
        before = clock.moment()
        world.reconcile()
        after = clock.moment()
        due = Connection.objects.get().due_at
        wait = timedelta(seconds=min(5 * 2**number, 300))
        assert before + 0.75 * wait <= due <= after + 1.25 * wait
        shares.append((due - after) / wait)
    assert max(shares[-8:]) - min(shares[-8:]) > 0.05  # in which a slow machine has no part
    world.fake.faults.clear()
    assert world.reconcile().succeeded
    assert Connection.objects.get().failures == 0
