"""Migrate a CIDR: reserve it, let it drain, remove it.

Beside it: the manifest to apply for the next step of a migration, in a cluster whose pools the register
does not write.

A row stores the intended migration; its status is derived from the register (migration_progress), so
that a step that was done elsewhere, manually or in a manifest, counts as done. No step frees blocks in
use. The pool's lock is taken before the row of a migration, as in the removal of a CIDR.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from functools import partial

from pools.cidr_migrations import forecast, progress
from pools.cidr_migrations.progress import (
    MigrationProgress,
    MigrationStatus,
    MigrationStep,
    is_whole,
    span_of,
)
from pools.cilium import configuration
from pools.core import addresses, blocks, errors
from pools.core.cilium.podippool import CidrEntry, Shape
from pools.models import CIDRMigration, Now, Pending, Pool, PoolCIDR, ReservedRange
from pools.models.pools import MigrationOutcome
from pools.platform import database, events
from pools.register import manifests, pool_cidrs, pools
from pools.register.allocator import window

MOST_NODE_NAMES = 10  # in one error message


@dataclass(frozen=True)
class MigrationPlan:
    """The range to empty (`span`, inside `cidr`), and the replacement CIDR, if any (`to`)."""

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
    """Validate the arguments and return the plan; without a span the whole CIDR is emptied.

    Raises InvalidInput `unknown_cidr`, `range_outside_cidr`, `mixed_family`, `same_cidr`.
    """
    row = pool.cidrs.select_related("pool__cluster").filter(cidr=str(cidr)).first()
    if row is None:
        message = f"{cidr} is not one of the CIDRs of {pool}"
        raise errors.InvalidInput.for_field("cidr", "unknown_cidr", message, str(cidr))
    if span is not None:
        addresses.require_within(span, cidr, "range")
    if to is not None and to.version != cidr.version:
        message = f"the replacement of {cidr} must be an IPv{cidr.version} CIDR"
        raise errors.InvalidInput.for_field("to", "mixed_family", message, str(to))
    if to is not None and to == cidr:
        raise errors.InvalidInput.for_field(
            "to", "same_cidr", f"{cidr} is the CIDR to retire; choose another one", str(to)
        )
    return MigrationPlan(row, span or addresses.AddressRange.from_network(cidr), to)


def start_migration(plan: MigrationPlan, *, author: events.Author) -> CIDRMigration:
    """Store a migration; the pool does not change yet. Raises AlreadyExists."""
    with events.recorded_by(author):
        window.lock(plan.pool.pk)
        if CIDRMigration.objects.filter(pool_cidr=plan.cidr, ended_at=None).exists():
            raise errors.AlreadyExists(
                f"A migration of {plan.cidr} of {plan.pool} is running already."
            )
        row = CIDRMigration.objects.create(
            pool=plan.pool,
            pool_cidr=plan.cidr,
            cidr=plan.cidr.cidr,
            first=plan.span.first,
            last=plan.span.last,
            to=plan.to,
            in_use=progress.blocks_in_use(plan.cidr, plan.span).count(),
            reason=author.reason,
            started_by=author.actor,
            started_at=database.now(),
        )
    return get_migration(row.pk)


def get_migration(migration_id: int, *, pool_id: int | None = None) -> CIDRMigration:
    """Return a migration with its pool and CIDR; raise NotFound."""
    rows = CIDRMigration.objects.select_related("pool__cluster", "pool_cidr__pool__cluster")
    if pool_id is not None:
        rows = rows.filter(pool=pool_id)
    migration = rows.filter(pk=migration_id).first()
    if migration is None:
        raise errors.NotFound("There is no such migration.")
    return migration


def take_step(migration_id: int, step: MigrationStep, *, author: events.Author) -> CIDRMigration:
    """Do one step and return the migration after it.

    Raises NotFound, StepNotDue, ClusterDecides, CIDRInUse (with the holders), CIDROverlap, InvalidInput.
    """
    migration = get_migration(migration_id)
    cidr = _require_open(migration, step)
    reason = author.reason or migration.reason or f"migration of {migration.cidr}"
    steps: dict[MigrationStep, Callable[[CIDRMigration, PoolCIDR, events.Author], None]] = {
        MigrationStep.ADD: _add_replacement,
        MigrationStep.RESERVE: partial(_withhold, span_of),
        MigrationStep.WIDEN: partial(_withhold, _whole_range),
        MigrationStep.REMOVE: _remove,
        MigrationStep.KEEP: _keep_range,
        MigrationStep.ABORT: _abort,
    }
    steps[step](migration, cidr, replace(author, reason=reason))
    return get_migration(migration_id)


def _require_open(migration: CIDRMigration, step: MigrationStep) -> PoolCIDR:
    if migration.outcome:
        raise errors.StepNotDue(f"The migration of {migration} has ended ({migration.outcome}).")
    if migration.pool_cidr is None:
        raise errors.StepNotDue(f"{migration.pool} has no CIDR {migration.cidr} any more.")
    if step is not MigrationStep.ABORT and progress.follows_cluster(migration.pool):
        raise errors.ClusterDecides(
            f"{migration.pool} follows its cluster, which Cadastre does not write: apply the manifest in"
            " the cluster; the next sync run reads it."
        )
    return migration.pool_cidr


def withholding_plan(migration_id: int, step: MigrationStep) -> MigrationPlan:
    """Return the plan of a step that withholds addresses, for a forecast; changes nothing.

    Raises NotFound, StepNotDue, ClusterDecides, InvalidInput `invalid_choice` for another step.
    """
    migration = get_migration(migration_id)
    cidr = _require_open(migration, step)
    if step not in {MigrationStep.RESERVE, MigrationStep.WIDEN}:
        message = "only the steps reserve and widen, which withhold addresses, have a forecast"
        raise errors.InvalidInput.for_field("step", "invalid_choice", message, step.value)
    span = _whole_range(migration) if step is MigrationStep.WIDEN else span_of(migration)
    return MigrationPlan(cidr, span, migration.to if _lacks_replacement(migration) else None)


def _lacks_replacement(migration: CIDRMigration) -> bool:
    """Return True if the pool does not have the replacement CIDR yet."""
    if migration.to is None:
        return False
    return (
        not pool_cidrs.registered_cidrs([migration.pool_id]).filter(cidr=str(migration.to)).exists()
    )


def _add_replacement(migration: CIDRMigration, _cidr: PoolCIDR, author: events.Author) -> None:
    if migration.to is None:
        raise errors.StepNotDue("The migration has no replacement CIDR.")
    if _lacks_replacement(migration):
        pools.add_cidr(migration.pool_id, CidrEntry(migration.to), author=author)


def _whole_range(migration: CIDRMigration) -> addresses.AddressRange:
    """Return the range of the step `widen`; raise StepNotDue if it is being emptied already."""
    if is_whole(migration):
        raise errors.StepNotDue(
            "The step widen extends a migration from a range to the whole CIDR; this migration empties all"
            f" of {migration.cidr} already."
        )
    return addresses.AddressRange.from_network(migration.cidr)


def _withhold(
    range_of: Callable[[CIDRMigration], addresses.AddressRange],
    migration: CIDRMigration,
    cidr: PoolCIDR,
    author: events.Author,
) -> None:
    """Reserve the unreserved parts of a range, and store which ranges the migration has created."""
    span = range_of(migration)
    with events.recorded_by(author):
        new_range_ids = [
            pools.reserve(cidr.pk, gap, author=author, reason=author.reason).pk
            for gap in unreserved_gaps(cidr, span)
        ]
        in_use = progress.blocks_in_use(cidr, span).count()
        _change(
            migration,
            first=str(span.first),
            last=str(span.last),
            in_use=max(migration.in_use, in_use),
            range_ids=[*migration.range_ids, *new_range_ids],
        )


def unreserved_gaps(
    cidr: PoolCIDR, span: addresses.AddressRange
) -> Iterator[addresses.AddressRange]:
    """Yield the parts of a range of the CIDR that no reserved range covers."""
    reserved = (
        blocks.Span(int(reserved_range.first), int(reserved_range.last))
        for reserved_range in window.reserved_ranges(cidr)
    )
    kind = type(span.first)
    for gap in blocks.subtract([blocks.Span(int(span.first), int(span.last))], reserved):
        yield addresses.AddressRange(kind(gap.first), kind(gap.last))


def _remove(migration: CIDRMigration, cidr: PoolCIDR, author: events.Author) -> None:
    subject = f"{migration.cidr} of {migration.pool}"
    pool_cidrs.refuse_in_use(pool_cidrs.blocks_in_use(cidr), subject, errors.CIDRInUse)
    _refuse_listed_by_nodes(migration)
    if not progress.is_reserved(cidr, addresses.AddressRange.from_network(cidr.cidr)):
        raise errors.StepNotDue(f"Blocks of {subject} can still be allocated: reserve it first.")
    if migration.to is not None and not progress.is_replacement_added(migration):
        raise errors.StepNotDue(
            f"Add the replacement {migration.to} first, and wait until the cluster has it."
        )
    if progress.has_unwritten_changes(migration.pool):
        raise errors.StepNotDue(
            f"The changes of {migration.pool} are not applied in the cluster yet."
        )
    with events.recorded_by(author):
        if pools.remove_cidr(cidr.pk, author=author) is None:
            _end(migration, MigrationOutcome.REMOVED)


def _refuse_listed_by_nodes(migration: CIDRMigration) -> None:
    """Raise CIDRInUse if nodes list CIDRs of the migration, even if the register has no blocks in use."""
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
        suffix = f" and {len(names) - MOST_NODE_NAMES} more" if len(names) > MOST_NODE_NAMES else ""
        raise errors.CIDRInUse(
            f"{len(names)} nodes list CIDRs inside {migration.cidr}:"
            f" {', '.join(names[:MOST_NODE_NAMES])}{suffix}."
        )


def _keep_range(migration: CIDRMigration, _cidr: PoolCIDR, author: events.Author) -> None:
    if (
        is_whole(migration)
        or progress.migration_progress(migration).status is not MigrationStatus.DRAINED
    ):
        raise errors.StepNotDue("Only a drained range can be kept; a whole CIDR is removed.")
    with events.recorded_by(author):
        _end(migration, MigrationOutcome.KEPT)


def _abort(migration: CIDRMigration, cidr: PoolCIDR, author: events.Author) -> None:
    with events.recorded_by(author):
        if cidr.pending == Pending.REMOVAL:
            pools.cancel_removal(cidr.pk, author=author)
        own_ranges = ReservedRange.objects.filter(
            pool=migration.pool_id, pk__in=migration.range_ids
        )
        for range_id in own_ranges.order_by("pk").values_list("pk", flat=True):
            pools.unreserve(range_id, author=author)
        _end(migration, MigrationOutcome.ABORTED)


def _end(migration: CIDRMigration, outcome: MigrationOutcome) -> None:
    _change(migration, outcome=outcome, ended_at=Now())


def _change(migration: CIDRMigration, **values: object) -> None:
    """Update the row if it was not changed since it was read: of two concurrent steps one is refused."""
    rows = CIDRMigration.objects.filter(
        pk=migration.pk, ended_at=None, range_ids=migration.range_ids
    )
    if not rows.update(**values):
        raise errors.StepNotDue("Another step was done meanwhile: reload the migration.")


def next_manifest(migration: CIDRMigration, progress: MigrationProgress) -> str:
    """Return the YAML of the pool after its next steps, in the shape of the cluster's CRD.

    While blocks of the CIDR are in use, the manifest has the new CIDR and the old one reserved; after
    that it does not have the old one. Returns "" if no step is due. Raises InvalidInput
    `shape_cannot_hold_ranges`.
    """
    cidr = migration.pool_cidr
    if cidr is None or migration.outcome or cidr.orphaned_at is not None:
        return ""
    added = migration.to is None or progress.added
    if progress.status is MigrationStatus.DRAINING and added:
        return ""
    family = cidr.cidr.version
    present = pool_cidrs.families(migration.pool)[family]
    plan = MigrationPlan(cidr, span_of(migration), migration.to)
    new_family = forecast.changed_family(present, plan, add=True)
    if progress.status is MigrationStatus.DRAINED and added:
        if not is_whole(migration):
            return ""
        remaining_cidrs = tuple(entry for entry in new_family.cidrs if entry.cidr != cidr.cidr)
        new_family = replace(new_family, cidrs=remaining_cidrs)
    manifest = manifests.pool_manifest(migration.pool)
    families = {**manifest.families, family: new_family}
    return manifests.render_yaml(
        [replace(manifest, families={n: part for n, part in families.items() if part.cidrs})],
        _shape(migration).value,
    )


def _shape(migration: CIDRMigration) -> Shape:
    """Return the shape of the cluster's CRD, or Cilium's own shape if it is unknown."""
    try:
        return manifests.fetch_shape(migration.pool.cluster)
    except errors.IpamError:
        return Shape.V2
