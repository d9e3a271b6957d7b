"""Gauges, and the measures behind them."""

import math
import threading
import time
import types
from typing import Any

import pytest
from celery import signals

from pools.clusters import fleet
from pools.core.observed.uses import Role
from pools.models import (
    Alert,
    Cluster,
    Connection,
    Delivery,
    Finding,
    Leak,
    Measure,
    Now,
    PoolUsage,
    Recovery,
    WebhookTarget,
)
from pools.observed.cidrs import CLASH
from pools.platform import process_metrics
from pools.register import metrics as operating_metrics, usage
from pools.register.allocator import requests
from tests import clock, factories
from tests.claims import worlds
from tests.metrics import scrapes
from tests.observed.rows import observed
from tests.pools.conftest import Clock


@pytest.fixture
def cluster() -> Cluster:
    return factories.cluster()


def leak(owner: Cluster, kind: str, *, confirmed: bool = True) -> None:
    pool = factories.pool("10.0.0.0/24", within=owner)
    row = factories.row(factories.take(pool, factories.holder(kind=kind)))
    Leak.objects.create(
        block=row, cluster=owner, source="test", holder_kind=kind, holder_id=row.holder_id,
        allocated_at=row.allocated_at, missed_at=Now(), observed_at=Now(),
        confirmed_at=Now() if confirmed else None,
    )  # fmt: skip


def connected(owner: Cluster, **settings: Any) -> Connection:
    values: dict[str, Any] = {"server": "https://10.0.0.1:6443", "sealed": "", "due_at": Now()}
    return Connection.objects.create(cluster=owner, **values | settings)


def finding(owner: Cluster, code: str, subject: str, severity: str) -> None:
    Finding.objects.create(
        cluster=owner, kind="CiliumNode", code=code, subject=subject, severity=severity,
        message="m", since=Now(),
    )  # fmt: skip


def test_clusters(cluster: Cluster) -> None:
    connected(cluster, succeeded_at=Now())
    other = factories.cluster()
    connected(other, paused=True)
    factories.cluster()  # without a connection
    last = "ipam_cluster_last_success_timestamp_seconds"
    assert scrapes.value(last, cluster=cluster.name) == pytest.approx(
        clock.moment().timestamp(), abs=60
    )
    assert scrapes.author("cluster", "ipam_cluster_connected") == {cluster.name: 1, other.name: 0}
    assert scrapes.value(last, cluster=other.name) == 0


def test_findings_and_duplicates_of_nodes(cluster: Cluster) -> None:
    finding(cluster, "cidr_overlap", "a", "error")
    finding(cluster, "unknown_pool", "b", "warning")
    finding(cluster, fleet.SAME_POD_CIDR, "c", "error")
    counts = scrapes.author("severity", "ipam_findings", cluster=cluster.name)
    assert counts == {"error": 2, "warning": 1}
    assert scrapes.value("ipam_duplicates_detected", cluster=cluster.name) == 1


def test_observed_cidrs_by_kind_and_their_clashes(cluster: Cluster) -> None:
    other = factories.cluster()
    for number in range(3):
        observed(cluster, Role.NODE, f"192.168.1.{number}/32")
    observed(cluster, Role.SERVICES, "10.96.0.0/12")
    observed(other, Role.SERVICES, "10.96.0.0/12")
    finding(cluster, CLASH, "a", "error")
    finding(cluster, "cidr_overlap", "b", "error")
    of_kind = "ipam_observed_cidrs"
    assert scrapes.author("kind", of_kind, cluster=cluster.name) == {"Node": 3, "ServiceCIDR": 1}
    assert scrapes.author("kind", of_kind, cluster=other.name) == {"ServiceCIDR": 1}
    clashes = scrapes.author("cluster", "ipam_address_clashes_detected")
    assert clashes == {cluster.name: 1, other.name: 0}


