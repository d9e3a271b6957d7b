"""Create, change and delete pools, their CIDRs and reserved ranges.

Every change runs under the pool's allocation lock and increments its version. A change never frees
blocks in use: a reserved range only stops new allocations, and a CIDR with held or cooling blocks
cannot be removed.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from ipaddress import IPv6Network
from typing import Any

from django.db import IntegrityError
from django.db.models import F, Max, Q

from pools.clusters.reconcile import leases
from pools.core import addresses, blocks, errors
from pools.core.cilium.podippool import CidrEntry, Family
from pools.models import AddressSpace, Block, Cluster, Pool, PoolCIDR, ReservedRange
from pools.models.attributes import ATTRIBUTES
from pools.models.blocks import LIVE, BlockState
from pools.models.fields import Now
from pools.models.pools import DEFAULT_COOLDOWN, Category, Pending
from pools.platform import database, events
from pools.platform.attributes import values as attributes
from pools.register import cluster_cidrs, orphans
from pools.register.allocator import window
from pools.register.plan import containers

FIRST_HOLDERS = 20
_CLUSTER = "cluster"  # the author's source in sync runs


@dataclass(frozen=True)
class PoolSpec:
    """The fields of a new pool; the keys of `families` are 4 and 6.

    If `cooldown_seconds` is None, the pool gets the default of its category.
    """

    cluster: Cluster
    name: str
    category: str
    families: Mapping[int, Family]
    cooldown_seconds: int | None = None
    allow_first_ip: bool = False
    allow_last_ip: bool = False
    description: str = ""
    dns_pattern: str = ""
    annotations: Mapping[str, str] = field(default_factory=dict)
    labels: Mapping[str, str] = field(default_factory=dict)
    pod_selector: Mapping[str, Any] | None = None
    namespace_selector: Mapping[str, Any] | None = None
    space: AddressSpace | None = None  # None: the cluster's own address space
    follows_cluster: bool = False
    attributes: Mapping[str, Any] = field(default_factory=dict)  # tags, owner, custom_fields


@dataclass(frozen=True)
class PoolChange:
    """The fields of a pool to change; a field that is None keeps its value.

    A family replaces the whole family: CIDRs and ranges that it does not contain are removed. With
    `keep_orphans`, a removed CIDR in use becomes an orphan instead of raising CIDRInUse, because the
    cluster has removed it already. `selectors` are the pod selector and the namespace selector.
    `attributes` are tags, owner and custom fields; no cluster has them or the DNS pattern: a change
    of these alone leaves a pool following its cluster.
    """

    families: Mapping[int, Family] | None = None
    cooldown_seconds: int | None = None
    description: str | None = None
    dns_pattern: str | None = None
    annotations: Mapping[str, str] | None = None
    labels: Mapping[str, str] | None = None
    selectors: tuple[Mapping[str, Any] | None, Mapping[str, Any] | None] | None = None
    keep_orphans: bool = False
    attributes: Mapping[str, Any] | None = None


def create(spec: PoolSpec, *, author: events.Author) -> Pool:
    """Create a pool with its CIDRs and ranges.

    Raises AlreadyExists, CIDROverlap, RangesOverlap or InvalidInput.
    """
    if not spec.families:
        raise errors.InvalidInput.for_field(
            "ipv4", "family_required", "A pool needs an IPv4 or IPv6 part."
        )
    space = spec.space or AddressSpace.objects.get(cluster=spec.cluster, name=AddressSpace.OWN)
    cooldown = spec.cooldown_seconds
    pool = Pool(
        cluster=spec.cluster,
        space=space,
        name=spec.name,
        category=spec.category,
        mask_size_v4=spec.families[4].mask_size if 4 in spec.families else None,
        mask_size_v6=spec.families[6].mask_size if 6 in spec.families else None,
        cooldown_seconds=DEFAULT_COOLDOWN[Category(spec.category)]
        if cooldown is None
        else cooldown,
        allow_first_ip=spec.allow_first_ip,
        allow_last_ip=spec.allow_last_ip,
        description=spec.description,
        dns_pattern=spec.dns_pattern,
        annotations=dict(spec.annotations),
        labels=dict(spec.labels),
        pod_selector=spec.pod_selector,
        namespace_selector=spec.namespace_selector,
        follows_cluster=spec.follows_cluster,
    )
    with events.recorded_by(author):
        _lock_plan_and_cluster(spec.cluster.pk, space.name, spec.category, author)
        attributes.set_attributes(pool, spec.attributes)
        _lock_prefix(pool)  # before the pool's name, in the order of clusters.divide_prefix
        database.save(pool)
        window.lock(pool.pk)
        for family, part in sorted(spec.families.items()):
            for index, entry in enumerate(part.cidrs):
                with _error_path(f"ipv{family}.cidrs.{index}"):
                    _add_cidr(pool, entry)
    return pool


def change(
    pool_id: int, pool_change: PoolChange, *, author: events.Author, version: int | None = None
) -> Pool:
    """Apply a change to a pool, as a whole or not at all.

    Raises VersionMismatch, ImmutableInUse (mask size), CIDRInUse, CIDROverlap, RangesOverlap or
    InvalidInput.
    """
    register_only = pool_change == PoolChange(
        attributes=pool_change.attributes, dns_pattern=pool_change.dns_pattern
    )
    with _locked_pool(
        pool_id, author=author, version=version, takes_ownership=not register_only
    ) as pool:
        attributes.set_attributes(pool, pool_change.attributes or {})
        for name in ("cooldown_seconds", "description", "dns_pattern", "annotations", "labels"):
            value = getattr(pool_change, name)
            if value is not None:
                setattr(pool, name, value)
        if pool_change.selectors is not None:
            pool.pod_selector, pool.namespace_selector = pool_change.selectors
        for family, part in sorted((pool_change.families or {}).items()):
            _refuse_repeated(family, part)
            _change_mask_size(pool, family, part.mask_size)
        database.save(pool)
        for family, part in sorted((pool_change.families or {}).items()):
            _change_family(pool, family, part, keep_orphans=pool_change.keep_orphans, author=author)
    return Pool.objects.get(pk=pool_id)


def delete(pool_id: int, *, author: events.Author, version: int | None = None) -> None:
    """Delete a pool; raise PoolInUse with the holders if blocks are in use."""
    with _locked_pool(pool_id, author=author, version=version) as pool:
        refuse_in_use(Block.objects.filter(pool=pool), f"The pool {pool}", errors.PoolInUse)
        # The triggers of the CIDRs delete the window, and refuse if blocks were allocated meanwhile.
        cidrs = PoolCIDR.objects.filter(pool=pool)
        _map_integrity_error(
            cidrs.delete, {"cidr_in_use": errors.PoolInUse, "block_in_use": errors.PoolInUse}
        )
        pool.delete()


def add_cidr(
    pool_id: int,
    entry: CidrEntry,
    *,
    author: events.Author,
    attribute_values: Mapping[str, Any] | None = None,
) -> PoolCIDR:
    """Add a CIDR at the end of the pool's list; its family must have a mask size.

    If the register writes the cluster's object, the CIDR is a pending addition until the object has it.
    """
    with _locked_pool(pool_id, author=author) as pool:
        added = _add_cidr(pool, entry)
        if attribute_values:
            attributes.set_attributes(added, attribute_values)
            added.save(update_fields=ATTRIBUTES)
        _await_addition(added, author)
    return added  # mypy: a context manager may swallow


def change_cidr(
    pool_cidr_id: int, attribute_values: Mapping[str, Any], *, author: events.Author
) -> PoolCIDR:
    """Set tags, owner and custom fields of a CIDR. Raises NotFound, InvalidInput."""
    with _locked_pool(_get_cidr(pool_cidr_id).pool_id, author=author, takes_ownership=False):
        cidr = _get_cidr(pool_cidr_id)
        attributes.set_attributes(cidr, attribute_values)
        cidr.save(update_fields=ATTRIBUTES)
    return cidr


def remove_cidr(pool_cidr_id: int, *, author: events.Author) -> PoolCIDR | None:
    """Remove an unused CIDR from its pool; raise CIDRInUse with the holders otherwise.

    If the cluster's object still has the CIDR, it stays as a pending removal and is returned.
    """
    cidr = _get_cidr(pool_cidr_id)
    with _locked_pool(cidr.pool_id, author=author):
        if not _await_removal(cidr):
            _delete_cidr(cidr)
    return PoolCIDR.objects.filter(pk=pool_cidr_id).first()


def complete_removal(pool_cidr_id: int, *, author: events.Author) -> None:
    """Delete a CIDR after the cluster has applied its removal; with blocks in use it becomes an orphan."""
    cidr = _get_cidr(pool_cidr_id)
    with _locked_pool(cidr.pool_id, author=author):
        _drop(cidr, keep_orphans=True)


def set_pending(pool_cidr_id: int, pending: str, *, author: events.Author) -> None:
    """Set the pending change of a CIDR; "" ends it and resumes allocations."""
    cidr = _get_cidr(pool_cidr_id)
    with _locked_pool(cidr.pool_id, author=author):
        if pending:
            orphans.suspend_allocation(cidr, Pending(pending))
        else:
            orphans.resume_allocation(cidr)


def cancel_removal(pool_cidr_id: int, *, author: events.Author) -> None:
    """Cancel a removal that the cluster has not applied yet."""
    cidr = _get_cidr(pool_cidr_id)
    with _locked_pool(cidr.pool_id, author=author):
        _keep_cidr(cidr, author)


def reserve(
    pool_cidr_id: int, span: addresses.AddressRange, *, author: events.Author, reason: str = ""
) -> ReservedRange:
    """Reserve a range: blocks in it are not allocated any more; blocks in use stay with their holders."""
    cidr = _get_cidr(pool_cidr_id)
    with _locked_pool(cidr.pool_id, author=author):
        reserved = _reserve(cidr, span, reason)
    return reserved  # noqa: RET504  # mypy: a context manager may swallow


def unreserve(range_id: int, *, author: events.Author) -> None:
    """Remove a reserved range and make its blocks available again."""
    reserved = ReservedRange.objects.select_related("pool_cidr__pool").filter(pk=range_id).first()
    if reserved is None:
        raise errors.NotFound("There is no such reserved range.")
    with _locked_pool(reserved.pool_id, author=author):
        _unreserve(reserved)


def families(pool: Pool) -> dict[int, Family]:
    """Return a pool's families (4, 6) with their CIDRs and reserved ranges, as a PoolSpec has them.

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


