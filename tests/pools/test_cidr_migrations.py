"""The two-step migration of a CIDR: its forecast, and its steps."""

from ipaddress import ip_network
from typing import Any

import pytest

from pools.cidr_migrations import forecast, migrations, progress
from pools.cidr_migrations.progress import MigrationStatus, MigrationStep
from pools.core import addresses, errors
from pools.core.cilium.preflight import RuleResult
from pools.models import AddressSpace, CIDRMigration, Cluster, Event, Now, ObservedObject, Pool
from pools.register import orphans, pools
from tests import factories

OLD, NEW = "10.20.0.0/24", "10.30.0.0/24"
BY = factories.WITH_REASON


def _plan(pool: Pool, to: str | None, span: str | None) -> migrations.MigrationPlan:
    return migrations.plan_migration(
        pool,
        ip_network(OLD),
        span=addresses.parse_range(span) if span else None,
        to=ip_network(to) if to else None,
    )


def _begin(pool: Pool, *, span: str | None = None, to: str | None = NEW) -> CIDRMigration:
    return migrations.start_migration(_plan(pool, to, span), author=BY)


def _now(migration: CIDRMigration) -> progress.MigrationProgress:
    return progress.migration_progress(migrations.get_migration(migration.pk))


def _take(migration: CIDRMigration, *steps: MigrationStep) -> progress.MigrationProgress:
    for step in steps:
        migration = migrations.take_step(migration.pk, step, author=BY)
    return progress.migration_progress(migration)


def _reserved(pool: Pool) -> list[str]:
    return [str(reserved_range) for reserved_range in pool.reserved_ranges.order_by("first")]


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


def test_the_whole_way() -> None:
    pool = factories.pool(OLD, category="pod", mask=28)
    block = factories.take(pool, factories.holder("node-1", kind="node"))
    migration = _begin(pool)
    now = _now(migration)
    assert (now.status, now.total, now.in_use) == (MigrationStatus.PLANNED, 1, 1)
    assert now.steps == (MigrationStep.ADD, MigrationStep.RESERVE, MigrationStep.ABORT)
    now = _take(migration, MigrationStep.RESERVE, MigrationStep.ADD)
    assert (now.status, now.added, now.percent) == (MigrationStatus.DRAINING, True, 0)
    assert now.steps == (MigrationStep.ABORT,)
    assert [(holder.holder_id, holder.state, holder.blocks) for holder in now.holders] == [
        ("node-1", "held", 1)
    ]
    assert factories.take(pool)["cidr"].startswith("10.30.0.")
    with pytest.raises(errors.CIDRInUse, match="node-1"):
        _take(migration, MigrationStep.REMOVE)
    factories.give_back(block)
    now = _now(migration)
    assert (now.status, now.percent) == (MigrationStatus.DRAINED, 100)
    assert now.steps == (MigrationStep.REMOVE, MigrationStep.ABORT)
    now = _take(migration, MigrationStep.REMOVE)
    assert now.status is MigrationStatus.REMOVED
    assert [str(cidr) for cidr in pool.cidrs.all()] == [NEW]
    types = Event.objects.filter(pool_id=pool.pk, actor="tester", reason=BY.reason)
    assert {"reservedrangeevent", "poolcidrevent"} <= set(types.values_list("table", flat=True))


def test_a_cooling_block_keeps_the_cidr(clock: Any) -> None:
    pool = factories.pool(OLD, cooldown=600)
    block = factories.take(pool)
    migration = _begin(pool, to=None)
    _take(migration, MigrationStep.RESERVE)
    factories.give_back(block)
    now = _now(migration)
    assert (now.status, now.cooling) == (MigrationStatus.DRAINING, 1)
    with pytest.raises(errors.CIDRInUse, match="cooldown"):
        _take(migration, MigrationStep.REMOVE)
    clock.advance(601)
    assert _take(migration, MigrationStep.REMOVE).status is MigrationStatus.REMOVED


def test_abort_gives_back_what_it_reserved_and_no_more() -> None:
    pool = factories.pool(OLD, reserved=["10.20.0.0-10.20.0.99"])
    migration = _begin(pool)
    assert _take(migration, MigrationStep.RESERVE).status is MigrationStatus.DRAINED
    assert _reserved(pool) == ["10.20.0.0-10.20.0.99", "10.20.0.100-10.20.0.255"]
    assert _take(migration, MigrationStep.ABORT).status is MigrationStatus.ABORTED
    assert _reserved(pool) == ["10.20.0.0-10.20.0.99"]
    assert factories.take(pool)["cidr"] == "10.20.0.100/32"
    with pytest.raises(errors.StepNotDue, match="has ended"):
        _take(migration, MigrationStep.RESERVE)


