"""The two-step migration of a CIDR: reserve it, let it drain, remove it.

A row says what somebody wants; how far it is follows from the register (migration_progress), so that
a step that was done elsewhere, by hand or in a manifest, counts as done. Nothing in use is ever freed
by a step. The pool's lock is taken before the row of a migration, as by whoever removes a CIDR.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

from pools.cidr_migrations import progress
from pools.cidr_migrations.progress import MigrationStatus, MigrationStep, is_whole, span_of
from pools.cilium import configuration
from pools.core import addresses, blocks, errors
from pools.core.cilium.podippool import CidrEntry
from pools.models import CIDRMigration, Pool, PoolCIDR, ReservedRange
from pools.models.cidr_migrations import MigrationOutcome
from pools.models.fields import Now
from pools.models.pools import Pending
from pools.platform import database, events
from pools.register import pools
from pools.register.allocator import window

NODES_NAMED = 10  # in a refusal


@dataclass(frozen=True)
class MigrationPlan:
    """What is emptied (`span` lies in the CIDR) and what takes its place, if anything."""

    cidr: PoolCIDR
    span: addresses.AddressRange
    to: addresses.Network | None = None

    @property
    def pool(self) -> Pool:
        return self.cidr.pool


def plan_migration(
    pool: Pool,
    cidr: addresses.Network,
    *,
    span: addresses.AddressRange | None = None,
    to: addresses.Network | None = None,
) -> MigrationPlan:
    """Without a span the whole CIDR is emptied.

    Raises InvalidInput unknown_cidr, range_outside_cidr, mixed_family, same_cidr.
    """
    row = pool.cidrs.select_related("pool__cluster").filter(cidr=str(cidr)).first()
    if row is None:
        message = f"{cidr} is not one of the CIDRs of {pool}"
        raise errors.InvalidInput.for_field("cidr", "unknown_cidr", message, str(cidr))
    if span is not None:
        addresses.require_within(span, cidr, "range")
    if to is not None and to.version != cidr.version:
        message = f"an IPv{cidr.version} CIDR takes the place of {cidr}"
        raise errors.InvalidInput.for_field("to", "mixed_family", message, str(to))
    if to is not None and to == cidr:
        raise errors.InvalidInput.for_field(
            "to", "same_cidr", f"{cidr} is what is emptied", str(to)
        )
    return MigrationPlan(row, span or addresses.AddressRange.from_network(cidr), to)


def begin(plan: MigrationPlan, *, author: events.Author) -> CIDRMigration:
    """Write down what is wanted; nothing else changes. Raises AlreadyExists."""
    with events.recorded(author):
        window.lock(plan.pool.pk)
        if CIDRMigration.objects.filter(pool_cidr=plan.cidr, ended_at=None).exists():
            raise errors.AlreadyExists(f"{plan.cidr} of {plan.pool} is being migrated already.")
        row = CIDRMigration.objects.create(
            pool=plan.pool,
            pool_cidr=plan.cidr,
            cidr=plan.cidr.cidr,
            first=plan.span.first,
            last=plan.span.last,
            to=plan.to,
            in_use=progress.in_use(plan.cidr, plan.span).count(),
            reason=author.reason,
            started_by=author.actor,
            started_at=database.now(),
        )
    return get_migration(row.pk)


def get_migration(migration_id: int, *, pool_id: int | None = None) -> CIDRMigration:
    """Raises NotFound."""
    rows = CIDRMigration.objects.select_related("pool__cluster", "pool_cidr__pool__cluster")
    if pool_id is not None:
        rows = rows.filter(pool=pool_id)
    migration = rows.filter(pk=migration_id).first()
    if migration is None:
        raise errors.NotFound("There is no such migration.")
    return migration


def take(migration_id: int, step: MigrationStep, *, author: events.Author) -> CIDRMigration:
    """Do one step; the migration as it is then.

    Raises NotFound, StepNotDue, ClusterDecides, CIDRInUse (with the holders), CIDROverlap, InvalidInput.
    """
    migration = get_migration(migration_id)
    cidr = _open(migration, step)
    reason = author.reason or migration.reason or f"migration of {migration.cidr}"
    {
        MigrationStep.ADD: _add,
        MigrationStep.RESERVE: _reserve,
        MigrationStep.WIDEN: _widen,
        MigrationStep.REMOVE: _remove,
        MigrationStep.KEEP: _keep,
        MigrationStep.ABORT: _abort,
    }[step](migration, cidr, replace(author, reason=reason))
    return get_migration(migration_id)


def _open(migration: CIDRMigration, step: MigrationStep) -> PoolCIDR:
    if migration.outcome:
        raise errors.StepNotDue(f"The migration of {migration} has ended ({migration.outcome}).")
    if migration.pool_cidr is None:
        raise errors.StepNotDue(f"{migration.pool} has no CIDR {migration.cidr} any more.")
    if step is not MigrationStep.ABORT and progress.follows_cluster(migration.pool):
        raise errors.ClusterDecides(
            f"{migration.pool} follows its cluster, to which nothing is written: apply the manifest"
            " there; the register sees it."
        )
    return migration.pool_cidr


def withholding(migration_id: int, step: MigrationStep) -> MigrationPlan:
    """What a step that withholds addresses would empty, for a forecast; nothing is changed.

    Raises NotFound, StepNotDue, ClusterDecides, InvalidInput invalid_choice (another step).
    """
    migration = get_migration(migration_id)
    cidr = _open(migration, step)
    if step not in {MigrationStep.RESERVE, MigrationStep.WIDEN}:
        message = "only reserve and widen have a forecast: they withhold addresses"
        raise errors.InvalidInput.for_field("step", "invalid_choice", message, step.value)
    span = _whole(migration) if step is MigrationStep.WIDEN else span_of(migration)
    return MigrationPlan(cidr, span, migration.to if _is_missing(migration) else None)


def _is_missing(migration: CIDRMigration) -> bool:
    """Whether the pool lacks the CIDR that takes the place of the old one."""
    if migration.to is None:
        return False
    return not pools.listed([migration.pool_id]).filter(cidr=str(migration.to)).exists()


def _add(migration: CIDRMigration, _cidr: PoolCIDR, author: events.Author) -> None:
    if migration.to is None:
        raise errors.StepNotDue("No CIDR was named that takes its place.")
    if _is_missing(migration):
        pools.add_cidr(migration.pool_id, CidrEntry(migration.to), author=author)


def _reserve(migration: CIDRMigration, cidr: PoolCIDR, author: events.Author) -> None:
    _withhold(migration, cidr, span_of(migration), author)


def _widen(migration: CIDRMigration, cidr: PoolCIDR, author: events.Author) -> None:
    _withhold(migration, cidr, _whole(migration), author)


def _whole(migration: CIDRMigration) -> addresses.AddressRange:
    """What `widen` empties; StepNotDue when that is being emptied already."""
    if is_whole(migration):
        raise errors.StepNotDue(
            "To widen is to empty the whole CIDR instead of a range of it; this migration empties all of"
            f" {migration.cidr} already."
        )
    return addresses.AddressRange.from_network(migration.cidr)


def _withhold(
    migration: CIDRMigration, cidr: PoolCIDR, span: addresses.AddressRange, author: events.Author
) -> None:
    """Reserve what no range holds yet, and remember which ranges are the migration's own."""
    with events.recorded(author):
        new_range_ids = [
            pools.reserve(cidr.pk, gap, author=author, reason=author.reason).pk
            for gap in gaps(cidr, span)
        ]
        in_use = progress.in_use(cidr, span).count()
        _change(
            migration,
            first=str(span.first),
            last=str(span.last),
            in_use=max(migration.in_use, in_use),
            range_ids=[*migration.range_ids, *new_range_ids],
        )