# --- blocks in use --------------------------------------------------------------------------------


def blocks_in_use(cidr: PoolCIDR) -> Any:
    """Return the held and cooling blocks of a CIDR as a queryset in address order."""
    return _live(orphans.blocks_of(cidr)).order_by("cidr")


def _live(rows: Any) -> Any:
    cooled = Q(state=BlockState.COOLING, available_from__lte=Now())
    return rows.filter(state__in=LIVE).exclude(cooled)


def refuse_in_use(rows: Any, subject: str, error: type[errors.Conflict]) -> None:
    """Raise the error with the count and the first holders if some of these blocks are in use."""
    count = _live(rows).count()
    if not count:
        return
    first = [
        f"{block.holder_kind} {block.holder_id} ({block.cidr}, {block.state})"
        for block in _live(rows).order_by("cidr")[:FIRST_HOLDERS]
    ]
    suffix = f" and {count - len(first)} more" if count > len(first) else ""
    raise error(
        f"{subject} has {count} held or cooling block{'s' * (count > 1)}: {', '.join(first)}{suffix}."
    )


# --- parts of a change, under the lock ------------------------------------------------------------


@contextmanager
def _locked_pool(
    pool_id: int,
    *,
    author: events.Author,
    version: int | None = None,
    takes_ownership: bool = True,
) -> Iterator[Pool]:
    with events.recorded_by(author):
        for row in Pool.objects.filter(pk=pool_id).values_list(
            "cluster_id", "space__name", "category"
        ):
            _lock_plan_and_cluster(*row, author)
        window.lock(pool_id)
        pool = (
            Pool.objects.select_related("cluster")
            .select_for_update(of=("self",))
            .filter(pk=pool_id)
            .first()
        )
        if pool is None:
            raise errors.NotFound("There is no such pool.")
        if version is not None and pool.version != version:
            raise errors.VersionMismatch
        yield pool
        follows = pool.follows_cluster and not (
            takes_ownership and _is_register_owned(pool, author)
        )
        Pool.objects.filter(pk=pool_id).update(version=F("version") + 1, follows_cluster=follows)