def test_duplicates_of_vm_networks_are_added(cluster: Cluster) -> None:
    finding(cluster, fleet.SAME_POD_CIDR, "c", "error")
    pool = worlds.ippool(worlds.network(of=cluster))
    worlds.entry(pool, "02:00:00:00:00:01", "10.0.0.5")
    worlds.entry(pool, "02:00:00:00:00:02", "10.0.0.5")
    worlds.entry(pool, "02:00:00:00:00:03", "10.0.0.6")
    from claims.address_index import conflicts

    conflicts.recheck_network(pool.network)
    assert scrapes.value("ipam_duplicates_detected", cluster=cluster.name) == 3


def test_orphans(cluster: Cluster) -> None:
    pool = factories.pool("10.0.0.0/24", "10.1.0.0/24", within=cluster)
    whole = factories.pool("10.2.0.0/24", within=cluster)
    pool.cidrs.filter(cidr="10.1.0.0/24").update(orphaned_at=Now())
    type(whole).objects.filter(pk=whole.pk).update(orphaned_at=Now())
    assert scrapes.value("ipam_orphans_detected", cluster=cluster.name) == 2
    states = scrapes.author("state", "ipam_pool_addresses", pool=pool.name)
    assert sum(states.values()) == scrapes.value("ipam_pool_capacity_addresses", pool=pool.name)


def test_leaks_by_kind_of_holder(monkeypatch: pytest.MonkeyPatch) -> None:
    clusters = [factories.cluster() for _ in range(2)]
    leak(clusters[0], "node")
    leak(clusters[1], "robot")
    first, second = (
        scrapes.author("holder_kind", "ipam_leaks_detected", cluster=item.name) for item in clusters
    )
    assert first == {"node": 1, "instance": 0, "env": 0}
    assert second == {"node": 0, "instance": 0, "env": 0, "robot": 1}
    monkeypatch.setattr(fleet, "MOST_KINDS", 0)
    second = scrapes.author("holder_kind", "ipam_leaks_detected", cluster=clusters[1].name)
    assert second == {"node": 0, "instance": 0, "env": 0, "other": 1}


def test_a_suspicion_is_no_leak(cluster: Cluster) -> None:
    leak(cluster, "node", confirmed=False)
    assert sum(scrapes.values("ipam_leaks_detected")) == 0


def test_what_waits() -> None:
    pool = factories.pool("10.0.0.0/32", allow_first_ip=True)
    factories.take(pool)
    requests.allocate(pool.pk, factories.demand(), author=factories.BY, wait=True)
    target = WebhookTarget.objects.create(
        name="t", url="https://x", sealed="", created_at=Now(), secret_made_at=Now()
    )
    values: dict[str, Any] = {"level": "error", "title": "t", "since": Now(), "seen_at": Now()}
    for number in range(3):
        alert = Alert.objects.create(code="c", subject=str(number), **values)
        state = "pending" if number else "delivered"
        Delivery.objects.create(
            target=target, alert=alert, event="opened", state=state, next_try_at=Now(),
            created_at=Now(),
        )  # fmt: skip
    Clock().advance(3600)
    assert scrapes.value("ipam_outbox_pending") == 2
    assert scrapes.value("ipam_outbox_oldest_seconds") == pytest.approx(3600, abs=60)
    assert scrapes.value("ipam_requests_oldest_seconds") == pytest.approx(3600, abs=60)
    assert scrapes.value("ipam_requests_pending", pool=pool.name) == 1


def test_verifications_and_recovery() -> None:
    assert scrapes.value("ipam_audit_chain_ok") == 1
    assert scrapes.value("ipam_recovery_active") == 0
    Alert.objects.create(
        code="audit_chain_broken", subject="register", level="error", since=Now(), seen_at=Now()
    )
    Recovery.objects.create(since=Now(), after_run=0, reason="r")
    assert scrapes.value("ipam_audit_chain_ok") == 0
    assert scrapes.value("ipam_recovery_active") == 1


def test_how_far_the_clock_of_the_database_is_ahead(monkeypatch: pytest.MonkeyPatch) -> None:
    behind = types.SimpleNamespace(time=lambda: time.time() - 3600)
    monkeypatch.setattr(operating_metrics, "time", behind)
    ahead = clock.moment().timestamp() - behind.time()
    assert scrapes.value("ipam_database_clock_skew_seconds") == pytest.approx(ahead, abs=60)