def gaps(cidr: PoolCIDR, span: addresses.AddressRange) -> Iterator[addresses.AddressRange]:
    """What of a range of the CIDR no reserved range holds yet."""
    reserved = (
        blocks.Span(int(reserved_range.first), int(reserved_range.last))
        for reserved_range in window.ranges(cidr)
    )
    kind = type(span.first)
    for gap in blocks.subtract([blocks.Span(int(span.first), int(span.last))], reserved):
        yield addresses.AddressRange(kind(gap.first), kind(gap.last))


def _remove(migration: CIDRMigration, cidr: PoolCIDR, author: events.Author) -> None:
    what = f"{migration.cidr} of {migration.pool}"
    pools.refuse_in_use(pools.in_use(cidr), what, errors.CIDRInUse)
    _refuse_listed(migration)
    if not progress.is_reserved(cidr, addresses.AddressRange.from_network(cidr.cidr)):
        raise errors.StepNotDue(f"Blocks of {what} may still be handed out: reserve it first.")
    if migration.to is not None and not progress.is_there(migration):
        raise errors.StepNotDue(
            f"Add {migration.to} first, which takes its place, and wait until the cluster has it."
        )
    if progress.is_unwritten(migration.pool):
        raise errors.StepNotDue(
            f"The cluster has not taken over yet what the register says of {migration.pool}."
        )
    with events.recorded(author):
        if pools.remove_cidr(cidr.pk, author=author) is None:
            _end(migration, MigrationOutcome.REMOVED)


def _refuse_listed(migration: CIDRMigration) -> None:
    """What a node lists is in use, whatever the register thinks."""
    if migration.pool.category != "pod":
        return
    names = [
        node.name
        for node in configuration.nodes(migration.pool.cluster)
        if any(
            held_cidr.overlaps(migration.cidr)
            for held_cidr in node.held_cidrs().get(migration.pool.name, ())
        )
    ]
    if names:
        more = f" and {len(names) - NODES_NAMED} more" if len(names) > NODES_NAMED else ""
        raise errors.CIDRInUse(
            f"{len(names)} nodes list CIDRs of {migration.cidr}:"
            f" {', '.join(names[:NODES_NAMED])}{more}."
        )


def _keep(migration: CIDRMigration, _cidr: PoolCIDR, author: events.Author) -> None:
    if (
        is_whole(migration)
        or progress.migration_progress(migration).status is not MigrationStatus.DRAINED
    ):
        raise errors.StepNotDue("Only a range that is drained is kept; a whole CIDR is removed.")
    with events.recorded(author):
        _end(migration, MigrationOutcome.KEPT)


def _abort(migration: CIDRMigration, cidr: PoolCIDR, author: events.Author) -> None:
    with events.recorded(author):
        if cidr.pending == Pending.REMOVAL:
            pools.keep_cidr(cidr.pk, author=author)
        own_ranges = ReservedRange.objects.filter(
            pool=migration.pool_id, pk__in=migration.range_ids
        )
        for range_id in own_ranges.order_by("pk").values_list("pk", flat=True):
            pools.unreserve(range_id, author=author)
        _end(migration, MigrationOutcome.ABORTED)


def _end(migration: CIDRMigration, outcome: MigrationOutcome) -> None:
    _change(migration, outcome=outcome, ended_at=Now())


def _change(migration: CIDRMigration, **values: object) -> None:
    """Compare-and-set on what was read: of two steps at the same time one is refused."""
    rows = CIDRMigration.objects.filter(
        pk=migration.pk, ended_at=None, range_ids=migration.range_ids
    )
    if not rows.update(**values):
        raise errors.StepNotDue("Somebody else took a step meanwhile; look again.")
