"""Several blocks at once, or one exact block: called inside a transaction that holds the pool's
lock (`window.lock`), so that a batch never waits for a lock while it holds rows.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from django.db import connection

from pools import window
from pools.core import addresses, block_answer, blocks, errors
from pools.core.demand import Holder, Wanted
from pools.models import Block, Pool, PoolCIDR
from pools.models.blocks import State
from pools.models.pools import SINGLE

Row = Mapping[str, Any]


def families(pool: Pool) -> tuple[int, ...]:
    return tuple(family for family in (4, 6) if pool.mask_size(family) is not None)


def no_family(family: int) -> errors.InvalidInput:
    return errors.InvalidInput.of(
        "family", "family", f"The pool has no IPv{family} blocks.", family
    )


def take_for_holders(pool: Pool, wanted: Wanted) -> tuple[int, list[Row]]:
    status, rows = 200, []
    for family in wanted.families or families(pool):
        if pool.mask_size(family) is None:
            raise no_family(family)
        kept = _kept(pool, family, wanted) if pool.category in SINGLE else {}
        back = _back(pool, family, wanted, without=kept)
        rest = [h for h in wanted.holders if h not in kept and h not in back] * wanted.count
        fresh = _take(pool, family, rest, wanted)
        if back or fresh:
            status = 201
        rows += [*kept.values(), *back.values(), *fresh]
    return status, rows


def _kept(pool: Pool, family: int, wanted: Wanted) -> dict[Holder, Row]:
    """The blocks that these holders have already, in a category with one block per holder."""
    kept: dict[Holder, Row] = {}
    by_name = {(holder.kind, holder.id): holder for holder in wanted.holders}
    held = Block.objects.filter(
        space=pool.space_id,
        category=pool.category,
        family=family,
        state=State.HELD,
        holder_id__in={holder.id for holder in wanted.holders},
    )
    for row in held.values():
        holder = by_name.get((row["holder_kind"], row["holder_id"]))
        if holder is None:
            continue
        if row["pool_id"] != pool.pk:
            raise errors.OnePerHolder(
                f"{holder.kind} {holder.id} holds {row['cidr']} of another pool of this category."
            )
        if holder.uid and row["holder_uid"] not in {"", holder.uid}:
            raise errors.HolderChanged(
                f"{holder.kind} {holder.id} holds {row['cidr']} under another uid."
            )
        kept[holder] = row
    return kept


def _back(
    pool: Pool, family: int, wanted: Wanted, *, without: Mapping[Holder, Row]
) -> dict[Holder, Row]:
    """Holders that return within their cooldown get their former block (one each)."""
    if wanted.count > 1:
        return {}
    rest = [holder for holder in wanted.holders if holder not in without]
    rows = _write(_TAKE_BACK, pool, family, rest, wanted)
    by_name = {(holder.kind, holder.id): holder for holder in rest}
    return {by_name[row["holder_kind"], row["holder_id"]]: row for row in rows}


def _take(pool: Pool, family: int, holders: Sequence[Holder], wanted: Wanted) -> list[Row]:
    """One block for each entry of `holders`: from the window first, then fresh ones."""
    if not holders:
        return []
    rows = _write(_TAKE_MANY, pool, family, holders, wanted)
    short = len(holders) - len(rows)
    if short:
        texts = window.draw(pool, family, short)
        if len(texts) < short:
            raise errors.PoolExhausted(
                f"The pool {pool} has {len(rows) + len(texts)} blocks left, {len(holders)} wanted."
            )
        rows += _write(_INSERT_HELD, pool, family, holders[len(rows) :], wanted, cidrs=texts)
    return rows


def _write(
    statement: str,
    pool: Pool,
    family: int,
    holders: Sequence[Holder],
    wanted: Wanted,
    *,
    cidrs: Sequence[str] | None = None,
) -> list[Row]:
    values: dict[str, Any] = {
        "pool": pool.pk,
        "space": pool.space_id,
        "category": pool.category,
        "family": family,
        "count": len(holders),
        "kinds": [holder.kind for holder in holders],
        "ids": [holder.id for holder in holders],
        "uids": [holder.uid for holder in holders],
        "org": wanted.org,
        "env": wanted.environment,
        "cidrs": cidrs,
    }
    with connection.cursor() as cursor:
        cursor.execute(statement, values)
        columns = [column.name for column in cursor.description or ()]
        return [dict(zip(columns, row, strict=True)) for row in cursor.fetchall()]


_WANTED = """
    wanted AS (SELECT * FROM unnest(%(kinds)s::text[], %(ids)s::text[], %(uids)s::text[])
               WITH ORDINALITY AS w(kind, id, uid, n))
"""
_HELD = """
    state = 'held', holder_kind = w.kind, holder_id = w.id, holder_uid = w.uid,
    org = %(org)s, env = %(env)s, allocated_at = ipam_now(), released_at = NULL,
    available_from = NULL
"""

# The oldest blocks that may be handed out; the n-th goes to the n-th holder.
_TAKE_MANY = f"""
    WITH {_WANTED}, oldest AS MATERIALIZED (
        SELECT id, available_from, cidr FROM pools_block
        WHERE pool_id = %(pool)s AND family = %(family)s AND available_from <= ipam_now()
          AND NOT withheld
        ORDER BY available_from, cidr LIMIT %(count)s FOR UPDATE SKIP LOCKED),
    numbered AS (SELECT id, row_number() OVER (ORDER BY available_from, cidr) AS n FROM oldest)
    UPDATE pools_block b SET {_HELD}
    FROM numbered JOIN wanted w USING (n) WHERE b.id = numbered.id
    RETURNING b.*
