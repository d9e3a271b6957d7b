"""What a migration would do is told before anything of it is done."""

from ipaddress import ip_network
from typing import Any

from pools.cidr_migrations import forecast, migrations
from pools.core import addresses
from pools.core.cilium.preflight import RuleResult
from pools.models import AddressSpace, Cluster, Now, ObservedObject, Pool
from tests import factories

OLD = "10.20.0.0/24"


def _forecast(
    pool: Pool, to: str | None = None, span: str | None = None
) -> forecast.MigrationForecast:
    want = migrations.plan_migration(
        pool,
        ip_network(OLD),
        span=addresses.parse_range(span) if span else None,
        to=ip_network(to) if to else None,
    )
    return forecast.forecast_migration(want, author=factories.BY)


def _results(migration: forecast.MigrationForecast) -> dict[str, RuleResult]:
    return {finding.rule: finding.result for finding in migration.findings}


def _node(cluster: Cluster, name: str, pool: str, needed: int, *cidrs: str) -> None:
    pools = {
        "requested": [{"pool": pool, "needed": {"ipv4-addrs": needed}}],
        "allocated": [{"pool": pool, "cidrs": list(cidrs)}],
    }
    ObservedObject.objects.create(
        cluster=cluster, kind="CiliumNode", name=name, uid=name, resource_version="1",
        manifest={"metadata": {"name": name}, "spec": {"ipam": {"pools": pools}}},
        first_seen_at=Now(), changed_at=Now(),
    )  # fmt: skip


def test_nodes_that_fit_and_nodes_that_do_not() -> None:
    pool = factories.pool(OLD, category="pod", mask=26)
    _node(pool.cluster, "node-1", pool.name, 62, "10.20.0.0/26")
    _node(pool.cluster, "node-2", pool.name, 62, "10.20.0.64/26")
    fits, small = _forecast(pool, "10.30.0.0/25"), _forecast(pool, "10.30.0.0/26")
    assert (_results(fits)["nodes"], fits.nodes) == (RuleResult.OK, 2)
    (finding,) = [finding for finding in small.findings if finding.rule == "nodes"]
    assert finding.result is RuleResult.VIOLATED
    assert "1 would not get the blocks they request: node-2" in finding.observation
    assert not small.fits
    assert not pool.reserved_ranges.exists()


def test_a_node_that_lacks_addresses_already_is_not_the_migration_s_fault() -> None:
    pool = factories.pool(OLD, category="pod", mask=26)
    _node(pool.cluster, "node-1", pool.name, 62, "10.20.0.0/26")
    _node(pool.cluster, "node-2", pool.name, 1000)
    assert _results(_forecast(pool, "10.30.0.0/24"))["nodes"] is RuleResult.OK


def test_a_range_moves_only_the_nodes_in_it() -> None:
    pool = factories.pool(OLD, category="pod", mask=26)
    _node(pool.cluster, "node-1", pool.name, 62, "10.20.0.0/26")
    _node(pool.cluster, "node-2", pool.name, 62, "10.20.0.64/26")
    migration_forecast = _forecast(pool, span="10.20.0.0-10.20.0.9")
    assert _results(migration_forecast)["nodes"] is RuleResult.OK
    assert any(
        "1 of 2 nodes hold" in finding.observation for finding in migration_forecast.findings
    )


def test_nodes_that_only_the_register_knows() -> None:
    pool = factories.pool(OLD, category="pod", mask=26)
    factories.take(pool, factories.holder("node-1", kind="node"))
    assert _results(_forecast(pool, "10.30.0.0/26"))["nodes"] is RuleResult.OK
    factories.take(pool, factories.holder("node-2", kind="node"))
    assert _results(_forecast(pool, "10.30.0.0/26"))["nodes"] is RuleResult.VIOLATED


def test_room_of_any_category() -> None:
    pool = factories.pool(OLD)
    factories.cidrs(pool, 3)
    migration_forecast = _forecast(pool, "10.30.0.0/30")
    assert (migration_forecast.in_use, _results(migration_forecast)["room"]) == (
        3,
        RuleResult.VIOLATED,
    )
    assert _results(_forecast(pool, "10.30.0.0/29"))["room"] is RuleResult.OK
    assert migration_forecast.after is not None
    assert migration_forecast.after.free == 2


def test_the_new_cidr_should_come_first_when_nothing_else_is_free() -> None:
    pool = factories.pool(OLD, "10.21.0.0/30")
    assert _results(_forecast(pool, "10.30.0.0/24"))["order"] is RuleResult.OK
    alone = factories.pool(OLD)
    assert _results(_forecast(alone, "10.30.0.0/24"))["order"] is RuleResult.WARNING


def test_overlaps_elsewhere_are_told() -> None:
    pool = factories.pool(OLD, category="pod", mask=26)
    blue = AddressSpace.objects.create(cluster=pool.cluster, name="blue")
    factories.pool("10.30.0.0/28", within=pool.cluster, space=blue, name="vms")
    results = _results(_forecast(pool, "10.30.0.0/24"))
    assert results["other-spaces"] is RuleResult.WARNING
    assert _results(_forecast(pool, "10.31.0.0/24"))["other-spaces"] is RuleResult.OK


def test_a_range_that_is_reserved_already_is_part_of_it(django_assert_max_num_queries: Any) -> None:
    pool = factories.pool(OLD, reserved=["10.20.0.0-10.20.0.99"])
    migration_forecast = _forecast(pool, "10.30.0.0/24")
    assert migration_forecast.fits
    assert migration_forecast.after is not None
    assert (migration_forecast.after.reserved, migration_forecast.after.free) == (254, 254)
