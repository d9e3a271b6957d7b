"""Taking leaked blocks back: compare-and-set on what was seen, and always into a cooldown.

Whether a block may be taken is decided on its locked row, in the transaction that takes it: it must
have leaked, still be the one that leaked, and nobody may refer to it again. So two who reclaim at once
are safe, and the second is told that it was done.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from functools import partial
from itertools import islice
from typing import Any

from django.conf import settings

from pools.clusters.reconcile import leases
from pools.core import block_fields, errors
from pools.models import Block
from pools.models.blocks import BlockState
from pools.models.pools import Category
from pools.platform import database, events
from pools.register.allocator import window
from pools.register.leaks import detection
from pools.sql import statements

BATCH = 500  # blocks in one transaction


@dataclass(frozen=True)
class ReclaimTarget:
    """A block as it was seen; None is not compared, a uid or organisation "" is that there was none."""

    block_id: int
    kind: str
    id: str
    uid: str | None = None
    org: str | None = None
    allocated_at: datetime | None = None


@dataclass(frozen=True)
class ReclaimResult:
    """What came of one: the block as it is now, or why it was refused.

    `repeated`: it was taken back from this very holder before. `would` (of a dry run): nothing speaks
    against it.
    """

    target: ReclaimTarget
    block: block_fields.BlockAnswer | None = None
    repeated: bool = False
    would: bool = False
    error: errors.IpamError | None = None


def reclaim(target: ReclaimTarget, *, author: events.Author) -> ReclaimResult:
    """Take one block back.

    Raises NotFound, HolderChanged (it is another's, or was allocated anew), NotLeaked, ReferencedAgain.
    """
    (result,) = reclaim_all([target], author=author)
    if result.error:
        raise result.error
    return result


def reclaim_all(
    targets: Iterable[ReclaimTarget], *, author: events.Author, dry_run: bool = False
) -> Iterator[ReclaimResult]:
    """The same for many, a result for each in their order; a refusal hinders no other one."""
    if not author.reason:
        raise errors.InvalidInput.for_field(
            "reason", "required", "Say why these blocks are taken back."
        )
    remaining_targets = iter(targets)
    while batch := list(islice(remaining_targets, BATCH)):
        yield from database.with_retries(partial(_batch, batch, author, dry_run=dry_run))


def _batch(
    batch: Sequence[ReclaimTarget], author: events.Author, *, dry_run: bool
) -> list[ReclaimResult]:
    with events.recorded(author):
        ids = {target.block_id for target in batch}
        if not dry_run:
            _lock_networks(ids)
        rows = {row["id"]: row for row in database.fetch(_ROWS, {"ids": sorted(ids)})}
        again = _referenced(rows.values())
        checks = [_check(target, rows.get(target.block_id), again) for target in batch]
        taken_ids = {
            target.block_id for target, check in zip(batch, checks, strict=True) if check is _MAY
        }
        if taken_ids and not dry_run:
            _take(taken_ids)
            rows |= {row["id"]: row for row in database.fetch(_ROWS, {"ids": sorted(taken_ids)})}
    return [
        _result(target, rows.get(target.block_id), check, dry_run=dry_run)
        for target, check in zip(batch, checks, strict=True)
    ]


def _lock_networks(ids: Collection[int]) -> None:
    """What claims hold is locked as passes lock it: the cluster's row, the pool, then rows."""
    network_rows = database.rows(_NETWORKS, [sorted(ids), Category.VM.value])
    for cluster_id in sorted({cluster for _, cluster in network_rows}):
        leases.nudge(cluster_id, patient=True)
    for pool_id in sorted({pool for pool, _ in network_rows}):
        window.lock(pool_id)


_NETWORKS = """
    SELECT DISTINCT p.id, p.cluster_id FROM pools_block b JOIN pools_pool p ON p.id = b.pool_id
    WHERE b.id = ANY(%s::bigint[]) AND p.category = %s
"""
# In the order of their ids, so that two who reclaim the same never wait for each other in a circle.
# The leak by its block alone: a condition on its confirmation would have the index of those tried.
_ROWS = statements.read("pools/leaks_to_reclaim")

Row = Mapping[str, Any]


def _referenced(rows: Iterable[Row]) -> set[int]:
    by_cluster: dict[int, list[int]] = {}
    for row in rows:
        if row["state"] == BlockState.HELD:
            by_cluster.setdefault(row["cluster_id"], []).append(row["id"])
    return {pk for cluster, ids in by_cluster.items() for pk in detection.referenced(cluster, ids)}


_MAY = "may be taken"
_DONE = "was taken before"
_CheckResult = str | errors.IpamError


def _check(target: ReclaimTarget, row: Row | None, again: Collection[int]) -> _CheckResult:
    if row is None:
        return errors.NotFound("There is no such block.")
    if not _is_same(target, row):
        return errors.HolderChanged()
    if row["state"] != BlockState.HELD:
        return _DONE
    holder = f"{row['holder_kind']} {row['holder_id']}"
    if row["id"] in again:
        return errors.ReferencedAgain(f"{holder}, who holds {row['cidr']}, is referenced.")
    if not row["leaked"]:
        return errors.NotLeaked(
            f"{row['cidr']} of {holder} did not leak: no two complete observations missed its holder."
        )
    return _MAY


def _is_same(target: ReclaimTarget, row: Row) -> bool:
    return (
        (target.kind, target.id) == (row["holder_kind"], row["holder_id"])
        and (target.uid is None or row["holder_uid"] in {"", target.uid})
        and target.org in {None, row["org"]}
        and target.allocated_at in {None, row["allocated_at"]}
    )


def _take(ids: Collection[int]) -> None:
    cool(ids)
    blocks = list(Block.objects.filter(pk__in=ids).select_related("pool"))
    for source in detection.SOURCES:
        if source.give_back:
            source.give_back(blocks)


def cool(ids: Collection[int]) -> None:
    """Held blocks into the cooldown of their pools, never straight to free.

    Where a pool has none, a grace passes in which its holder may still turn up.
    """
    grace = max(settings.IPAM_LEAK_GRACE_SECONDS, 1)
    database.fetch(_COOL, {"ids": sorted(ids), "grace": grace})


_COOL = statements.read("pools/reclaim_blocks")


def _result(
    target: ReclaimTarget, row: Row | None, check: _CheckResult, *, dry_run: bool
) -> ReclaimResult:
    if isinstance(check, errors.IpamError):
        return ReclaimResult(target, error=check)
    assert row is not None  # noqa: S101  # no row has a verdict of its own
    block = block_fields.answer(row, pool=row["pool"], cluster=row["cluster"])
    return ReclaimResult(target, block, repeated=check == _DONE, would=dry_run and check == _MAY)