def _lock_plan_and_cluster(
    cluster_id: int, space: str, category: str, author: events.Author
) -> None:
    """Keep the next free prefix from being taken meanwhile, and make the cluster due for a sync run.

    Called before the pool's lock is taken, because changes of several pools lock the cluster's row first. A sync
    run, which has locked its cluster by now, and isolated VM networks, which the fleet's plan leaves out, take no part.
    """
    if author.source == _CLUSTER:
        return
    if space == AddressSpace.OWN:
        containers.lock_plan(shared=True)
    if category == Category.POD:
        leases.nudge(cluster_id, patient=True)


def _is_register_owned(pool: Pool, author: events.Author) -> bool:
    """Return True if the change makes the register the owner of the pool, which followed its cluster."""
    if author.source == _CLUSTER:
        return False
    return cluster_cidrs.is_written_to_cluster(pool)


@contextmanager
def _error_path(path: str) -> Iterator[None]:
    """Prefix the fields of InvalidInput with the path of the part."""
    try:
        yield
    except errors.InvalidInput as error:
        raise error.under(path) from error


def _get_cidr(pool_cidr_id: int) -> PoolCIDR:
    cidr = PoolCIDR.objects.select_related("pool__cluster").filter(pk=pool_cidr_id).first()
    if cidr is None:
        raise errors.NotFound("There is no such CIDR.")
    return cidr


