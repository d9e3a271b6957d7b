"""Connecting clusters: who is asked, what is kept, and what is refused."""

from typing import Any

import pytest

from pools.clusters import connections
from pools.clusters.reconcile import connecting, leases, sync
from pools.core import errors
from pools.models import Connection, ConnectionEvent
from tests import factories
from tests.kube import kubeconfigs
from tests.kube.fake import FakeCluster

pytestmark = pytest.mark.django_db
OBSERVED = connections.Terms()


def _connect(fake: FakeCluster, **options: Any) -> Connection:
    source = connections.from_kubeconfig(fake.kubeconfig())
    cluster = options.pop("cluster", None) or factories.cluster()
    return connections.connect(cluster, source, OBSERVED, author=factories.BY, **options)


def test_identity_and_version_are_pinned_and_credentials_sealed(fake: FakeCluster) -> None:
    row = _connect(fake)
    assert (row.identity, row.version[:2]) == (fake.kube_system_uid, "v1")
    assert fake.token not in row.sealed
    assert connecting.cluster_access(row).token == fake.token
    assert fake.token not in str(list(ConnectionEvent.objects.values()))


def test_offline_asks_nobody(fake: FakeCluster) -> None:
    row = _connect(fake, offline=True)
    assert (row.identity, row.version) == ("", "")
    assert len(fake.log) == 0


def test_the_same_cluster_is_refused_by_the_database_too(fake: FakeCluster) -> None:
    row, later = _connect(fake), _connect(fake, offline=True)
    with pytest.raises(errors.SameCluster):
        connections._in_transaction(
            lambda: Connection.objects.filter(pk=later.pk).update(identity=row.identity)
        )


def test_a_server_s_url_fits_its_column(fake: FakeCluster) -> None:
    text = kubeconfigs.text(f"https://a.example/{'x' * 500}", fake.ca, token=fake.token)
    with pytest.raises(errors.InvalidInput) as refused:
        connections.from_kubeconfig(text)
    assert refused.value.code == "too_long"


def test_a_pass_finds_that_two_are_one_cluster(fake: FakeCluster) -> None:
    first, second = _connect(fake, offline=True), _connect(fake, offline=True)
    for row in (first, second):
        lease = leases.take(row.pk, "tester")
        assert lease is not None
        sync.run(lease, [])
        row.refresh_from_db()
    assert (first.identity, first.error_code) == (fake.kube_system_uid, "")
    assert (second.identity, second.error_code) == ("", "same_cluster")
    # It is stored, and read by tokens that may not know the other cluster.
    assert first.cluster.name not in second.error
    assert "under another name" in second.error


def test_a_worker_under_the_old_terms_loses_the_cluster(fake: FakeCluster) -> None:
    row = _connect(fake)
    lease = leases.take(row.pk, "tester")
    assert lease is not None
    connections.change(row, author=factories.BY, paused=True)
    with pytest.raises(leases.LeaseLost), leases.transaction_under_lease(lease, factories.BY):
        raise AssertionError("it still has the cluster")
