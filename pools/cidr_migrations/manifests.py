"""The manifest to apply for the next step of a migration, in a cluster whose pools the register does not write."""

from __future__ import annotations

from dataclasses import replace

from pools.cidr_migrations import forecast
from pools.cidr_migrations.migrations import MigrationPlan
from pools.cidr_migrations.progress import MigrationProgress, MigrationStatus, is_whole, span_of
from pools.cilium import exports
from pools.core import errors
from pools.core.cilium.podippool import Shape
from pools.models import CIDRMigration
from pools.register import pool_cidrs


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
    manifest = exports.pool_manifest(migration.pool)
    families = {**manifest.families, family: new_family}
    return exports.render_yaml(
        [replace(manifest, families={n: part for n, part in families.items() if part.cidrs})],
        _shape(migration).value,
    )


def _shape(migration: CIDRMigration) -> Shape:
    """Return the shape of the cluster's CRD, or Cilium's own shape if it is unknown."""
    try:
        return exports.fetch_shape(migration.pool.cluster)
    except errors.IpamError:
        return Shape.V2
