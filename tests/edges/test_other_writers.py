"""A managed resource that another controller of the cluster writes is switched on by confirmation only."""

import contextlib
import time
from pathlib import Path
from typing import Any

import pytest
from django.core.management import CommandError, call_command

from claims.core.resources import CLUSTER_UDN, IPAM_CLAIM
from pools.clusters import connection_test, connections, fleet, other_writers
from pools.clusters.reconcile import registry
from pools.clusters.reconcile.handler import STATUS_MANAGER
from pools.clusters.reconcile.watcher import POLL_INTERVAL, Watcher, _WatchedCluster
from pools.clusters.reconcile.watchers import Share
from pools.core.kubernetes.resources import CILIUM_NODE
from pools.models import Alert, Cluster, Connection, Finding, SyncRun
from pools.platform.conditions import evaluation
from tests import factories, people
from tests.edges import api as apis
from tests.kube.fake import FakeCluster
from tests.reconcile import small

LEASES = {"pod-cidrs": "cilium-operator-resource-lock", "claims": "ovn-kubernetes-master"}
CRDS = (
    "cilium.io_ciliumpodippools.v2",
    "cilium.io_ciliumnodes",
    "k8s.cni.cncf.io_ipamclaims",
    "k8s.ovn.org_clusteruserdefinednetworks",
)


@pytest.fixture
def definitions() -> tuple[str, ...]:
    return CRDS


@pytest.fixture
def server(server: Any, settings: Any) -> Any:
    """A cluster with the kinds of Cilium and OVN-Kubernetes, and no Lease of theirs."""
    settings.IPAM_ALLOW_LOOPBACK_CLUSTERS = True
    if not isinstance(server, FakeCluster):
        for name in LEASES.values():
            with contextlib.suppress(RuntimeError):  # there is none
                server.remove("leases", name, "kube-system")
    return server


@pytest.fixture
def fake(server: Any) -> FakeCluster:
    """The server, for tests of what it is asked, and of its faults."""
    if not isinstance(server, FakeCluster):
        pytest.skip("a real API server has no log of requests")
    return server


@pytest.fixture
def row(server: Any, db: None) -> Connection:
    source = connections.from_kubeconfig(server.kubeconfig())
    return connections.connect(
        factories.cluster(), source, connections.Terms(), author=factories.BY
    )


def put_lease(server: Any, name: str, holder: str) -> None:
    server.put(
        {
            "apiVersion": "coordination.k8s.io/v1",
            "kind": "Lease",
            "metadata": {"name": name, "namespace": "kube-system"},
            "spec": {"holderIdentity": holder},
        }
    )


def put_claim_with_address(server: Any, manager: str) -> None:
    """An IPAMClaim whose status this field manager has written."""
    server.put({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "blue"}})
    server.put(
        {
            "apiVersion": IPAM_CLAIM.api_version,
            "kind": IPAM_CLAIM.kind,
            "metadata": {"name": "vm1.podnet", "namespace": "blue"},
            "spec": {"network": "podnet", "interface": "net1"},
            "status": {"ips": ["10.50.0.5/24"]},
        },
        manager=manager,
    )


def trace(server: Any, resource: str) -> None:
    """What the controller has written, without its Lease."""
    if resource == "pod-cidrs":
        pools = {"allocated": [{"pool": "a", "cidrs": ["10.0.0.0/24"]}]}
        server.put(
            {
                "apiVersion": CILIUM_NODE.api_version,
                "kind": "CiliumNode",
                "metadata": {"name": "n1"},
                "spec": {"ipam": {"pools": pools}},
            },
            manager="cilium-operator-generic",
        )
        return
    condition = {
        "type": "NetworkCreated",
        "status": "True",
        "reason": "Ok",
        "message": "",
        "lastTransitionTime": "2026-01-01T00:00:00Z",
    }
    network = {
        "topology": "Layer2",
        "layer2": {"role": "Primary", "subnets": ["10.50.0.0/24"]},
    }
    server.put(
        {
            "apiVersion": CLUSTER_UDN.api_version,
            "kind": CLUSTER_UDN.kind,
            "metadata": {"name": "prod"},
            "spec": {"namespaceSelector": {}, "network": network},
            "status": {"conditions": [condition]},
        }
    )


def enable(row: Connection, resource: str, **more: Any) -> Any:
    body = {"mode": "managed", "managed_resources": [resource], **more}
    return apis.Api()("PATCH", f"clusters/{row.cluster.name}/connection/", body)