def test_what_is_running() -> None:
    (build,) = scrapes.families()["ipam_build_info"].samples
    assert build.labels["version"]
    assert build.labels["python"].startswith("3.")


def test_the_states_of_a_pool_are_counted_in_addresses() -> None:
    pool = factories.pool("10.0.0.0/20", mask=24, cooldown=3600, reserved=["10.0.1.5/32"])
    blocks = [factories.take(pool) for _ in range(3)]
    factories.give_back(blocks[0])
    assert scrapes.author("state", "ipam_pool_addresses", pool=pool.name) == {
        "free": 12 * 256,
        "held": 2 * 256,
        "cooling": 256,
        "reserved": 256,
    }
    labels = {"cluster": pool.cluster.name, "pool": pool.name, "category": "vm", "family": "4"}
    assert scrapes.value("ipam_pool_capacity_addresses", **labels) == 16 * 256
    assert scrapes.value("ipam_pool_block_addresses", **labels) == 256
    assert scrapes.value("ipam_pool_utilization_ratio", **labels) == pytest.approx(3 / 15)
    del labels["category"]
    assert scrapes.value("ipam_cooldown_queue_addresses", **labels) == 256


@pytest.mark.sample(9)
@pytest.mark.parametrize(
    ("cidrs", "mask"),
    [
        (["10.0.0.0/29"], None),
        (["10.0.0.0/22", "10.9.0.0/22"], 24),
        (["2001:db8::/112"], None),
        (["10.0.0.0/24", "2001:db8::/120"], None),
    ],
    ids=["small", "blocks", "ipv6", "both"],
)
@pytest.mark.parametrize("cooldown", [0, 3600])
def test_the_states_add_up_to_the_capacity(
    cidrs: list[str], mask: int | None, cooldown: int
) -> None:
    pool = factories.pool(*cidrs, mask=mask, cooldown=cooldown, reserved=["10.0.0.0-10.0.0.3"])
    blocks = [block for _ in range(3) for block in factories.ask(pool).blocks]
    factories.give_back(blocks[0])
    for family in {"4" if "." in cidr else "6" for cidr in cidrs}:
        (capacity,) = scrapes.values("ipam_pool_capacity_addresses", pool=pool.name, family=family)
        states = scrapes.values("ipam_pool_addresses", pool=pool.name, family=family)
        assert len(states) == 4
        assert sum(states) == capacity
        assert min(states) >= 0


def test_a_cooldown_that_has_passed_is_free_although_nobody_tidied() -> None:
    pool = factories.pool("10.0.0.0/29", cooldown=3600)
    factories.give_back(factories.take(pool))
    assert scrapes.value("ipam_cooldown_queue_addresses", pool=pool.name) == 1
    Clock().advance(7200)
    assert scrapes.author("state", "ipam_pool_addresses", pool=pool.name)["cooling"] == 0
    assert scrapes.value("ipam_cooldown_queue_addresses", pool=pool.name) == 0


def test_a_pool_of_ipv6_has_its_size_to_16_digits() -> None:
    pool = factories.pool("2001:db8::/48", mask=64)
    factories.take(pool)
    capacity = scrapes.value("ipam_pool_capacity_addresses", pool=pool.name)
    assert capacity == float(2**80)
    states = scrapes.author("state", "ipam_pool_addresses", pool=pool.name)
    assert states["held"] == float(2**64)
    assert sum(states.values()) == pytest.approx(capacity, rel=1e-15)


def test_an_old_count_of_a_very_large_pool_still_adds_up(monkeypatch: pytest.MonkeyPatch) -> None:
    pool = factories.pool("10.0.0.0/28")
    monkeypatch.setattr(usage, "LARGE", 10)
    PoolUsage.objects.create(pool=pool, family=4, held=12, cooling=9, withheld=3, counted_at=Now())
    states = scrapes.author("state", "ipam_pool_addresses", pool=pool.name)
    assert states == {"free": 0, "held": 12, "cooling": 2, "reserved": 0}


