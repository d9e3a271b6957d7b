"""The table of counters, and what counts."""

import re
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pgtrigger
import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext

from ipam_site.http import metrics
from pools.core import errors
from pools.models import BlockEvent, CountedUntil
from pools.platform import process_metrics
from pools.platform.metrics import families, registry
from pools.platform.metrics.families import Kind
from pools.register.allocator import requests
from tests import factories
from tests.claims import worlds
from tests.metrics import scrapes

_ROOT = Path(__file__).resolve().parents[2]
_DOCS = _ROOT / "docs" / "reference" / "metrics.md"
_COUNTED = re.compile(r"process_metrics\.(count|observe|mark)\(\s*\"([^\"]+)\"")


def test_no_label_tells_who_holds_what() -> None:
    used = {label for family in families.ALL for label in family.labels}
    assert used == {
        "cluster", "pool", "category", "family", "state", "result", "reason", "holder_kind",
        "kind", "severity", "webhook", "verb", "code", "version", "revision", "python",
        "segment", "digest", "level",
    }  # fmt: skip


def test_what_is_counted_anywhere_is_in_the_table() -> None:
    result = {
        (verb, name)
        for folder in ("pools", "claims", "ipam_site")
        for path in (_ROOT / folder).rglob("*.py")
        for verb, name in _COUNTED.findall(path.read_text())
    }
    verbs = {
        Kind.COUNTER: {"count"},
        Kind.GAUGE: {"mark"},
        Kind.HISTOGRAM: {"observe"},
        Kind.SUMMARY: {"observe"},
    }
    for verb, name in result:
        family = families.BY_NAME[name]
        assert family.is_measured, name
        assert verb in verbs[family.kind], name
    # Releases are counted from events only.
    counted = {name for _, name in result} | {"ipam_releases_total"}
    assert counted == {family.name for family in families.ALL if family.is_measured}


def test_histograms_are_those_that_have_buckets() -> None:
    histograms = {family.name for family in families.ALL if family.kind is Kind.HISTOGRAM}
    assert histograms == set(process_metrics.BUCKETS)
    for ends in process_metrics.BUCKETS.values():
        assert list(ends) == sorted(set(ends))


def test_the_table_of_the_docs_is_that_of_the_code() -> None:
    rows = {}
    for line in _DOCS.read_text().splitlines():
        if line.startswith("| `ipam_"):
            name, kind, labels, meaning, *_ = (cell.strip() for cell in line.split("|")[1:-1])
            rows[name.strip("`")] = (kind, labels, meaning)
    expected = {
        family.name: (
            family.kind.value,
            ", ".join(f"`{label}`" for label in family.labels) or "none",
            family.help,
        )
        for family in families.ALL
    }
    assert rows == expected
    assert list(rows) == list(expected), "in the order of the code"


def test_every_metric_has_its_help_and_type_in_a_scrape() -> None:
    result = scrapes.families()
    kinds = {Kind.INFO: "gauge"}
    for family in families.ALL:
        # The old format calls an info a gauge of its whole name.
        name = family.name if family.kind is Kind.INFO else family.stem
        metric = result.pop(name)
        assert metric.documentation == family.help
        assert metric.type == kinds.get(family.kind, family.kind.value)
    assert result == {}


def test_promtool_finds_nothing_to_complain_of() -> None:
    if not (promtool := shutil.which("promtool")):
        pytest.skip("promtool is not installed: apt-get install prometheus")
    pool = factories.pool("10.0.0.0/24", "2001:db8::/120")
    factories.ask(pool)
    checked = subprocess.run(
        [promtool, "check", "metrics"], input=metrics.render(), capture_output=True, check=False
    )
    assert (checked.returncode, checked.stdout, checked.stderr) == (0, b"", b"")


# --- Allocations, failures and releases are counted from the event tables: each once --------------
ALLOCATED = {"category": "vm", "result": "allocated"}
FAILED = {"category": "vm", "result": "failed"}


@pytest.fixture(autouse=True)
def _numbers(db: None) -> None:
    factories.number_events_from_one()


@pytest.mark.exhaustive
def test_what_happened_is_counted_once() -> None:
    pool = factories.pool("10.0.0.0/30", allow_first_ip=True, allow_last_ip=True)
    blocks = [factories.take(pool) for _ in range(4)]
    with pytest.raises(errors.PoolExhausted):
        factories.take(pool)
    factories.give_back(blocks[0])
    for _scrape in range(3):
        assert scrapes.value("ipam_allocations_total", **ALLOCATED) == 4
        assert scrapes.value("ipam_allocations_total", **FAILED) == 1
        reasons = scrapes.author("reason", "ipam_allocation_failures_total", category="vm")
        assert reasons == {"ipam_exhausted": 1}
        assert scrapes.value("ipam_releases_total", category="vm") == 1
    factories.take(pool)
    assert scrapes.value("ipam_allocations_total", **ALLOCATED) == 5


def test_a_batch_counts_each_block() -> None:
    pool = factories.pool("10.0.0.0/24")
    factories.ask(pool, *factories.holders(50))
    assert scrapes.value("ipam_allocations_total", **ALLOCATED) == 50


def test_a_release_within_a_cooldown_and_the_return_are_both_counted() -> None:
    pool = factories.pool("10.0.0.0/24", cooldown=3600)
    who = factories.holder("back")
    factories.give_back(factories.take(pool, who))
    factories.take(pool, who)
    assert scrapes.value("ipam_allocations_total", **ALLOCATED) == 2
    assert scrapes.value("ipam_releases_total", category="vm") == 1


def test_events_that_are_purged_stay_counted() -> None:
    pool = factories.pool("10.0.0.0/24")
    block = factories.take(pool)
    factories.give_back(block)
    registry.count_events()
    with pgtrigger.ignore("pools.BlockEvent:append_only"):
        assert BlockEvent.objects.all().delete()[0] > 0
    assert scrapes.value("ipam_allocations_total", **ALLOCATED) == 1
    assert scrapes.value("ipam_releases_total", category="vm") == 1


def test_long_backlogs_are_counted_in_steps(monkeypatch: pytest.MonkeyPatch) -> None:
    assert registry.count_events(seconds=60)  # the numbers that other tests have drawn
    monkeypatch.setattr(registry, "STEP", 7)
    pool = factories.pool("10.0.0.0/24")
    factories.ask(pool, *factories.holders(50))
    assert not registry.count_events(seconds=-1)
    assert registry.count_events(seconds=60)
    assert scrapes.value("ipam_allocations_total", **ALLOCATED) == 50


def test_a_register_that_was_restored_to_an_earlier_number_goes_on() -> None:
    pool = factories.pool("10.0.0.0/24")
    factories.take(pool)
    registry.count_events()
    CountedUntil.objects.update(counted=1 << 40, assigned=1 << 40)
    factories.take(pool)
    registry.count_events()
    factories.take(pool)
    assert scrapes.value("ipam_allocations_total", **ALLOCATED) == 2


def test_before_anything_happened_every_category_is_there_with_zero() -> None:
    results = scrapes.families()["ipam_allocations"].samples
    assert len(results) == 10
    assert {sample.value for sample in results} == {0}


# --- A scrape tells nobody's name: no address, MAC address, VM, organisation, environment or
# holder
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