def full_sync(row: Connection) -> None:
    Connection.objects.filter(pk=row.pk).update(leased_until=None)
    small.reconcile(row, *registry.HANDLERS)
    row.refresh_from_db()


@pytest.mark.sample(4)
@pytest.mark.parametrize("resource", LEASES)
@pytest.mark.parametrize("shown_by", ["lease", "trace"])
def test_it_is_refused_until_it_is_confirmed(
    resource: str, shown_by: str, server: Any, row: Connection
) -> None:
    if shown_by == "lease":
        put_lease(server, LEASES[resource], "operator-1_uuid")
    else:
        trace(server, resource)
    answer = enable(row, resource)
    assert (answer.status_code, answer.json()["code"]) == (409, "other_writer")
    assert "confirm_other_writer" in answer.json()["detail"]
    row.refresh_from_db()
    assert row.managed_resources == []
    command = ["cluster", "set", row.cluster.name, "--managed", "--enable", resource]
    with pytest.raises(CommandError, match="other_writer"):
        call_command(*command)
    answer = enable(row, resource, confirm_other_writer=True)
    assert answer.json()["managed_resources"] == [resource]
    assert enable(row, resource).status_code == 200  # it is on already


@pytest.mark.parametrize("resource", LEASES)
def test_who_was_stopped_is_no_other_writer(resource: str, server: Any, row: Connection) -> None:
    put_lease(server, LEASES[resource], "")
    trace(server, resource)
    assert enable(row, resource).status_code == 200


@pytest.mark.exhaustive
@pytest.mark.parametrize("resource", LEASES)
def test_who_starts_later_is_a_finding_and_on_the_connection(
    resource: str, server: Any, row: Connection
) -> None:
    assert enable(row, resource).status_code == 200
    full_sync(row)
    assert not Finding.objects.filter(code=other_writers.FOUND).exists()
    put_lease(server, LEASES[resource], "operator-1_uuid")
    full_sync(row)
    finding = Finding.objects.get(code=other_writers.FOUND)
    assert (finding.subject, finding.severity) == (resource, "error")
    (writers,) = [
        writer for writer in fleet.summary(row).writers if writer.managed_resource == resource
    ]
    assert len(writers.writers) == 2
    assert "operator-1_uuid" in writers.note
    put_lease(server, LEASES[resource], "")
    full_sync(row)
    assert not Finding.objects.filter(code=other_writers.FOUND).exists()


@pytest.mark.parametrize("resource", LEASES)
def test_the_watcher_reads_leases_once_a_minute_where_both_would_write(
    resource: str, fake: FakeCluster, row: Connection
) -> None:
    enable(row, resource)
    full_sync(row)
    put_lease(fake, LEASES[resource], "operator-1_uuid")
    runs, lists = SyncRun.objects.count(), len(fake.log.select("list"))
    watching = Watcher(registry.HANDLERS)
    watched = _WatchedCluster(Share(row.pk, "", row.positions))
    assert not watching._has_work(watched, time.monotonic())
    watched.polled_at -= POLL_INTERVAL + 1
    assert watching._has_work(watched, time.monotonic())
    watching._process(row.pk, watched)
    assert Finding.objects.get(code=other_writers.FOUND).subject == resource
    assert len(fake.log.select("list")) == lists + 1
    assert not watching._has_work(watched, time.monotonic())
    put_lease(fake, LEASES[resource], "")
    watched.polled_at -= POLL_INTERVAL + 1
    watching._process(row.pk, watched)
    assert not Finding.objects.filter(code=other_writers.FOUND).exists()
    assert SyncRun.objects.count() == runs + 2
    watched.polled_at -= POLL_INTERVAL + 1
    watching._process(row.pk, watched)  # renewed by the same holder: nothing is written
    assert SyncRun.objects.count() == runs + 2


def test_leases_are_not_read_for_what_cadastre_does_not_write(
    fake: FakeCluster, row: Connection
) -> None:
    full_sync(row)
    requests = len(list(fake.log))
    watched = _WatchedCluster(Share(row.pk, "", row.positions))
    watched.polled_at -= POLL_INTERVAL + 1
    Watcher(registry.HANDLERS)._process(row.pk, watched)
    assert len(list(fake.log)) == requests


