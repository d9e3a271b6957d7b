"""The event log filtered by the pool and the cluster of a VM network: also by tables that have no such column."""

import pytest

from claims.models import Network
from claims.networks import pools
from pools.models import Cluster, Event, Pool
from pools.register import event_filters
from tests import factories, stale
from tests.claims import worlds


@pytest.mark.sample(2)
@pytest.mark.parametrize("most", [0, 10_000])
def test_the_filters_find_what_the_columns_say(monkeypatch: pytest.MonkeyPatch, most: int) -> None:
    monkeypatch.setattr(event_filters, "MOST", most)
    network = worlds.network()
    pools.sync_pool(network, author=factories.BY)
    network = Network.objects.get(pk=network.pk)
    entry = worlds.entry(worlds.ippool(network), "02:00:00:00:00:0a", "10.0.0.5/24", vm="db")
    worlds.claim(network, "db", ips_requested=["10.0.0.6/24"])
    other = factories.pool("10.9.0.0/24")
    factories.take(other)
    entry.delete()
    deleted_pool = factories.pool("10.8.0.0/24")
    deleted_id = deleted_pool.pk
    deleted_pool.delete()
    for pool_id in (*Pool.objects.values_list("pk", flat=True), deleted_id):
        of_pool = event_filters.of_pools(Event.objects.all(), [pool_id])
        assert {*of_pool} == {*Event.objects.filter(pool_id=pool_id)}
        assert of_pool.exists()
    for cluster_id in Cluster.objects.values_list("pk", flat=True):
        of_cluster = event_filters.of_cluster(Event.objects.all(), cluster_id)
        assert {*of_cluster} == {*Event.objects.filter(cluster_id=cluster_id)}
    tables = {
        event.table for event in event_filters.of_pools(Event.objects.all(), [network.pool_id])
    }
    assert {"entryevent", "ipamclaimevent"} <= tables


@pytest.mark.exhaustive
def test_the_newest_events_of_many_read_their_own_rows_only(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Not the whole table of events, of which there may be millions."""
    monkeypatch.setattr(event_filters, "MOST", 0)
    network = worlds.network()
    pools.sync_pool(network, author=factories.BY)
    network = Network.objects.get(pk=network.pk)
    ippool = worlds.ippool(network)
    for number in range(2, 202):
        mac = f"02:00:00:00:00:{number:02x}"
        worlds.entry(ippool, mac, f"10.0.0.{number}/24", vm=f"vm-{number}")
    stale.sql("ANALYZE")
    of_pool = event_filters.of_pools(Event.objects.all(), [network.pool_id]).order_by("-id")
    before = stale.read()
    assert len(of_pool[:20]) == 20
    assert stale.since(before).get("claims_entryevent", 0) <= 100
