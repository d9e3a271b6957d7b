"""The CIDRs and reserved ranges of pools: the steps of a change, under the pool's lock, and what blocks use of them.

pools/register/pools.py takes the lock and calls the steps.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from datetime import datetime
from ipaddress import IPv6Network
from typing import Any

from django.db import IntegrityError
from django.db.models import Count, Max, Q

from pools.core import addresses, block_fields, blocks, errors
from pools.core.cilium.podippool import CidrEntry, Family
from pools.models import LIVE, BlockState, Category, Now, Pending, Pool, PoolCIDR, ReservedRange
from pools.platform import database, events
from pools.register import orphans
from pools.register.allocator import window

FIRST_HOLDERS = 20
CLUSTER = "cluster"  # the author's source in sync runs


def families(pool: Pool) -> dict[int, Family]:
    """Return a pool's families (4, 6) with their CIDRs and reserved ranges, as `pools.create` takes them.

    Orphans and pending removals are left out.
    """
    return families_by_pool([pool])[pool.pk]


def families_by_pool(pools: Sequence[Pool]) -> dict[int, dict[int, Family]]:
    """Return the families of many pools by the pool's id."""
    entries_by_pool: dict[int, dict[int, list[CidrEntry]]] = {
        pool.pk: {family: [] for family in (4, 6) if pool.mask_size(family) is not None}
        for pool in pools
    }
    for cidr in registered_cidrs(list(entries_by_pool)).prefetch_related("reserved_ranges"):
        entry = CidrEntry(cidr.cidr, tuple(sorted(window.reserved_ranges(cidr))))
        entries_by_pool[cidr.pool_id][cidr.cidr.version].append(entry)
    return {
        pool.pk: {
            family: Family(tuple(entries), pool.mask_size(family) or 0)
            for family, entries in entries_by_pool[pool.pk].items()
        }
        for pool in pools
    }


def registered_cidrs(pool_ids: Sequence[int]) -> Any:
    """Return the CIDRs of pools as a queryset, without orphans and pending removals."""
    rows = PoolCIDR.objects.filter(pool__in=pool_ids, orphaned_at=None)
    return rows.exclude(pending=Pending.REMOVAL)


def blocks_in_use(cidr: PoolCIDR) -> Any:
    """Return the held and cooling blocks of a CIDR as a queryset in address order."""
    return _live(orphans.blocks_of(cidr)).order_by("cidr")


def _live(rows: Any) -> Any:
    cooled = Q(state=BlockState.COOLING, available_from__lte=Now())
    return rows.filter(state__in=LIVE).exclude(cooled)


def cooldown_left(rows: Any) -> tuple[int, datetime | None]:
    """Return how many of these blocks are in cooldown, and until when the last one is."""
    cooling = _live(rows).filter(state=BlockState.COOLING)
    values = cooling.aggregate(count=Count("pk"), until=Max("available_from"))
    return values["count"], values["until"]


def refuse_in_use(rows: Any, subject: str, error: type[errors.Conflict]) -> None:
    """Raise the error with the count and the first holders if some of these blocks are in use."""
    count = _live(rows).count()
    if not count:
        return
    cooling, until = cooldown_left(rows)
    if cooling == count:
        blocks = "1 block" if count == 1 else f"{count} blocks"
        raise error(
            f"{subject} has {blocks} in cooldown until {block_fields.format_time(until)}, "
            "and none that is held. End the cooldown, or wait."
        )
    first = [
        f"{block.holder_kind} {block.holder_id} ({block.cidr}, {block.state})"
        for block in _live(rows).order_by("cidr")[:FIRST_HOLDERS]
    ]
    suffix = f" and {count - len(first)} more" if count > len(first) else ""
    raise error(
        f"{subject} has {count} held or cooling block{'s' * (count > 1)}: {', '.join(first)}{suffix}."
    )