def _change_mask_size(pool: Pool, family: int, mask_size: int) -> None:
    name = f"mask_size_v{family}"
    if getattr(pool, name) is None:
        setattr(pool, name, mask_size)
    elif getattr(pool, name) != mask_size:
        raise errors.ImmutableInUse(
            f"The IPv{family} mask size of a pool never changes (it is {getattr(pool, name)})."
        )


def _refuse_repeated(family: int, part: Family) -> None:
    seen_cidrs: set[addresses.Network] = set()
    for index, entry in enumerate(part.cidrs):
        if entry.cidr in seen_cidrs:
            raise errors.CIDROverlap(f"ipv{family}.cidrs.{index}: {entry.cidr} is there twice.")
        seen_cidrs.add(entry.cidr)
        if len(set(entry.reserved)) < len(entry.reserved):
            raise errors.RangesOverlap(f"{entry.cidr} has the same reserved range twice.")


def _change_family(
    pool: Pool, family: int, part: Family, *, keep_orphans: bool, author: events.Author
) -> None:
    present = _cidr_rows(pool, family)
    desired_cidrs = [entry.cidr for entry in part.cidrs]
    if keep_orphans:
        lost = [row for cidr, row in present.items() if cidr not in desired_cidrs]
        for remainder in orphans.replace_lost_cidrs(pool, lost, desired_cidrs):
            if not blocks_in_use(remainder).exists():
                _delete_cidr(remainder)
        present = _cidr_rows(pool, family)
    for cidr in present.keys() - {entry.cidr for entry in part.cidrs}:
        _drop(present[cidr], keep_orphans=keep_orphans)
    for index, entry in enumerate(part.cidrs):
        with _error_path(f"ipv{family}.cidrs.{index}"):
            pool_cidr = present.get(entry.cidr)
            if pool_cidr is None:
                _await_addition(_add_cidr(pool, entry), author)
            else:
                _keep_cidr(pool_cidr, author)
                _change_ranges(pool_cidr, entry)
    _reorder_cidrs(pool, family, part)


def _cidr_rows(pool: Pool, family: int) -> dict[addresses.Network, PoolCIDR]:
    rows = PoolCIDR.objects.select_related("pool__cluster").filter(pool=pool, cidr__family=family)
    return {row.cidr: row for row in rows}


def _await_addition(cidr: PoolCIDR, author: events.Author) -> None:
    """Make a CIDR a pending addition if the cluster's object lacks it.

    A pool without an object needs no pending addition: the next sync run creates the object.
    """
    if (
        author.source == _CLUSTER
        or cidr.pending
        or not cluster_cidrs.is_written_to_cluster(cidr.pool)
    ):
        return
    if cluster_cidrs.cluster_has_cidr(cidr.pool, cidr.cidr) is False:
        orphans.suspend_allocation(cidr, Pending.ADDITION)


def _keep_cidr(cidr: PoolCIDR, author: events.Author) -> None:
    """Keep a CIDR that has a row already, also an orphan or a pending removal."""
    waits = author.source != _CLUSTER and cluster_cidrs.is_written_to_cluster(cidr.pool)
    if not (
        waits and cidr.closed and cluster_cidrs.cluster_has_cidr(cidr.pool, cidr.cidr) is False
    ):
        orphans.resume_allocation(cidr)
    elif cidr.pending != Pending.ADDITION:
        orphans.suspend_allocation(cidr, Pending.ADDITION)


def _drop(cidr: PoolCIDR, *, keep_orphans: bool) -> None:
    if cidr.orphaned_at is not None:
        return  # an orphan is deleted when none of its blocks is in use any more
    if keep_orphans:
        orphans.withhold_blocks(cidr)  # first, so that no block of it is allocated meanwhile
        if blocks_in_use(cidr).exists():
            orphans.mark_orphaned(cidr)
            return
    elif _await_removal(cidr):
        return
    _delete_cidr(cidr)


