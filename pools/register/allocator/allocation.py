"""Allocate and release blocks.

One block for one holder is the hot path: one SQL function in one round trip
(pools/sql/allocate.sql). Every other request (several holders, both families, an exact block) is one
transaction under the pool's lock and succeeds or fails as a whole. Constraints keep blocks unique;
locks only reduce contention between writers.
"""

import logging
import random
import time
from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import orjson
from django.db import DatabaseError, connection, transaction

from pools.core import block_fields, errors
from pools.core.holders import BlockDemand, Holder
from pools.models import Block, BlockState, Now, Pool
from pools.models.pools import SINGLE
from pools.platform import advisory_locks, database, events, idempotency
from pools.register.allocator import batches, window

__all__ = [
    "Allocation",
    "BlockDemand",
    "Holder",
    "PendingAllocation",
    "Release",
    "allocate",
    "release",
    "skip_cooldown",
]

Row = Mapping[str, Any]
log = logging.getLogger(__name__)


@dataclass(frozen=True)
class Allocation:
    """The blocks of a request; `status` is 201, or 200 if the holders held them already."""

    status: int
    blocks: list[block_fields.BlockAnswer]


@dataclass(frozen=True)
class PendingAllocation:
    """A pending request that an earlier request with the same idempotency key has created."""

    request_id: int


@dataclass(frozen=True)
class Release:
    """The released block; `repeated` is True if the same holder had released it before."""

    block: block_fields.BlockAnswer
    repeated: bool
    has_pending_requests: bool  # requests wait for space in the pool


def allocate(
    pool_id: int, demand: BlockDemand, *, author: events.Author, key: idempotency.Key | None = None
) -> Allocation | PendingAllocation:
    """Allocate the demanded blocks, all or none of them.

    Raises PoolExhausted, AlreadyAllocated, CoolingDown, ReservedAddress, OnePerHolder,
    HolderChanged, IdempotencyMismatch, NotFound or InvalidInput and changes nothing then.
    """
    is_single_block = len(demand.holders) == 1 and demand.count == 1 and len(demand.families) <= 1
    if is_single_block and demand.cidr is None and not demand.reuse:
        return _allocate_one(pool_id, demand, author=author, key=key)
    return database.with_retries(lambda: _allocate_all(pool_id, demand, author=author, key=key))


_TRIES = 200  # at most 4 seconds

# --- one block for one holder ---------------------------------------------------------------------


def _allocate_one(
    pool_id: int, demand: BlockDemand, *, author: events.Author, key: idempotency.Key | None
) -> Allocation | PendingAllocation:
    for attempt in range(_TRIES):
        outcome, status, row = database.with_retries(
            lambda: _call_allocate(pool_id, demand, author, key)
        )
        if outcome == "both_families":
            return database.with_retries(
                lambda: _allocate_all(pool_id, demand, author=author, key=key)
            )
        if outcome != "empty":
            return _finish_allocation(pool_id, outcome, status, row, demand)
        pool = window.load_pool(pool_id)
        if pool is None:
            raise errors.NotFound("There is no such pool.")
        family = demand.families[0] if demand.families else batches.families(pool)[0]
        if not database.with_retries(partial(window.refill, pool_id, family)):
            message = f"The pool {_pool_name(pool_id)} has no block left."
            raise batches.exhausted(pool, family, message)
        # Other transactions are allocating the remaining blocks; some may roll back.
        time.sleep(random.uniform(0, 0.002 * min(attempt, 10)))  # noqa: S311  # jitter, no secret
    raise errors.Unavailable("Too many requests for the last blocks of the pool; try again.")


def _finish_allocation(
    pool_id: int, outcome: str, status: int, row: Row, demand: BlockDemand
) -> Allocation | PendingAllocation:
    allocation = _parse_outcome(outcome, status, row, demand)
    # Fill the window from time to time before it is empty, so that no request has to wait for it.
    if outcome == "allocated" and row["id"] % window.STEP == 0:
        _top_up(pool_id, row["family"])
    return allocation


def _top_up(pool_id: int, family: int) -> None:
    try:
        window.top_up(pool_id, family)
    except (DatabaseError, errors.NotFound) as error:
        # The allocation has succeeded; the next request that finds the window empty fills it.
        log.info("could not fill the window of pool %s: %s", pool_id, type(error).__name__)


def _call_allocate(
    pool_id: int, demand: BlockDemand, author: events.Author, key: idempotency.Key | None
) -> tuple[str, int, Row]:
    """Return (outcome, stored HTTP status or 0, row of the block)."""
    holder = demand.holders[0]
    answer = orjson.loads(
        database.call(
            _ALLOCATE,
            [
                pool_id,
                demand.families[0] if demand.families else 0,
                holder.kind,
                holder.id,
                holder.uid,
                demand.org,
                demand.environment,
                key.user_id if key else None,
                key.text if key else "",
                key.fingerprint if key else "",
                author.as_context(),
            ],
        )
    )
    return answer["outcome"], answer.get("status", 0), answer.get("answer")


_GIVEN = {"allocated", "existing", "replayed"}  # outcomes with blocks
_ALLOCATE = (
    "SELECT ipam_allocate(%s::bigint, %s::smallint, %s::text, %s::text, %s::text, %s::text,"
    " %s::text, %s::bigint, %s::text, %s::text, %s::text)::text"
)


