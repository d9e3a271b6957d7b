"""The demo fleet: true to its description, loaded once, removed without a trace."""

from typing import Any

import pytest
from django.core.management import CommandError

from claims.models import Decision, IPAMClaim, VMImport, Wave
from claims.waves import readiness
from pools import models
from pools.core import holders
from pools.models.blocks import LIVE
from pools.register import usage
from pools.register.demo import demo
from pools.register.leaks import detection
from pools.register.utilization import samples
from tests import commands, factories


def command(*options: str) -> str:
    return commands.output("demo", *options)


@pytest.mark.exhaustive
def test_what_it_has() -> None:
    assert "Loaded the demo fleet" in command()
    assert models.Cluster.objects.count() == 2
    assert set(models.Pool.objects.values_list("category", flat=True)) == {
        "pod",
        "node",
        "instance",
        "ipv4",
        "vm",
    }
    held, cooling = (models.Block.objects.filter(state=state).count() for state in LIVE)
    assert held > 500
    assert cooling > 20
    assert models.ReservedRange.objects.filter(pool__name="green-pool").count() == 1
    pools = {
        pool.name: usage.pool_usage(pool)[4]
        for pool in models.Pool.objects.exclude(mask_size_v4=None)
    }
    assert 0.9 < pools["blue-pool"].ratio < 1
    assert pools["premium-ipv4"].free == 0
    assert models.Environment.objects.exclude(degraded_since=None).count() == 2
    assert models.AllocationRequest.objects.get().state == "pending"
    assert models.Pool.objects.filter(tags__contains=["production"]).exclude(owner="").count() == 3
    assert models.DNSName.objects.count() == 2
    assert models.ObservedCIDR.objects.filter(kind="Node").count() > 100
    leaks = detection.confirmed_leaks()
    assert sorted(leaks.values_list("holder_kind", "cluster__name")) == [
        *[("instance", demo.FRANKFURT)] * 3,
        ("node", demo.FRANKFURT),  # a CiliumNode without its Node
    ]
    assert not detection.suspected_leaks().exists()
    assert models.Sample.objects.count() > 100


@pytest.mark.exhaustive
def test_its_clusters_were_synced() -> None:
    """The handlers of the engine have read manifests, and say of them what they say of any cluster's."""
    command()
    for connection in models.Connection.objects.all():
        assert (connection.paused, connection.error_code) == (True, "")
        assert connection.cluster.runs.count() == 3
    codes = set(models.Finding.objects.values_list("code", flat=True))
    assert {"ciliumnode_without_node", "pod_cidr_overlap"} <= codes
    drift = models.Drift.objects.get()
    assert (drift.name, drift.path, drift.managers) == (
        "blue-pool",
        "spec.ipv4.cidrs",
        ["kubectl-edit"],
    )
    assert models.ObservedObject.objects.filter(kind="CiliumNode").count() > 100
    assert set(Decision.objects.values_list("code", flat=True)) == {"patched", "no_entry"}
    migration = models.CIDRMigration.objects.get()
    assert (str(migration.cidr), migration.ended_at) == ("10.50.0.0/20", None)
    vm_import = VMImport.objects.get()
    assert vm_import.status == "drafted"
    assert vm_import.counts["new"] == vm_import.counts["conflict"] == 2
    machines = readiness.wave_readiness(Wave.objects.get()).machines
    assert {not machine.reasons for machine in machines} == {True, False}


@pytest.mark.exhaustive
def test_names_are_those_that_kubernetes_accepts() -> None:
    command()
    objects = [*IPAMClaim.objects.values_list("namespace", "name")]
    objects += models.ObservedObject.objects.values_list("namespace", "name")
    for namespace, name in objects:
        assert holders.parse_name(name) == name
        assert not namespace or holders.parse_name(namespace) == namespace


@pytest.mark.exhaustive
def test_its_log_is_in_the_order_of_time() -> None:
    command()
    times = list(models.Event.objects.order_by("id").values_list("at", flat=True))
    assert times == sorted(times)


@pytest.mark.exhaustive
def test_loading_it_twice_changes_nothing() -> None:
    command()
    before = models.Event.objects.count()
    assert "is already loaded" in command()
    assert models.Event.objects.count() == before


def _rows() -> dict[Any, set[Any]]:
    """What is in the tables, and the figures of samples."""
    figures = ("day", "family", "held", "cooling", "capacity", "reserved")
    rows = {model: set(model.objects.values_list("pk", flat=True)) for model in _TABLES}
    sums = models.SampleSum.objects.values_list("by", "name", *figures)
    return rows | {
        models.Sample: set(models.Sample.objects.values_list("pool", *figures)),
        models.SampleSum: set(sums),
    }


@pytest.mark.exhaustive
def test_clearing_leaves_no_trace_of_it_and_all_else() -> None:
    pool = factories.pool("10.20.0.0/24")
    block = factories.take(pool, org="acme", env="env-01")
    samples.take_samples()
    before = _rows()
    command()
    assert "Removed the demo fleet" in command("--clear")
    assert _rows() == before
    assert factories.row(block).state == "held"
    assert "no demo fleet" in command("--clear")


_TABLES: tuple[Any, ...] = (
    models.Cluster,
    models.Pool,
    models.Block,
    models.Environment,
    models.AllocationRequest,
    models.Event,
    models.BlockEvent,
    models.DNSName,
    models.ObservedCIDR,
    models.Leak,
    models.ReferenceFeed,
)


def test_production_never_loads_it(settings: Any) -> None:
    settings.IPAM_ALLOW_DEMO = False
    with pytest.raises(CommandError, match="production"):
        command()
    assert not models.Cluster.objects.exists()
