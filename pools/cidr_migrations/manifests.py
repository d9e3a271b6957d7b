"""What to apply in a cluster whose pools are not written from here, for the next step of a migration."""

from __future__ import annotations

from dataclasses import replace

from pools.cidr_migrations import forecast
from pools.cidr_migrations.migrations import MigrationPlan
from pools.cidr_migrations.progress import MigrationProgress, MigrationStatus, is_whole, span_of
from pools.cilium import exports
from pools.core import errors
from pools.core.cilium.podippool import Shape
from pools.models import CIDRMigration
from pools.register import pools


def following(migration: CIDRMigration, progress: MigrationProgress) -> str:
    """YAML of the pool after its next steps, in the shape that the cluster takes; "" when none is due.

    While blocks of the CIDR are in use: with the new CIDR, and the old one reserved. After that:
    without the old one. Raises InvalidInput shape_cannot_hold_ranges.
    """
    cidr = migration.pool_cidr
    if cidr is None or migration.outcome or cidr.orphaned_at is not None:
        return ""
    added = migration.to is None or progress.added
    if progress.status is MigrationStatus.DRAINING and added:
        return ""
    family = cidr.cidr.version
    present = pools.families(migration.pool)[family]
    plan = MigrationPlan(cidr, span_of(migration), migration.to)
    then = forecast.changed(present, plan, add=True)
    if progress.status is MigrationStatus.DRAINED and added:
        if not is_whole(migration):
            return ""
        remaining_cidrs = tuple(entry for entry in then.cidrs if entry.cidr != cidr.cidr)
        then = replace(then, cidrs=remaining_cidrs)
    manifest = exports.pool_manifest(migration.pool)
    families = {**manifest.families, family: then}
    return exports.render_yaml(
        [replace(manifest, families={n: part for n, part in families.items() if part.cidrs})],
        _shape(migration).value,
    )


def _shape(migration: CIDRMigration) -> Shape:
    """The cluster's own, and what Cilium ships where it cannot be asked."""
    try:
        return exports.fetch_shape(migration.pool.cluster)
    except errors.IpamError:
        return Shape.V2