def _parse_outcome(
    outcome: str, status: int, row: Row, demand: BlockDemand
) -> Allocation | PendingAllocation:
    holder = demand.holders[0]
    if outcome in _GIVEN:
        answer = (
            row
            if "blocks" in row or "request" in row
            else {"blocks": [block_fields.named_block_answer(row)]}
        )
        return _from_stored(status or (201 if outcome == "allocated" else 200), answer)
    if outcome == "mismatch":
        raise errors.IdempotencyMismatch
    if outcome == "no_pool":
        raise errors.NotFound("There is no such pool.")
    if outcome == "no_family":
        raise batches.missing_family(demand.families[0])
    if outcome == "elsewhere":
        raise errors.OnePerHolder(
            f"{holder.kind} {holder.id} holds {row['cidr']} of another pool of this category."
        )
    raise errors.HolderChanged(
        f"{holder.kind} {holder.id} holds {row['cidr']} under another uid; release that first."
    )


def _pool_name(pool_id: int) -> str:
    return str(Pool.objects.select_related("cluster").get(pk=pool_id))


# --- several at once ------------------------------------------------------------------------------


def _allocate_all(
    pool_id: int, demand: BlockDemand, *, author: events.Author, key: idempotency.Key | None
) -> Allocation | PendingAllocation:
    if pool_id > _HIGHEST_LOCK:
        raise errors.NotFound("There is no such pool.")
    with transaction.atomic():
        # The same as events.recorded_by and window.lock, in one round trip. The lock comes before any
        # row, so that a transaction that holds rows never waits for it.
        database.rows(_BEGIN_WITH_LOCK, [author.as_context(), advisory_locks.POOL, pool_id])
        stored = idempotency.run_once(key, lambda: _to_stored(_allocate_locked(pool_id, demand)))
    return _from_stored(stored.status, stored.answer)


_HIGHEST_LOCK = (1 << 31) - 1  # the keys of advisory locks are of 32 bits; a path may name any id
_BEGIN_WITH_LOCK = (
    "SELECT set_config('pghistory.context_metadata', %s::text, true),"
    " pg_advisory_xact_lock(%s::int, %s::int)::text"
)


def _from_stored(status: int, answer: Mapping[str, Any]) -> Allocation | PendingAllocation:
    """Return the answer stored under an idempotency key: blocks, or the pending request."""
    if "request" in answer:
        return PendingAllocation(answer["request"])
    return Allocation(status, answer["blocks"])


def _to_stored(allocation: Allocation) -> idempotency.StoredAnswer:
    return idempotency.StoredAnswer(allocation.status, {"blocks": allocation.blocks})


def _allocate_locked(pool_id: int, demand: BlockDemand) -> Allocation:
    pool = window.load_pool(pool_id)
    if pool is None:
        raise errors.NotFound("There is no such pool.")
    if pool.category in SINGLE and demand.count > 1:
        raise errors.OnePerHolder
    if demand.cidr is not None:
        status, answers = batches.allocate_exact(pool, demand, demand.cidr)
    else:
        status, answers = batches.allocate_for_holders(pool, demand)
    if status == 201:
        for environment in demand.environments:
            database.rows(_MARK_SERVED, [pool.cluster_id, demand.org, environment])
    return Allocation(status, answers)


_MARK_SERVED = "SELECT ipam_environment_served(%s::bigint, %s::text, %s::text)"


# --- release --------------------------------------------------------------------------------------


def release(
    block_id: int,
    holder: Holder | None,
    *,
    author: events.Author,
    org: str = "",
    force: bool = False,
) -> Release:
    """Release a block from its holder into the cooldown of its pool.

    Compares the holder, and the org if it is not "". Raises HolderChanged if another holder has, or
    had last, the block; NotFound if the block does not exist or was never allocated. With `force`
    (and a reason in `author`) the holder is not compared. The event of the release keeps the reason.
    """
    if force and not author.reason:
        raise errors.InvalidInput.for_field(
            "reason", "required", "A forced release needs a reason."
        )
    expected_holder = holder or Holder("", "")
    if author.reason:
        author = replace(author, forced=force)
    answer = orjson.loads(
        database.call(
            "SELECT row_to_json(ipam_release(%s::bigint, %s::text, %s::text, %s::text,"
            " %s::text, %s::boolean, %s::text))::text",
            [
                block_id,
                expected_holder.kind,
                expected_holder.id,
                expected_holder.uid,
                org,
                force,
                author.as_context(),
            ],
        )
    )
    outcome = answer["outcome"]
    if outcome == "gone":
        raise errors.NotFound("There is no such block.")
    if outcome == "changed":
        raise errors.HolderChanged
    return _parse_release(answer)


def _parse_release(answer: Row) -> Release:
    return Release(
        block_fields.named_block_answer(answer["answer"]),
        repeated=answer["outcome"] == "repeated",
        has_pending_requests=bool(answer["wanted"]),
    )


def skip_cooldown(block_id: int, *, author: events.Author) -> block_fields.BlockAnswer:
    """End a running cooldown at once; `author` must have a reason.

    Raises InvalidInput `required`, NotFound, or Conflict if the block is not cooling down.
    """
    if not author.reason:
        raise errors.InvalidInput.for_field(
            "reason", "required", "Skipping a cooldown needs a reason."
        )
    with events.recorded_by(author), connection.cursor() as cursor:
        cursor.execute("SELECT set_config('ipam.skip_cooldown', 'on', true)")
        changed = Block.objects.filter(pk=block_id, state=BlockState.COOLING).update(
            state=BlockState.AVAILABLE, available_from=Now()
        )
        block = Block.objects.select_related("pool__cluster").filter(pk=block_id).first()
        if block is None:
            raise errors.NotFound("There is no such block.")
        if not changed:
            raise errors.Conflict(f"{block} is not cooling down.")
        row = Block.objects.filter(pk=block_id).values().get()
    return block_fields.block_answer(row, pool=block.pool.name, cluster=block.pool.cluster.name)
