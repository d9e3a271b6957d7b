"""Allocate several blocks at once, or one exact block.

The caller's transaction holds the pool's lock (`window.lock`), so that a batch never waits for that
lock while it holds rows.
"""

from collections.abc import Mapping, Sequence
from typing import Any

from django.db import connection

from pools.core import addresses, block_fields, blocks, errors
from pools.core.block_fields import BlockAnswer
from pools.core.holders import ENVIRONMENT as ENV, BlockDemand, Holder
from pools.models import Block, BlockState, Pool, PoolCIDR
from pools.models.pools import SINGLE
from pools.platform import database
from pools.register.allocator import window
from pools.sql import statements

Row = Mapping[str, Any]


def families(pool: Pool) -> tuple[int, ...]:
    """Return the families (4, 6) of which the pool has blocks."""
    return tuple(family for family in (4, 6) if pool.mask_size(family) is not None)


def missing_family(family: int) -> errors.InvalidInput:
    return errors.InvalidInput.for_field(
        "family", "family", f"The pool has no IPv{family} blocks.", family
    )


def allocate_for_holders(pool: Pool, demand: BlockDemand) -> tuple[int, list[BlockAnswer]]:
    """Return (status, blocks); the status is 201, or 200 if every holder held its block already."""
    status: int = 200
    answers: list[BlockAnswer] = []
    for family in demand.families or families(pool):
        if pool.mask_size(family) is None:
            raise missing_family(family)
        values = _values(pool, family, demand.holders, demand)
        held_rows, cooling_rows = _existing_blocks(pool, demand, values)
        remaining = list(demand.holders)
        if pool.category in SINGLE or demand.reuse:  # a holder that is named twice gets one block
            remaining = list({holder[:2]: holder for holder in remaining}.values())
        remaining = [
            holder
            for number in range(demand.count)
            for holder in remaining
            if number >= len(held_rows.get(holder, ())) and holder not in cooling_rows
        ]
        if cooling_rows or remaining:
            status = 201
        present_rows = [row for rows in held_rows.values() for row in rows[: demand.count]]
        answers += _block_answers(
            pool, [*present_rows, *_reassign_cooling(pool, family, cooling_rows, demand)]
        )
        are_all = len(remaining) == len(demand.holders) and not (held_rows or cooling_rows)
        answers += _allocate_blocks(pool, family, remaining, demand, values if are_all else None)
    return status, answers


def _block_answers(pool: Pool, rows: Sequence[Row]) -> list[BlockAnswer]:
    name, cluster = pool.name, pool.cluster.name
    return [block_fields.block_answer(row, pool=name, cluster=cluster) for row in rows]


def _existing_blocks(
    pool: Pool, demand: BlockDemand, values: Mapping[str, Any]
) -> tuple[dict[Holder, list[Row]], dict[Holder, Row]]:
    """Return the rows that the holders hold, and the cooling rows that return to them.

    Held rows count in pools of one block for each holder, and for a demand with `reuse`.
    """
    held_rows: dict[Holder, list[Row]] = {}
    cooling_rows: dict[Holder, Row] = {}
    rows = database.fetch(_LOCK_BLOCKS_OF_HOLDERS, values)
    if not rows:
        return held_rows, cooling_rows
    by_name = {(holder.kind, holder.id): holder for holder in demand.holders}
    for row in rows:
        holder = by_name.get((row["holder_kind"], row["holder_id"]))
        if holder is None:
            continue
        if row["state"] == BlockState.HELD:
            if pool.category in SINGLE or (demand.reuse and row["pool_id"] == pool.pk):
                held_rows.setdefault(holder, []).append(_require_own_row(pool, row, holder))
        elif (
            row["state"] == BlockState.COOLING
            and demand.count == 1
            and _can_return(pool, row, holder)
        ):
            cooling_rows[holder] = row
    return held_rows, {
        holder: row for holder, row in cooling_rows.items() if holder not in held_rows
    }


def _require_own_row(pool: Pool, row: Row, holder: Holder) -> Row:
    if row["pool_id"] != pool.pk:
        raise errors.OnePerHolder(
            f"{holder.kind} {holder.id} holds {row['cidr']} of another pool of this category."
        )
    if holder.uid and row["holder_uid"] not in {"", holder.uid}:
        raise errors.HolderChanged(
            f"{holder.kind} {holder.id} holds {row['cidr']} under another uid."
        )
    return row


