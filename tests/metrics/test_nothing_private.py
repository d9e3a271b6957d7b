"""A scrape tells nobody's name: no address, MAC address, VM, organisation, environment or holder."""

from typing import Any

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext

from ipam_site.http import metrics
from pools.core import errors
from pools.platform import process_metrics
from pools.register.allocator import requests
from tests import factories
from tests.claims import worlds

CANARIES = {
    "address": "10.77.66.",
    "address of IPv6": "2001:db8:77",
    "MAC address": "02:77:66",
    "VM": "canary-vm",
    "organisation": "canary-org",
    "environment": "canary-env",
    "holder": "canary-holder",
    "uid": "canary-uid",
    "namespace": "canary-namespace",
    "server": "canary-server",
}


@pytest.fixture
def busy(monkeypatch: pytest.MonkeyPatch) -> Any:
    """A register in which all of them stand."""
    monkeypatch.setattr(process_metrics, "_process", process_metrics._Process())
    who = {"org": "canary-org", "env": "canary-env"}
    pool = factories.pool("10.77.66.0/30", "2001:db8:77::/126", cooldown=60)
    blocks = []
    for number in range(2):
        holder = factories.holder(f"canary-holder-{number}", uid="canary-uid")
        blocks += factories.ask(pool, holder, **who).blocks
    factories.give_back(blocks[0])
    with pytest.raises(errors.PoolExhausted):
        factories.ask(pool, factories.holder("canary-holder-x"), **who)
    expected = factories.demand(factories.holder("canary-holder-y"), **who)
    requests.allocate(pool.pk, expected, author=factories.BY, wait=True)
    network = worlds.network("blue-network", subnets=("10.77.66.128/25",))
    entries = worlds.ippool(network)
    for last in (1, 2):
        worlds.entry(entries, f"02:77:66:00:00:0{last}", "10.77.66.135", vm=f"canary-vm-{last}")
    worlds.claim(network, "canary-vm", "10.77.66.140", namespace="canary-namespace")
    worlds.workload(
        network, "canary-vm", "02:77:66:00:00:09", "10.77.66.141", namespace="canary-namespace"
    )
    process_metrics.flush()
    return pool


@pytest.mark.sample(12)
@pytest.mark.parametrize("what", CANARIES)
def test_no_canary_is_heard(busy: Any, what: str) -> None:
    for open_metrics in (False, True):
        text = metrics.render(open_metrics=open_metrics).decode()
        assert CANARIES[what] not in text
        assert busy.name in text


def test_the_number_of_series_follows_pools_and_clusters_and_not_blocks(busy: Any) -> None:
    pool = factories.pool("10.0.0.0/20", cooldown=60, within=busy.cluster)
    factories.take(pool)
    before = series()
    for block in factories.ask(pool, *factories.holders(200)).blocks[:100]:
        factories.give_back(block)
    assert series() == before
    factories.pool("10.1.0.0/24", "2001:db8:1::/120", within=busy.cluster)
    assert series() - before == 2 * 8 + 1


@pytest.mark.exhaustive
def test_the_number_of_statements_does_not_follow_pools_or_clusters() -> None:
    factories.pool("10.0.0.0/24")
    statements()  # the first one fills what the process keeps
    few = statements()
    for _ in range(5):
        factories.pool("10.0.0.0/24", "2001:db8::/120", reserved=["10.0.0.0/30"])
    assert statements() == few


def series() -> int:
    lines = metrics.render().decode().splitlines()
    return sum(not line.startswith("#") for line in lines)


def statements() -> int:
    metrics.render()
    with CaptureQueriesContext(connection) as queries:
        metrics.render()
    return len(queries)