def test_a_range_is_emptied_and_kept_or_widened() -> None:
    pool = factories.pool(OLD)
    low, high = factories.take(pool), factories.take(pool, cidr="10.20.0.200/32")
    migration = _begin(pool, span="10.20.0.0-10.20.0.99", to=None)
    now = _take(migration, MigrationStep.RESERVE)
    assert (now.total, now.status) == (1, MigrationStatus.DRAINING)
    factories.give_back(low)
    now = _now(migration)
    assert now.steps == (MigrationStep.WIDEN, MigrationStep.KEEP, MigrationStep.ABORT)
    now = _take(migration, MigrationStep.WIDEN)
    assert (now.status, now.held) == (MigrationStatus.DRAINING, 1)
    factories.give_back(high)
    assert _take(migration, MigrationStep.REMOVE).status is MigrationStatus.REMOVED


def test_a_drained_range_stays_reserved() -> None:
    pool = factories.pool(OLD)
    migration = _begin(pool, span="10.20.0.0-10.20.0.99", to=None)
    with pytest.raises(errors.StepNotDue):
        _take(migration, MigrationStep.KEEP)
    assert (
        _take(migration, MigrationStep.RESERVE, MigrationStep.KEEP).status is MigrationStatus.KEPT
    )
    assert _reserved(pool) == ["10.20.0.0-10.20.0.99"]


@pytest.mark.parametrize(
    ("before", "message"),
    [
        ((), "reserve it first"),
        ((MigrationStep.RESERVE,), "Add the replacement 10.30.0.0/24 first"),
    ],
    ids=["not reserved", "not added"],
)
def test_what_is_not_due(before: tuple[MigrationStep, ...], message: str) -> None:
    migration = _begin(factories.pool(OLD))
    with pytest.raises(errors.StepNotDue, match=message):
        _take(migration, *before, MigrationStep.REMOVE)


def test_steps_done_elsewhere_count() -> None:
    pool = factories.pool(OLD)
    migration = _begin(pool)
    factories.reserve(pool, OLD)
    pools.add_cidr(pool.pk, factories.entry(NEW), author=BY)
    now = _now(migration)
    assert (now.status, now.added) == (MigrationStatus.DRAINED, True)
    pools.remove_cidr(factories.cidr(pool, OLD).pk, author=BY)
    now = _now(migration)
    assert (now.status, now.steps) == (MigrationStatus.REMOVED, ())


def test_what_a_node_lists_is_in_use() -> None:
    pool = factories.pool(OLD, category="pod", mask=28)
    _node(pool.cluster, "node-7", pool.name, 0, "10.20.0.16/28")
    migration = _begin(pool, to=None)
    _take(migration, MigrationStep.RESERVE)
    with pytest.raises(errors.CIDRInUse, match="node-7"):
        _take(migration, MigrationStep.REMOVE)


def test_an_orphan_drains() -> None:
    pool = factories.pool(OLD)
    block = factories.take(pool)
    migration = _begin(pool, to=None)
    cidr = factories.cidr(pool)
    orphans.withhold_blocks(cidr)
    orphans.mark_orphaned(cidr)
    now = _now(migration)
    assert (now.orphaned, now.status) == (True, MigrationStatus.DRAINING)
    factories.give_back(block)
    now = _now(migration)
    assert now.status in {MigrationStatus.DRAINED, MigrationStatus.REMOVED}


def test_of_two_steps_at_once_one_is_refused() -> None:
    migration = _begin(factories.pool(OLD), to=None)
    stale = migrations.get_migration(migration.pk)
    _take(migration, MigrationStep.RESERVE)
    assert stale.pool_cidr is not None
    with pytest.raises(errors.StepNotDue, match="Another step"):
        migrations._withhold(progress.span_of, stale, stale.pool_cidr, BY)


# --- What a migration would do is told before anything of it is done ------------------------------
def _forecast(
    pool: Pool, to: str | None = None, span: str | None = None
) -> forecast.MigrationForecast:
    return forecast.forecast_migration(_plan(pool, to, span), author=factories.BY)


def _results(migration: forecast.MigrationForecast) -> dict[str, RuleResult]:
    return {finding.rule: finding.result for finding in migration.findings}


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