def _can_return(pool: Pool, row: Row, holder: Holder) -> bool:
    is_same_holder = not holder.uid or row["holder_uid"] in {"", holder.uid}
    return row["pool_id"] == pool.pk and row["cools"] and not row["withheld"] and is_same_holder


def _reassign_cooling(
    pool: Pool, family: int, cooling_rows: Mapping[Holder, Row], demand: BlockDemand
) -> list[Row]:
    if not cooling_rows:
        return []
    ids = [row["id"] for row in cooling_rows.values()]
    return database.fetch(
        _ASSIGN_BLOCKS, _values(pool, family, list(cooling_rows), demand) | {"blocks": ids}
    )


def _allocate_blocks(
    pool: Pool,
    family: int,
    holders: Sequence[Holder],
    demand: BlockDemand,
    values_of_all: Mapping[str, Any] | None,
) -> list[BlockAnswer]:
    """Allocate one block for each entry of `holders`.

    The order is: fresh blocks of the window, free spans, released blocks. `values_of_all` is the
    result of `_values` for exactly these holders, if the caller has it.
    """
    if not holders:
        return []
    values = {"pool": pool.pk, "family": family, "count": len(holders)}
    ids = _fetch_ids(_LOCK_OLDEST_FRESH, values)
    cidrs = (
        window.take_free_blocks(pool, family, len(holders) - len(ids))
        if len(ids) < len(holders)
        else []
    )
    if len(ids) + len(cidrs) < len(holders):
        ids = _fetch_ids(
            _LOCK_OLDEST + " SKIP LOCKED", {**values, "count": len(holders) - len(cidrs)}
        )
    while len(ids) + len(cidrs) < len(holders):
        # Other transactions have locked the last blocks: wait for their commit or rollback.
        values = {**values, "count": len(holders) - len(cidrs)}
        locked_ids = _fetch_ids(_LOCK_OLDEST, values)
        if len(locked_ids) <= len(ids):
            remaining = len(ids) + len(cidrs)
            raise exhausted(
                pool,
                family,
                f"The pool {pool} has {remaining} blocks left, {len(holders)} were requested.",
            )
        ids = locked_ids
    answers: list[BlockAnswer] = []
    if ids:
        values = _values(pool, family, holders[: len(ids)], demand) | {"blocks": ids}
        answers += _block_answers(pool, database.fetch(_ASSIGN_BLOCKS, values))
    if cidrs:
        answers += insert_held(
            pool,
            family,
            holders[len(ids) :],
            demand,
            cidrs=cidrs,
            values=None if ids else values_of_all,
        )
    return answers


def exhausted(pool: Pool, family: int, message: str) -> errors.PoolExhausted:
    """Return the error of a pool without free blocks, with what cools and until when."""
    values = {"pool": pool.pk, "family": family, "count": _MOST_COUNTED + 1}
    ((count, until),) = database.rows(_COOLING, values)
    if not count:
        return errors.PoolExhausted(message)
    number = f"more than {_MOST_COUNTED}" if count > _MOST_COUNTED else str(count)
    cooling = "block is" if count == 1 else "blocks are"
    when = block_fields.format_time(until)
    return errors.PoolExhausted(
        f"{message.removesuffix('.')}. {number} {cooling} in cooldown; the next one becomes free at {when}."
    )


_MOST_COUNTED = 10_000  # cooling blocks
# Blocks of the window, which become free in this order.
_COOLING = """
    SELECT count(*), min(available_from) FROM (
        SELECT available_from FROM pools_block
        WHERE pool_id = %(pool)s AND family = %(family)s AND available_from > (SELECT ipam_clock())
          AND NOT withheld
        ORDER BY available_from LIMIT %(count)s) cooling
"""


def _fetch_ids(statement: str, values: Mapping[str, Any]) -> list[int]:
    return [row["id"] for row in database.fetch(statement, values)]