def change_family(
    pool: Pool, family: int, part: Family, *, keep_orphans: bool, author: events.Author
) -> None:
    """Replace a family of a pool: CIDRs and ranges that `part` lacks are removed, in the order of `part` the others stay.

    A CIDR that another one replaces, wider or narrower, gives it its blocks: they stay with their holders
    (rule `replaced-cidr-keeps-its-blocks`). Raises CIDRInUse for blocks that no CIDR of `part` contains.
    """
    present = _cidr_rows(pool, family)
    if not keep_orphans:
        _validate_replacements(pool, family, part, present)
    reasons = {
        (reserved.first, reserved.last): reserved.reason
        for reserved in ReservedRange.objects.filter(pool_cidr__in=list(present.values()))
    }
    kept = _replace_cidrs(pool, part, present, keep_orphans=keep_orphans)
    present = _cidr_rows(pool, family)
    for cidr in present.keys() - {entry.cidr for entry in part.cidrs} - kept:
        drop(present[cidr], keep_orphans=keep_orphans)
    for index, entry in enumerate(part.cidrs):
        with error_path(f"ipv{family}.cidrs.{index}"):
            pool_cidr = present.get(entry.cidr)
            if pool_cidr is None:
                await_addition(add(pool, entry), author)
            else:
                keep(pool_cidr, author)
                _change_ranges(pool_cidr, entry, reasons)
    _reorder_cidrs(pool, family, part)


def _validate_replacements(
    pool: Pool, family: int, part: Family, present: Mapping[addresses.Network, PoolCIDR]
) -> None:
    """Validate the new CIDRs that overlap present ones of the pool, as `add` validates all others."""
    for index, entry in enumerate(part.cidrs):
        cidr = entry.cidr
        if cidr in present or not any(cidr.overlaps(other) for other in present):
            continue
        with error_path(f"ipv{family}.cidrs.{index}"):
            for other_entry in part.cidrs:
                if other_entry.cidr != cidr and other_entry.cidr.overlaps(cidr):
                    raise errors.CIDROverlap(
                        f"{cidr} overlaps {other_entry.cidr} of the same pool."
                    )
            _require_in_prefix(pool, cidr)
            others = PoolCIDR.objects.exclude(pool=pool).select_related("pool__cluster")
            other = others.filter(space=pool.space_id, cidr__net_overlaps=str(cidr)).first()
            if other is not None:
                raise errors.CIDROverlap(_overlap_message(cidr, other))
            orphans.refuse_observed_elsewhere(pool, cidr)
            window.layout(PoolCIDR(pool=pool, cidr=cidr))  # refuses one without a block


def _replace_cidrs(
    pool: Pool,
    part: Family,
    present: Mapping[addresses.Network, PoolCIDR],
    *,
    keep_orphans: bool,
) -> set[addresses.Network]:
    """Replace the CIDRs that `part` lacks by those of it that overlap them.

    Returns the parts of them that stay: with blocks in use in an orphan, or in the cluster's object, which
    has the CIDR until a sync run writes it. Raises CIDRInUse without `keep_orphans`.
    """
    desired_cidrs = [entry.cidr for entry in part.cidrs]
    lost = [row for cidr, row in present.items() if cidr not in desired_cidrs]
    in_cluster = {row.cidr for row in lost if orphans.cluster_has_cidr(pool, row.cidr)}
    orphaned = [row.cidr for row in lost if row.orphaned_at is not None]
    kept = set()
    for remainder in orphans.replace_lost_cidrs(pool, lost, desired_cidrs):
        in_use = blocks_in_use(remainder)
        may_be_orphan = keep_orphans or any(remainder.cidr.overlaps(cidr) for cidr in orphaned)
        if in_use.exists() and not may_be_orphan:
            refuse_in_use(in_use, f"{remainder}", errors.CIDRInUse)
        elif in_use.exists():
            kept.add(remainder.cidr)
        elif not keep_orphans and any(remainder.cidr.overlaps(cidr) for cidr in in_cluster):
            orphans.suspend_allocation(remainder, Pending.REMOVAL)
            kept.add(remainder.cidr)
        else:
            delete(remainder)
    return kept


def _cidr_rows(pool: Pool, family: int) -> dict[addresses.Network, PoolCIDR]:
    rows = PoolCIDR.objects.select_related("pool__cluster").filter(pool=pool, cidr__family=family)
    return {row.cidr: row for row in rows}


def await_addition(cidr: PoolCIDR, author: events.Author) -> None:
    """Make a CIDR a pending addition if the cluster's object lacks it.

    A pool without an object needs no pending addition: the next sync run creates the object.
    """
    if author.source == CLUSTER or cidr.pending or not orphans.is_written_to_cluster(cidr.pool):
        return
    if orphans.cluster_has_cidr(cidr.pool, cidr.cidr) is False:
        orphans.suspend_allocation(cidr, Pending.ADDITION)