@pytest.mark.exhaustive
def test_what_cannot_be_read_is_unknown(fake: FakeCluster, row: Connection) -> None:
    fake.faults.add(verb="list", path="/apis/coordination.k8s.io/v1/leases", status=403, times=None)
    assert enable(row, "pod-cidrs").status_code == 200
    row.refresh_from_db()
    doubts = connection_test.test_connection(row, registry.resources()).doubts
    assert any("It is not known whether Cilium's operator" in doubt for doubt in doubts)
    full_sync(row)
    (writers, *_) = [
        writer for writer in fleet.summary(row).writers if writer.managed_resource == "pod-cidrs"
    ]
    assert "cannot be read" in writers.note


def test_the_form_asks_for_the_confirmation(server: Any, row: Connection) -> None:
    browser = people.browser()
    put_lease(server, LEASES["claims"], "cm-1")
    url = f"/admin/pools/cluster/{row.cluster_id}/terms/"
    values = {"mode": "managed", "managed_resources": ["claims"]}
    page = browser.post(url, values)
    assert "OVN-Kubernetes writes what claims writes" in page.content.decode()
    row.refresh_from_db()
    assert row.managed_resources == []
    browser.post(url, values | {"confirm_other_writer": "on"})
    row.refresh_from_db()
    assert row.managed_resources == ["claims"]


def test_a_status_that_another_manager_wrote_is_evidence(server: Any, row: Connection) -> None:
    put_claim_with_address(server, "ovnkube-cluster-manager")
    answer = enable(row, "claims")
    assert (answer.status_code, answer.json()["code"]) == (409, "other_writer")
    assert "the status of the IPAMClaim vm1.podnet" in answer.json()["detail"]


def test_a_status_of_our_own_is_no_evidence(server: Any, row: Connection) -> None:
    put_claim_with_address(server, STATUS_MANAGER)
    assert enable(row, "claims").status_code == 200


def test_whoever_connects_a_cluster_confirms_it_too(server: Any, tmp_path: Path) -> None:
    put_lease(server, LEASES["claims"], "cm-1")
    cluster = factories.cluster()
    url = f"clusters/{cluster.name}/connection/"
    body = {"kubeconfig": server.kubeconfig(), "mode": "managed", "managed_resources": ["claims"]}
    answer = apis.Api()("PUT", url, body)
    assert (answer.status_code, answer.json()["code"]) == (409, "other_writer")
    values = {"text": server.kubeconfig(), "mode": "managed", "managed_resources": ["claims"]}
    page = people.browser().post(f"/admin/pools/cluster/{cluster.pk}/connect/", values)
    assert "OVN-Kubernetes writes what claims writes" in page.content.decode()
    path = tmp_path / "kubeconfig"
    path.write_text(server.kubeconfig())
    terms = ["--kubeconfig", str(path), "--managed", "--enable", "claims"]
    for command in (["set", cluster.name], ["add", "another"]):
        with pytest.raises(CommandError, match="other_writer"):
            call_command("cluster", *command, *terms)
    assert not Connection.objects.exists()
    assert not Cluster.objects.filter(name="another").exists()
    assert apis.Api()("PUT", url, body | {"confirm_other_writer": True}).status_code == 201


def test_from_the_first_sync_run_on_pages_answers_and_alerts_say_who_writes(
    server: Any, row: Connection
) -> None:
    assert enable(row, "claims").status_code == 200
    put_lease(server, LEASES["claims"], "cm-1")
    full_sync(row)
    writers = apis.Api()("GET", f"clusters/{row.cluster.name}/connection/").json()["writers"]
    (answer,) = [writer for writer in writers if writer["managed_resource"] == "claims"]
    assert len(answer["writers"]) == 2
    assert "cm-1" in answer["note"]
    page = people.browser().get(f"/admin/pools/cluster/{row.cluster_id}/change/")
    assert "Who writes claims" in page.content.decode()
    doubts = connection_test.test_connection(row, registry.resources()).doubts
    assert any(doubt.startswith("OVN-Kubernetes writes what claims writes") for doubt in doubts)
    evaluation.evaluate()
    alert = Alert.objects.get(subject=f"cluster/{row.cluster_id}/claims")
    assert (alert.level, "cm-1" in alert.detail) == ("error", True)
    put_lease(server, LEASES["claims"], "")
    full_sync(row)
    evaluation.evaluate()
    alert.refresh_from_db()
    assert alert.ended_at is not None
