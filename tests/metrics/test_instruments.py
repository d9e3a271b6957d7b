"""What is counted where it happens: passes, requests to API servers, reviews, allocations that fail."""

import threading
from collections.abc import Iterator
from typing import Any

import pytest
from django.db import OperationalError, connection as database

from pools import tasks
from pools.clusters.reconcile import leases, sync
from pools.core import errors
from pools.models import Connection, Measure
from pools.platform import process_metrics
from pools.platform.metrics import registry
from pools.register import clusters
from pools.register.allocator import requests
from tests import factories
from tests.edges import webhooks
from tests.kube.fake import FakeCluster
from tests.metrics import scrapes
from tests.reconcile import small


@pytest.fixture(autouse=True)
def _fresh(monkeypatch: pytest.MonkeyPatch, settings: Any) -> None:
    monkeypatch.setattr(process_metrics, "_process", process_metrics._Process())
    settings.IPAM_ALLOW_LOOPBACK_CLUSTERS = True


@pytest.fixture
def fake() -> Iterator[FakeCluster]:
    with FakeCluster() as running:
        running.crds("cilium.io_ciliumnodes")
        yield running


@pytest.fixture
def connection(fake: FakeCluster) -> Connection:
    return small.connect(fake)


def author(label: str, name: str, **labels: str) -> dict[str, float]:
    process_metrics.flush()
    return scrapes.author(label, name, **labels)


def test_a_pass_that_succeeds(connection: Connection) -> None:
    name = connection.cluster.name
    small.reconcile(connection, small.Small())
    assert author("result", "ipam_reconcile_total", cluster=name) == {"success": 1, "failure": 0}
    assert scrapes.value("ipam_reconcile_duration_seconds_count", cluster=name) == 1
    assert 0 < scrapes.value("ipam_reconcile_duration_seconds_sum", cluster=name) < 60
    assert scrapes.values("ipam_reconcile_errors_total", cluster=name) == []
    sent = {
        sample.labels["verb"]: sample.value
        for sample in scrapes.families()["ipam_k8s_requests"].samples
        if sample.labels["code"] == "200" and sample.labels["cluster"] == name
    }
    assert sent["list"] == 1
    assert sent["get"] >= 2  # /version, the namespace kube-system, discovery


def test_a_pass_that_fails(connection: Connection, fake: FakeCluster) -> None:
    fake.faults.add(status=503, times=None)
    name = connection.cluster.name
    small.reconcile(connection, small.Small())
    assert author("result", "ipam_reconcile_total", cluster=name) == {"success": 0, "failure": 1}
    reasons = scrapes.author("reason", "ipam_reconcile_errors_total", cluster=name)
    assert reasons == {"cluster_server_error": 1}
    assert scrapes.author("code", "ipam_k8s_requests_total", cluster=name) == {"503": 1}


def test_a_server_that_does_not_answer(connection: Connection, fake: FakeCluster) -> None:
    fake.faults.add(effect="cut", times=None)
    name = connection.cluster.name
    small.reconcile(connection, small.Small())
    assert author("code", "ipam_k8s_requests_total", cluster=name) == {"none": 1}


def test_a_dry_run_is_no_pass(connection: Connection) -> None:
    from pools.models.observed import Trigger

    small.reconcile(connection, small.Small(), trigger=Trigger.DRY_RUN)
    result = author("result", "ipam_reconcile_total", cluster=connection.cluster.name)
    assert result == {"success": 0, "failure": 0}


def test_a_lease_that_is_lost_and_the_write_that_it_stops(connection: Connection) -> None:
    lease = leases.take(connection.pk, "one")
    assert lease is not None
    Connection.objects.update(fence=lease.fence + 1)
    with pytest.raises(leases.LeaseLost), leases.transaction_under_lease(lease, factories.BY):
        pytest.fail("it is another's")
    sync.run(lease, [small.Small()])
    process_metrics.flush()
    assert scrapes.value("ipam_lease_lost_total") == 1
    assert scrapes.value("ipam_stale_writes_rejected_total") >= 2


def test_series_of_a_cluster_go_with_it(connection: Connection) -> None:
    cluster = connection.cluster
    small.reconcile(connection, small.Small())
    process_metrics.flush()
    assert f'"{cluster.name}"' in scrape()
    clusters.remove(cluster, author=factories.BY)
    assert f'"{cluster.name}"' not in scrape()
    assert registry.tidy_totals() > 0
    assert not Measure.objects.filter(labels__contains=cluster.name).exists()
    assert registry.tidy_totals() == 0


def scrape() -> str:
    from ipam_site.http import metrics

    return metrics.render().decode()


@pytest.mark.parametrize("name", ['q"uote', "back\\slash", "new\nline", "ünïcode", "{}=,"])
def test_any_name_of_a_cluster_can_be_read_back(name: str) -> None:
    cluster = factories.cluster()
    type(cluster).objects.filter(pk=cluster.pk).update(name=name)
    process_metrics.count("ipam_k8s_requests_total", cluster=name, verb="get", code="200")
    assert author("verb", "ipam_k8s_requests_total", cluster=name) == {"get": 1}
    assert scrapes.value("ipam_orphans_detected", cluster=name) == 0


def test_reviews_of_the_webhook() -> None:
    door = webhooks.Door(factories.cluster())
    door.ask(webhooks.manifest("green"))
    door.ask(webhooks.manifest("blue", "10.0.0.0/8", mask=4))
    door.post(b"{")
    results = author("result", "ipam_webhook_reviews_total", webhook="validate-ciliumpodippools")
    assert results == {"allowed": 1, "refused": 1, "error": 1}
    labels = {"webhook": "validate-ciliumpodippools"}
    assert scrapes.value("ipam_webhook_duration_seconds_count", **labels) == 3


def test_allocations_are_timed_whatever_comes_of_them() -> None:
    pool = factories.pool("10.0.0.0/32", allow_first_ip=True)
    factories.take(pool)
    with pytest.raises(errors.PoolExhausted):
        factories.take(pool)
    process_metrics.flush()
    assert scrapes.value("ipam_allocation_duration_seconds_count") == 2


def test_an_allocation_without_a_database_is_counted_as_a_failure(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def ask() -> None:
        """In a thread, whose connection is not open yet."""
        try:
            requests.allocate(1, factories.demand(), author=factories.BY)
        except OperationalError as error:
            refused.append(error)
        finally:
            database.close()

    refused: list[Exception] = []
    with monkeypatch.context() as patch:
        patch.setitem(database.settings_dict, "PORT", "1")
        thread = threading.Thread(target=ask)
        thread.start()
        thread.join(30)
    assert len(refused) == 1
    reasons = author("reason", "ipam_allocation_failures_total", category="unknown")
    assert reasons == {"ipam_unavailable": 1}
    assert scrapes.author("result", "ipam_allocations_total", category="unknown") == {"failed": 1}


def test_the_tick_marks_the_time_and_counts_events() -> None:
    pool = factories.pool("10.0.0.0/24")
    factories.take(pool)
    assert tasks.tick()
    assert Measure.objects.filter(name="ipam_scheduler_last_tick_timestamp_seconds").exists()
    row = Measure.objects.get(name="ipam_allocations_total")
    assert row.value == 1