def keep(cidr: PoolCIDR, author: events.Author) -> None:
    """Keep a CIDR that has a row already, also an orphan or a pending removal."""
    waits = author.source != CLUSTER and orphans.is_written_to_cluster(cidr.pool)
    if not (waits and cidr.closed and orphans.cluster_has_cidr(cidr.pool, cidr.cidr) is False):
        orphans.resume_allocation(cidr)
    elif cidr.pending != Pending.ADDITION:
        orphans.suspend_allocation(cidr, Pending.ADDITION)


def drop(cidr: PoolCIDR, *, keep_orphans: bool) -> None:
    """Remove a CIDR, at once or when the cluster has. With `keep_orphans` one in use becomes an orphan; else CIDRInUse."""
    if cidr.orphaned_at is not None:
        return  # an orphan is deleted when none of its blocks is in use any more
    if keep_orphans:
        orphans.withhold_blocks(cidr)  # first, so that no block of it is allocated meanwhile
        if blocks_in_use(cidr).exists():
            orphans.mark_orphaned(cidr)
            return
    elif await_removal(cidr):
        return
    delete(cidr)


def _reorder_cidrs(pool: Pool, family: int, part: Family) -> None:
    """Store the order of the spec's CIDRs, in which blocks are allocated from them."""
    rows_by_cidr = {
        row.cidr: row for row in registered_cidrs([pool.pk]).filter(cidr__family=family)
    }
    positions = sorted(row.position for row in rows_by_cidr.values())
    for position, entry in zip(positions, part.cidrs, strict=True):
        if rows_by_cidr[entry.cidr].position != position:
            PoolCIDR.objects.filter(pk=rows_by_cidr[entry.cidr].pk).update(position=position)


def _change_ranges(
    cidr: PoolCIDR, entry: CidrEntry, reasons: Mapping[tuple[Any, Any], str] | None = None
) -> None:
    """Reserve exactly the ranges of the entry; `reasons` are those of ranges that were there before."""
    desired_ranges = set(entry.reserved)
    for reserved in cidr.reserved_ranges.select_related("pool_cidr__pool"):
        span = addresses.AddressRange(reserved.first, reserved.last)
        if span in desired_ranges:
            desired_ranges.remove(span)
        else:
            unreserve(reserved)
    for span in sorted(desired_ranges):
        reserve(cidr, span, (reasons or {}).get((span.first, span.last), ""))


def add(pool: Pool, entry: CidrEntry) -> PoolCIDR:
    """Add a CIDR at the end of the pool's list. Raises InvalidInput, CIDROverlap, RangesOverlap."""
    if pool.mask_size(entry.cidr.version) is None:
        message = f"The pool has no IPv{entry.cidr.version} blocks."
        raise errors.InvalidInput.for_field("cidr", "family", message, entry.cidr)
    _require_in_prefix(pool, entry.cidr)
    other = _find_overlap(pool, entry.cidr)
    if other is not None:
        if other.pool_id != pool.pk or other.cidr != entry.cidr or not other.closed:
            message = _overlap_message(entry.cidr, other)
            if other.pool_id == pool.pk:
                message += " To change its size, replace it in the list of the pool's CIDRs: its blocks stay."
            raise errors.CIDROverlap(message)
        if other.pending != Pending.ADDITION:
            orphans.resume_allocation(other)
        _change_ranges(other, entry)
        return other
    orphans.refuse_observed_elsewhere(pool, entry.cidr)
    last = pool.cidrs.aggregate(last=Max("position"))["last"]
    cidr = PoolCIDR(
        pool=pool,
        space_id=pool.space_id,
        cidr=entry.cidr,
        position=0 if last is None else last + 1,
    )
    grid = window.layout(cidr)  # refuses a CIDR without a block of the mask size
    database.save(cidr)
    window.add_free_spans(cidr, grid.usable())
    for span in entry.reserved:
        reserve(cidr, span, "")
    return cidr


def _overlap_message(cidr: addresses.Network, other: PoolCIDR) -> str:
    suffix = ", which its cluster still has" if other.pending == Pending.REMOVAL else ""
    return f"{cidr} overlaps {other} of the pool {other.pool}{suffix}."