def insert_held(
    pool: Pool,
    family: int,
    holders: Sequence[Holder],
    demand: BlockDemand,
    *,
    cidrs: Sequence[str],
    values: Mapping[str, Any] | None = None,
) -> list[BlockAnswer]:
    """Insert held blocks, one CIDR for each holder.

    The statement returns only the ids; the rest of the answer is known here.
    """
    row_values = values or _values(pool, family, holders, demand)
    inserted = {**row_values, "cidrs": SEPARATOR.join(cidrs)}
    ((id_text, allocated_at),) = database.rows(_INSERT_HELD, inserted, prepare=False)
    ids = [int(block_id) for block_id in id_text.split(",")]
    first = {
        "id": ids[0],
        "cidr": cidrs[0],
        "pool_id": pool.pk,
        "family": family,
        "state": BlockState.HELD.value,
        "withheld": False,
        "holder_kind": holders[0].kind,
        "holder_id": holders[0].id,
        "holder_uid": holders[0].uid,
        "org": demand.org,
        "env": demand.env,
        "allocated_at": allocated_at,
        "released_at": None,
        "available_from": None,
    }
    (template,) = _block_answers(pool, [first])
    host_sized = template["address"] is not None  # the same for all blocks of a pool and family
    return [
        {
            **template,
            "id": block_id,
            "cidr": cidr,
            "address": cidr.partition("/")[0] if host_sized else None,
            "holder": {"kind": holder.kind, "id": holder.id, "uid": holder.uid},
            "env": demand.env_of(holder),
        }
        for block_id, cidr, holder in zip(ids, cidrs, holders, strict=True)
    ]


def _values(
    pool: Pool, family: int, holders: Sequence[Holder], demand: BlockDemand
) -> dict[str, Any]:
    return {
        "pool": pool.pk,
        "space": pool.space_id,
        "category": pool.category,
        "family": family,
        "kinds": SEPARATOR.join([holder.kind for holder in holders]),
        "ids": SEPARATOR.join([holder.id for holder in holders]),
        "uids": SEPARATOR.join([holder.uid for holder in holders]),
        "org": demand.org,
        "env": demand.env,
    }


# A list is passed as one string, because psycopg would quote each of ten thousand array elements. No
# identifier contains a control character (pools/core/holders.py).
SEPARATOR = "\x1f"

_HOLDERS = """
    holders AS (
        SELECT kind, id, COALESCE(uid, '') AS uid, n
        FROM unnest(string_to_array(%(kinds)s, E'\\x1f'), string_to_array(%(ids)s, E'\\x1f'),
                    string_to_array(%(uids)s, E'\\x1f')) WITH ORDINALITY AS w(kind, id, uid, n))
"""
_SET_HELD = """
    state = 'held', holder_kind = w.kind, holder_id = w.id, holder_uid = w.uid,
    org = %(org)s, env = CASE WHEN %(env)s::text = '' AND w.kind = 'env' THEN w.id ELSE %(env)s END,
    allocated_at = GREATEST(ipam_now(), b.released_at),
    released_at = NULL,
    available_from = NULL
"""

# The blocks that the holders hold or held last; of several cooling ones, the one released last comes
# last. Each holder is looked up separately (the lock prevents PostgreSQL from merging the inner query
# into the outer one), and `+ 0` excludes other indexes: with statistics older than the blocks, the
# planner would read all blocks of the address space, or of all pools, and compare each with each holder.
_LOCK_BLOCKS_OF_HOLDERS = statements.read("pools/lock_blocks_of_holders")

# The oldest blocks that can be allocated.
_LOCK_OLDEST = """
    SELECT id FROM pools_block
    WHERE pool_id = %(pool)s AND family = %(family)s AND available_from <= (SELECT ipam_clock())
      AND NOT withheld
    ORDER BY available_from, id LIMIT %(count)s FOR UPDATE
"""

_LOCK_OLDEST_FRESH = """
    SELECT id FROM pools_block
    WHERE pool_id = %(pool)s AND family = %(family)s AND available_from <= ipam_fresh_until()
      AND NOT withheld
    ORDER BY available_from, id LIMIT %(count)s FOR UPDATE SKIP LOCKED
"""

# Assign the n-th block to the n-th holder; the caller has locked the rows.
_ASSIGN_BLOCKS = f"""
    WITH {_HOLDERS}, these AS (
        SELECT * FROM unnest(%(blocks)s::bigint[]) WITH ORDINALITY AS t(block, n))
    UPDATE pools_block b SET {_SET_HELD}
    FROM these JOIN holders w USING (n) WHERE b.id = these.block
    RETURNING b.*
"""  # noqa: S608  # no value is formatted in

# Returns the ids, which are in the order of the holders, and the time of allocation.
_INSERT_HELD = statements.read("pools/insert_held_blocks")


# --- one exact block ------------------------------------------------------------------------------