"""  # noqa: S608  # no value is formatted in

# The block that each holder released last, while it cools.
_TAKE_BACK = f"""
    WITH {_WANTED}, former AS MATERIALIZED (
        SELECT DISTINCT ON (w.n) x.id, w.n FROM wanted w JOIN pools_block x
          ON x.holder_id = w.id AND x.holder_kind = w.kind AND x.state = 'cooling'
         AND x.pool_id = %(pool)s AND x.family = %(family)s AND NOT x.withheld
         AND x.available_from > ipam_now() AND (w.uid = '' OR x.holder_uid IN ('', w.uid))
        ORDER BY w.n, x.released_at DESC)
    UPDATE pools_block b SET {_HELD}
    FROM former JOIN wanted w USING (n) WHERE b.id = former.id AND b.state = 'cooling'
    RETURNING b.*
"""  # noqa: S608

_INSERT_HELD = f"""
    WITH {_WANTED}, fresh AS (SELECT * FROM unnest(%(cidrs)s::cidr[]) WITH ORDINALITY AS c(cidr, n))
    INSERT INTO pools_block (pool_id, space_id, category, family, cidr, state, withheld,
        holder_kind, holder_id, holder_uid, org, env, allocated_at)
    SELECT %(pool)s, %(space)s, %(category)s, %(family)s, fresh.cidr, 'held', false,
        w.kind, w.id, w.uid, %(org)s, %(env)s, ipam_now()
    FROM fresh JOIN wanted w USING (n) ORDER BY n
    RETURNING *
"""  # noqa: S608


# --- one exact block ------------------------------------------------------------------------------


def take_exact(pool: Pool, wanted: Wanted, cidr: addresses.Network) -> tuple[int, list[Row]]:
    if len(wanted.holders) != 1 or wanted.count != 1:
        raise errors.InvalidInput.of(
            "cidr", "one_holder", "An exact block goes to one holder.", cidr
        )
    if wanted.families and wanted.families != (cidr.version,):
        raise errors.InvalidInput.of(
            "cidr", "mixed_family", "The block is of another family.", cidr
        )
    holder = wanted.holders[0]
    if pool.category in SINGLE:
        kept = _kept(pool, cidr.version, wanted)
        if kept and kept[holder]["cidr"] != str(cidr):
            raise errors.OnePerHolder(
                f"{holder.kind} {holder.id} holds {kept[holder]['cidr']} already."
            )
    parent, index = _place(pool, cidr)
    row = (
        Block.objects.select_for_update()
        .filter(space=pool.space_id, cidr=str(cidr))
        .values()
        .first()
    )
    if row is None:
        _require_allocatable(parent, index, cidr)
        window.remove(parent, blocks.Span(index, index))
        return 201, _write(_INSERT_HELD, pool, cidr.version, [holder], wanted, cidrs=[str(cidr)])
    if row["state"] == State.HELD:
        if (row["holder_kind"], row["holder_id"]) == (holder.kind, holder.id):
            return 200, [row]
        raise errors.AlreadyAllocated(f"{cidr} is held by another holder.")
    return 201, _take_row(pool, row, holder, wanted)


def _place(pool: Pool, cidr: addresses.Network) -> tuple[PoolCIDR, int]:
    """The CIDR of the pool that has the block, and the block's index in it."""
    parent = (
        PoolCIDR.objects.select_related("pool")
        .filter(pool=pool, cidr__net_contains_or_equals=str(cidr))
        .first()
    )
    if parent is None:
        raise errors.InvalidInput.of(
            "cidr", "outside_pool", f"{cidr} lies in no CIDR of {pool}.", cidr
        )
    return parent, window.layout(parent).index_of(cidr)


def _require_allocatable(parent: PoolCIDR, index: int, cidr: addresses.Network) -> None:
    span = blocks.Span(index, index)
    if blocks.subtract([span], window.layout(parent).usable()):
        raise errors.ReservedAddress(f"{cidr} is the first or last address of {parent}.")
    if not parent.free_spans.filter(first__lte=index, last__gte=index).exists():
        raise errors.ReservedAddress(f"{cidr} lies in a reserved range of {parent}.")


def _take_row(pool: Pool, row: Row, holder: Holder, wanted: Wanted) -> list[Row]:
    if row["withheld"]:
        raise errors.ReservedAddress(f"{row['cidr']} lies in a reserved range.")
    rows = _write(_TAKE_THIS, pool, row["family"], [holder], wanted, cidrs=[row["cidr"]])
    if not rows:
        with connection.cursor() as cursor:
            cursor.execute("SELECT extract(epoch FROM %s - ipam_now())", [row["available_from"]])
            (seconds,) = cursor.fetchone()
        raise errors.CoolingDown(
            f"{row['cidr']} cools down until {block_answer.time(row['available_from'])}.",
            retry_after=float(seconds),
        )
    return rows


_TAKE_THIS = f"""
    WITH {_WANTED}
    UPDATE pools_block b SET {_HELD} FROM wanted w
    WHERE b.space_id = %(space)s AND b.cidr = (%(cidrs)s::cidr[])[1]
      AND (b.available_from <= ipam_now()
           OR b.state = 'cooling' AND b.holder_kind = w.kind AND b.holder_id = w.id
              AND (w.uid = '' OR b.holder_uid IN ('', w.uid)))
    RETURNING b.*
"""  # noqa: S608