def _require_in_prefix(pool: Pool, cidr: addresses.Network) -> None:
    """Raise InvalidInput if a node or instance pool's CIDR is outside its cluster's prefix."""
    prefix = lock_prefix(pool)
    if prefix is None:
        return
    if not isinstance(cidr, IPv6Network) or not cidr.subnet_of(prefix):
        message = f"{cidr} is not in the prefix {prefix} of the cluster {pool.cluster}"
        raise errors.InvalidInput.for_field("cidr", "outside_cluster_prefix", message, cidr)


def lock_prefix(pool: Pool) -> IPv6Network | None:
    """Lock and return the cluster prefix that must contain the pool's CIDRs; None if there is none."""
    if pool.category not in {Category.NODE, Category.INSTANCE}:
        return None
    statement = "SELECT cluster_prefix::text FROM pools_cluster WHERE id = %s FOR SHARE"
    rows = database.rows(statement, [pool.cluster_id])
    return IPv6Network(rows[0][0]) if rows and rows[0][0] else None


def _find_overlap(pool: Pool, cidr: addresses.Network) -> PoolCIDR | None:
    return (
        PoolCIDR.objects.select_related("pool__cluster")
        .filter(space=pool.space_id, cidr__net_overlaps=str(cidr))
        .first()
    )


def await_removal(cidr: PoolCIDR) -> bool:
    """Make a CIDR a pending removal if the cluster's object still has it; return True then."""
    if cidr.orphaned_at is not None or not orphans.cluster_has_cidr(cidr.pool, cidr.cidr):
        return False
    refuse_in_use(blocks_in_use(cidr), f"{cidr}", errors.CIDRInUse)
    orphans.suspend_allocation(cidr, Pending.REMOVAL)
    return True


def delete(cidr: PoolCIDR) -> None:
    """Delete a CIDR. Raises CIDRInUse."""
    refuse_in_use(blocks_in_use(cidr), f"{cidr}", errors.CIDRInUse)
    map_integrity_error(
        cidr.delete, {"cidr_in_use": errors.CIDRInUse, "block_in_use": errors.CIDRInUse}
    )


def reserve(cidr: PoolCIDR, span: addresses.AddressRange, reason: str) -> ReservedRange:
    """Reserve a range of a CIDR. Raises InvalidInput, RangesOverlap."""
    addresses.require_within(span, cidr.cidr)
    other = cidr.reserved_ranges.filter(
        first__lte=str(span.last), last__gte=str(span.first)
    ).first()
    if other is not None:
        raise errors.RangesOverlap(f"{span} overlaps the reserved range {other} of {cidr}.")
    reserved = ReservedRange(
        pool_id=cidr.pool_id, pool_cidr=cidr, first=span.first, last=span.last, reason=reason
    )
    database.save(reserved)  # a trigger withholds the blocks that have a row
    window.remove_free_span(cidr, _touched_span(cidr, span))
    return reserved


def _touched_span(cidr: PoolCIDR, span: addresses.AddressRange) -> blocks.Span:
    touched = window.layout(cidr).span_touching(span)
    if touched is None:  # impossible: the range is inside the CIDR
        raise AssertionError(f"{span} touches no block of {cidr}")
    return touched


def unreserve(reserved: ReservedRange) -> None:
    """Delete a reserved range, and give its blocks back to the allocator."""
    cidr = reserved.pool_cidr
    grid = window.layout(cidr)
    freed = _touched_span(cidr, addresses.AddressRange(reserved.first, reserved.last))
    reserved.delete()
    if cidr.closed:
        return  # all blocks of the CIDR stay withheld
    window.end_withholding(cidr, freed, still_withheld=grid.withheld(window.reserved_ranges(cidr)))


def map_integrity_error(
    operation: Callable[[], Any], names: Mapping[str, type[errors.Conflict]]
) -> None:
    """Raise the error that `names` has for the constraint that an operation violates."""
    try:
        operation()
    except IntegrityError as error:
        error_class = names.get(database.constraint(error))
        if error_class is None:
            raise
        raise error_class(str(error.__cause__).partition("\n")[0]) from error


@contextmanager
def error_path(path: str) -> Iterator[None]:
    """Prefix the fields of InvalidInput with the path of the part."""
    try:
        yield
    except errors.InvalidInput as error:
        raise error.under(path) from error
