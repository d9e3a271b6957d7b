"""Reclaim leaked blocks: compare the holder with what was observed, and always start a cooldown.

Whether a block can be reclaimed is decided on its locked row, in the transaction that reclaims it: the
block must be a confirmed leak, have the same holder as when it was missed, and not be referenced again.
Two concurrent reclaims of one block are therefore safe; the second one returns `repeated`.
"""

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from functools import partial
from itertools import islice
from typing import Any

from django.conf import settings

from pools.clusters.reconcile import leases
from pools.core import block_fields, errors
from pools.models import Block, BlockState, Category
from pools.platform import database, events
from pools.register.allocator import window
from pools.register.leaks import detection
from pools.sql import statements

BATCH = 500  # blocks in one transaction


@dataclass(frozen=True)
class ReclaimTarget:
    """A block and its holder as observed.

    A field that is None is not compared; a uid or organization "" means that the holder had none.
    """

    block_id: int
    kind: str
    id: str
    uid: str | None = None
    org: str | None = None
    allocated_at: datetime | None = None


@dataclass(frozen=True)
class ReclaimResult:
    """The result of one reclaim: the block as it is now, or the error.

    `repeated`: the block was reclaimed from the same holder before. `would_reclaim`: a dry run found
    no reason to refuse.
    """

    target: ReclaimTarget
    block: block_fields.BlockAnswer | None = None
    repeated: bool = False
    would_reclaim: bool = False
    error: errors.IpamError | None = None

    @property
    def outcome(self) -> str:
        """The result as a code: refused, would_reclaim, repeated or reclaimed."""
        if self.error:
            return "refused"
        if self.would_reclaim:
            return "would_reclaim"
        return "repeated" if self.repeated else "reclaimed"


def reclaim(target: ReclaimTarget, *, author: events.Author) -> ReclaimResult:
    """Reclaim one block.

    Raises NotFound, HolderChanged (another holder has it, or it was allocated anew), NotLeaked or
    ReferencedAgain.
    """
    (result,) = reclaim_all([target], author=author)
    if result.error:
        raise result.error
    return result


def reclaim_all(
    targets: Iterable[ReclaimTarget], *, author: events.Author, dry_run: bool = False
) -> Iterator[ReclaimResult]:
    """Reclaim many blocks; yield a result for each in order. A refusal does not affect other blocks.

    Raises InvalidInput `required` if `author` has no reason.
    """
    if not author.reason:
        raise errors.InvalidInput.for_field(
            "reason", "required", "Reclaiming blocks needs a reason."
        )
    remaining_targets = iter(targets)
    while batch := list(islice(remaining_targets, BATCH)):
        yield from database.with_retries(partial(_reclaim_batch, batch, author, dry_run=dry_run))


def _reclaim_batch(
    batch: Sequence[ReclaimTarget], author: events.Author, *, dry_run: bool
) -> list[ReclaimResult]:
    with events.recorded_by(author):
        ids = {target.block_id for target in batch}
        if not dry_run:
            _lock_networks(ids)
        rows = {row["id"]: row for row in database.fetch(_LOCK_BLOCKS, {"ids": sorted(ids)})}
        referenced_ids = _find_referenced(rows.values())
        checks = [_check(target, rows.get(target.block_id), referenced_ids) for target in batch]
        reclaimed_ids = {
            target.block_id
            for target, check in zip(batch, checks, strict=True)
            if check is _RECLAIMABLE
        }
        if reclaimed_ids and not dry_run:
            _reclaim_blocks(reclaimed_ids)
            reclaimed_rows = database.fetch(_LOCK_BLOCKS, {"ids": sorted(reclaimed_ids)})
            rows |= {row["id"]: row for row in reclaimed_rows}
    return [
        _result(target, rows.get(target.block_id), check, dry_run=dry_run)
        for target, check in zip(batch, checks, strict=True)
    ]