def allocate_exact(
    pool: Pool, demand: BlockDemand, cidr: addresses.Network
) -> tuple[int, list[BlockAnswer]]:
    """Allocate the block `cidr` to the only holder; return (201, or 200 if it holds it already; blocks)."""
    if len(demand.holders) != 1 or demand.count != 1:
        raise errors.InvalidInput.for_field(
            "cidr", "one_holder", "An exact block can only be allocated to one holder.", cidr
        )
    if demand.families and demand.families != (cidr.version,):
        raise errors.InvalidInput.for_field(
            "cidr", "mixed_family", "The CIDR is not of the requested family.", cidr
        )
    holder = demand.holders[0]
    if pool.category in SINGLE:
        values = _values(pool, cidr.version, demand.holders, demand)
        held_rows, _ = _existing_blocks(pool, demand, values)
        if held_rows and held_rows[holder][0]["cidr"] != str(cidr):
            raise errors.OnePerHolder(
                f"{holder.kind} {holder.id} holds {held_rows[holder][0]['cidr']} already."
            )
    parent, index = _locate_block(pool, cidr)
    # Without an order: to find the first by id, the planner may walk through all blocks by id.
    block_rows = Block.objects.select_for_update().filter(space=pool.space_id, cidr=str(cidr))
    row = next(iter(block_rows.order_by().values()), None)
    if row is None:
        _require_allocatable(parent, index, cidr)
        window.remove_free_span(parent, blocks.Span(index, index))
        return 201, insert_held(pool, cidr.version, [holder], demand, cidrs=[str(cidr)])
    if row["state"] == BlockState.HELD:
        same_org = holder.kind != ENV or row["org"] == demand.org
        if same_org and (row["holder_kind"], row["holder_id"]) == (holder.kind, holder.id):
            return 200, _block_answers(pool, [_require_own_row(pool, row, holder)])
        raise errors.AlreadyAllocated(f"{cidr} is held by another holder.")
    return 201, _block_answers(pool, _assign_row(pool, row, holder, demand))


def _locate_block(pool: Pool, cidr: addresses.Network) -> tuple[PoolCIDR, int]:
    """Return the CIDR of the pool that contains the block, and the block's index in it."""
    parent = (
        PoolCIDR.objects.select_related("pool")
        .filter(pool=pool, cidr__net_contains_or_equals=str(cidr))
        .first()
    )
    if parent is None:
        raise errors.InvalidInput.for_field(
            "cidr", "outside_pool", f"{cidr} is not in any CIDR of {pool}.", cidr
        )
    try:
        return parent, window.layout(parent).index_of(cidr)
    except errors.InvalidInput as error:
        raise error.under("cidr") from error


def _require_allocatable(parent: PoolCIDR, index: int, cidr: addresses.Network) -> None:
    span = blocks.Span(index, index)
    if blocks.subtract([span], window.layout(parent).usable()):
        raise errors.ReservedAddress(f"{cidr} is the first or last address of {parent}.")
    if parent.closed:
        raise errors.ReservedAddress(_closed_message(parent, cidr))
    if not parent.free_spans.filter(first__lte=index, last__gte=index).exists():
        raise errors.ReservedAddress(f"{cidr} lies in a reserved range of {parent}.")


def _closed_message(parent: PoolCIDR, cidr: addresses.Network) -> str:
    reason = "its cluster has removed it"
    if parent.pending:
        reason = f"its {parent.get_pending_display()} is not applied in the cluster yet"
    return f"{cidr} lies in {parent}, of which no blocks are allocated: {reason}."


def _assign_row(pool: Pool, row: Row, holder: Holder, demand: BlockDemand) -> list[Row]:
    if row["withheld"]:
        raise errors.ReservedAddress(f"{row['cidr']} lies in a reserved range.")
    rows = database.fetch(
        _ASSIGN_BLOCK, _values(pool, row["family"], [holder], demand) | {"cidr": row["cidr"]}
    )
    if not rows:
        with connection.cursor() as cursor:
            cursor.execute("SELECT extract(epoch FROM %s - ipam_clock())", [row["available_from"]])
            (seconds,) = cursor.fetchone()
        raise errors.CoolingDown(
            f"{row['cidr']} is in cooldown until {block_fields.format_time(row['available_from'])}.",
            retry_after=float(seconds),
        )
    return rows


_ASSIGN_BLOCK = f"""
    WITH {_HOLDERS}
    UPDATE pools_block b SET {_SET_HELD} FROM holders w
    WHERE b.space_id = %(space)s AND b.cidr = %(cidr)s::cidr
      AND (b.available_from <= (SELECT ipam_clock())
           OR b.state = 'cooling' AND b.holder_kind = w.kind AND b.holder_id = w.id
              AND (w.kind <> 'env' OR b.org = %(org)s)
              AND (w.uid = '' OR b.holder_uid IN ('', w.uid)))
    RETURNING b.*
"""  # noqa: S608