def _reorder_cidrs(pool: Pool, family: int, part: Family) -> None:
    """Store the order of the spec's CIDRs, in which blocks are allocated from them."""
    rows_by_cidr = {
        row.cidr: row for row in registered_cidrs([pool.pk]).filter(cidr__family=family)
    }
    positions = sorted(row.position for row in rows_by_cidr.values())
    for position, entry in zip(positions, part.cidrs, strict=True):
        if rows_by_cidr[entry.cidr].position != position:
            PoolCIDR.objects.filter(pk=rows_by_cidr[entry.cidr].pk).update(position=position)


def _change_ranges(cidr: PoolCIDR, entry: CidrEntry) -> None:
    desired_ranges = set(entry.reserved)
    for reserved in cidr.reserved_ranges.select_related("pool_cidr__pool"):
        span = addresses.AddressRange(reserved.first, reserved.last)
        if span in desired_ranges:
            desired_ranges.remove(span)
        else:
            _unreserve(reserved)
    for span in sorted(desired_ranges):
        _reserve(cidr, span, "")


def _add_cidr(pool: Pool, entry: CidrEntry) -> PoolCIDR:
    if pool.mask_size(entry.cidr.version) is None:
        message = f"The pool has no IPv{entry.cidr.version} blocks."
        raise errors.InvalidInput.for_field("cidr", "family", message, entry.cidr)
    _require_in_prefix(pool, entry.cidr)
    other = _find_overlap(pool, entry.cidr)
    if other is not None:
        if other.pool_id != pool.pk or other.cidr != entry.cidr or not other.closed:
            suffix = ", which its cluster still has" if other.pending == Pending.REMOVAL else ""
            message = f"{entry.cidr} overlaps {other} of the pool {other.pool}{suffix}."
            raise errors.CIDROverlap(message)
        if other.pending != Pending.ADDITION:
            orphans.resume_allocation(other)
        _change_ranges(other, entry)
        return other
    cluster_cidrs.refuse_observed_elsewhere(pool, entry.cidr)
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
        _reserve(cidr, span, "")
    return cidr


def _require_in_prefix(pool: Pool, cidr: addresses.Network) -> None:
    """Raise InvalidInput if a node or instance pool's CIDR is outside its cluster's prefix."""
    prefix = _lock_prefix(pool)
    if prefix is None:
        return
    if not isinstance(cidr, IPv6Network) or not cidr.subnet_of(prefix):
        message = f"{cidr} is not in the prefix {prefix} of the cluster {pool.cluster}"
        raise errors.InvalidInput.for_field("cidr", "outside_cluster_prefix", message, cidr)


def _lock_prefix(pool: Pool) -> IPv6Network | None:
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


def _await_removal(cidr: PoolCIDR) -> bool:
    """Make a CIDR a pending removal if the cluster's object still has it; return True then."""
    if cidr.orphaned_at is not None or not cluster_cidrs.cluster_has_cidr(cidr.pool, cidr.cidr):
        return False
    refuse_in_use(blocks_in_use(cidr), f"{cidr}", errors.CIDRInUse)
    orphans.suspend_allocation(cidr, Pending.REMOVAL)
    return True


def _delete_cidr(cidr: PoolCIDR) -> None:
    refuse_in_use(blocks_in_use(cidr), f"{cidr}", errors.CIDRInUse)
    _map_integrity_error(
        cidr.delete, {"cidr_in_use": errors.CIDRInUse, "block_in_use": errors.CIDRInUse}
    )


def _reserve(cidr: PoolCIDR, span: addresses.AddressRange, reason: str) -> ReservedRange:
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


def _unreserve(reserved: ReservedRange) -> None:
    cidr = reserved.pool_cidr
    grid = window.layout(cidr)
    freed = _touched_span(cidr, addresses.AddressRange(reserved.first, reserved.last))
    reserved.delete()
    if cidr.closed:
        return  # all blocks of the CIDR stay withheld
    window.end_withholding(cidr, freed, still_withheld=grid.withheld(window.reserved_ranges(cidr)))


def _map_integrity_error(
    operation: Callable[[], Any], names: Mapping[str, type[errors.Conflict]]
) -> None:
    try:
        operation()
    except IntegrityError as error:
        error_class = names.get(database.constraint(error))
        if error_class is None:
            raise
        raise error_class(str(error.__cause__).partition("\n")[0]) from error