def _lock_networks(ids: Collection[int]) -> None:
    """Lock what claims hold in the order of sync runs: the cluster's row, the pool, then the rows."""
    network_rows = database.rows(_SELECT_NETWORKS, [sorted(ids), Category.VM.value])
    for cluster_id in sorted({cluster for _, cluster in network_rows}):
        leases.nudge(cluster_id, patient=True)
    window.lock(*(pool for pool, _ in network_rows))


_SELECT_NETWORKS = """
    SELECT DISTINCT p.id, p.cluster_id FROM pools_block b JOIN pools_pool p ON p.id = b.pool_id
    WHERE b.id = ANY(%s::bigint[]) AND p.category = %s
"""
# Rows are locked in the order of their ids, so that two concurrent reclaims never deadlock. The leak is
# read by its block alone: with a condition on `confirmed_at` the planner would try the index of it.
_LOCK_BLOCKS = statements.read("pools/leaks_to_reclaim")

Row = Mapping[str, Any]


def _find_referenced(rows: Iterable[Row]) -> set[int]:
    by_cluster: dict[int, list[int]] = {}
    for row in rows:
        if row["state"] == BlockState.HELD:
            by_cluster.setdefault(row["cluster_id"], []).append(row["id"])
    return {
        pk for cluster, ids in by_cluster.items() for pk in detection.find_referenced(cluster, ids)
    }


_RECLAIMABLE = "reclaimable"
_ALREADY_RECLAIMED = "already reclaimed"
_CheckResult = str | errors.IpamError


def _check(target: ReclaimTarget, row: Row | None, referenced_ids: Collection[int]) -> _CheckResult:
    if row is None:
        return errors.NotFound("There is no such block.")
    if not _is_same(target, row):
        return errors.HolderChanged()
    if row["state"] != BlockState.HELD:
        return _ALREADY_RECLAIMED
    holder = f"{row['holder_kind']} {row['holder_id']}"
    if row["id"] in referenced_ids:
        return errors.ReferencedAgain(
            f"{holder}, the holder of {row['cidr']}, is referenced again."
        )
    if not row["leaked"]:
        return errors.NotLeaked(
            f"{row['cidr']} of {holder} is not leaked: no two complete observations missed its holder."
        )
    return _RECLAIMABLE


def _is_same(target: ReclaimTarget, row: Row) -> bool:
    return (
        (target.kind, target.id) == (row["holder_kind"], row["holder_id"])
        and (target.uid is None or row["holder_uid"] in {"", target.uid})
        and target.org in {None, row["org"]}
        and target.allocated_at in {None, row["allocated_at"]}
    )


def _reclaim_blocks(ids: Collection[int]) -> None:
    start_cooldown(ids)
    blocks = list(Block.objects.filter(pk__in=ids).select_related("pool"))
    for source in detection.SOURCES:
        if source.on_reclaimed:
            source.on_reclaimed(blocks)


def start_cooldown(ids: Collection[int]) -> None:
    """Release held blocks into the cooldown of their pools, never directly to free.

    In a pool without a cooldown the grace of leaks is used, during which the holder may be seen again.
    """
    grace = max(settings.IPAM_LEAK_GRACE_SECONDS, 1)
    database.fetch(_START_COOLDOWN, {"ids": sorted(ids), "grace": grace})


_START_COOLDOWN = statements.read("pools/reclaim_blocks")


def _result(
    target: ReclaimTarget, row: Row | None, check: _CheckResult, *, dry_run: bool
) -> ReclaimResult:
    if isinstance(check, errors.IpamError):
        return ReclaimResult(target, error=check)
    assert row is not None  # noqa: S101  # without a row the check is an error
    block = block_fields.named_block_answer(row)
    return ReclaimResult(
        target,
        block,
        repeated=check == _ALREADY_RECLAIMED,
        would_reclaim=dry_run and check == _RECLAIMABLE,
    )