# --- Counting and timing: never in the way of the caller, and never more than fits ----------------
@pytest.fixture(autouse=True)
def _fresh(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(process_metrics, "_process", process_metrics._Process())


def stored() -> dict[tuple[str, str], float]:
    return {(row.name, row.labels): row.value for row in Measure.objects.all()}


def test_counts_are_summed_by_labels_in_any_order() -> None:
    process_metrics.count("a_total", cluster="x", verb="get")
    process_metrics.count("a_total", 2, verb="get", cluster="x")
    process_metrics.count("a_total", cluster="y", verb="get")
    process_metrics.flush()
    process_metrics.count("a_total", 4, cluster="x", verb="get")
    process_metrics.flush()
    assert stored() == {
        ("a_total", '{"cluster": "x", "verb": "get"}'): 7,
        ("a_total", '{"cluster": "y", "verb": "get"}'): 1,
    }


@pytest.mark.sample(5)
@pytest.mark.parametrize(
    ("seconds", "buckets"),
    [
        (0.0005, {"0.001": 1, "0.0025": 1, "5.0": 1, "+Inf": 1}),
        (0.001, {"0.001": 1, "+Inf": 1}),
        (0.0011, {"0.001": 0, "0.0025": 1, "+Inf": 1}),
        (5, {"2.5": 0, "5.0": 1, "+Inf": 1}),
        (60, {"5.0": 0, "+Inf": 1}),
    ],
)
def test_a_histogram_holds_in_each_bucket_those_below_it(
    seconds: float, buckets: dict[str, float]
) -> None:
    process_metrics.observe("ipam_allocation_duration_seconds", seconds)
    process_metrics.flush()
    result = scrapes.author("le", "ipam_allocation_duration_seconds_bucket")
    assert {end: result[end] for end in buckets} == buckets
    assert scrapes.value("ipam_allocation_duration_seconds_count") == 1
    assert scrapes.value("ipam_allocation_duration_seconds_sum") == seconds


def test_a_mark_is_the_time_of_the_database_when_it_was_set() -> None:
    process_metrics.mark("ipam_scheduler_last_tick_timestamp_seconds")
    time.sleep(1)
    later = clock.moment().timestamp()
    process_metrics.flush()
    value = scrapes.value("ipam_scheduler_last_tick_timestamp_seconds")
    assert value < later - 0.5, "when it was written does not matter"


def test_an_older_mark_does_not_move_a_later_one_back() -> None:
    Measure.objects.create(name="ipam_scheduler_last_tick_timestamp_seconds", value=4e9)
    process_metrics.mark("ipam_scheduler_last_tick_timestamp_seconds")
    process_metrics.flush()
    assert scrapes.value("ipam_scheduler_last_tick_timestamp_seconds") == 4e9


@pytest.mark.parametrize("amount", [math.nan, math.inf, -math.inf])
def test_what_is_no_number_spoils_no_total(amount: float) -> None:
    process_metrics.count("a_total", amount)
    process_metrics.observe("ipam_allocation_duration_seconds", amount)
    process_metrics.count("a_total")
    process_metrics.flush()
    assert all(math.isfinite(value) for value in stored().values())


def test_what_does_not_fit_is_left_out_and_what_is_known_goes_on(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(process_metrics, "MOST_SERIES", 3)
    for number in range(10):
        process_metrics.count("a_total", cluster=str(number))
        process_metrics.count("a_total", cluster="0")
    process_metrics.flush()
    assert len(stored()) == 3
    assert stored()["a_total", '{"cluster": "0"}'] == 11


def test_threads_lose_nothing() -> None:
    def work() -> None:
        for _ in range(2000):
            process_metrics.count("a_total")

    running = [threading.Thread(target=work) for _ in range(8)]
    for thread in running:
        thread.start()
    process_metrics.flush()
    for thread in running:
        thread.join()
    process_metrics.flush()
    assert stored() == {("a_total", "{}"): 16_000}


def test_a_child_of_a_celery_worker_writes_before_it_ends() -> None:
    import ipam_site.celery  # noqa: F401  # registers the signal

    process_metrics.count("a_total")
    signals.worker_process_shutdown.send(sender=None, pid=1, exitcode=0)
    assert stored() == {("a_total", "{}"): 1}
