"""Create, change and delete pools, their CIDRs and reserved ranges.

Every change runs under the pool's allocation lock and increments its version. A change never frees
blocks in use: a reserved range only stops new allocations, and a CIDR with held or cooling blocks
cannot be removed.
"""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any

from django.db.models import F

from pools.clusters.reconcile import leases
from pools.core import addresses, errors
from pools.core.cilium.podippool import CidrEntry, Family
from pools.models import ATTRIBUTES, AddressSpace, Block, Cluster, Pool, PoolCIDR, ReservedRange
from pools.models.pools import DEFAULT_COOLDOWN, Category, Pending
from pools.platform import advisory_locks, attributes, database, events
from pools.register import orphans, pool_cidrs
from pools.register.allocator import window


@dataclass(frozen=True)
class PoolChange:
    """The fields of a pool to change; a field that is None keeps its value.

    A family replaces the whole family: CIDRs and ranges that it does not contain are removed. With
    `keep_orphans`, a removed CIDR in use becomes an orphan instead of raising CIDRInUse, because the
    cluster has removed it already. `selectors` are the pod selector and the namespace selector.
    No cluster has the attributes or the DNS pattern: a change of these alone leaves a pool following its
    cluster.
    """

    families: Mapping[int, Family] | None = None
    cooldown_seconds: int | None = None
    description: str | None = None
    dns_pattern: str | None = None
    annotations: Mapping[str, str] | None = None
    labels: Mapping[str, str] | None = None
    selectors: tuple[Mapping[str, Any] | None, Mapping[str, Any] | None] | None = None
    keep_orphans: bool = False
    tags: Sequence[str] | None = None
    owner: str | None = None
    custom_fields: Mapping[str, Any] | None = None


_COLUMNS = {"cooldown_seconds", "description", "dns_pattern", "annotations", "labels", *ATTRIBUTES}


def create(
    *,
    cluster: Cluster,
    category: str,
    families: Mapping[int, Family],
    author: events.Author,
    cooldown_seconds: int | None = None,
    space: AddressSpace | None = None,
    **columns: Any,
) -> Pool:
    """Create a pool with its CIDRs and ranges; the keys of `families` are 4 and 6, `columns` are others of its row.

    If `cooldown_seconds` is None, the pool gets the default of its category; without `space` it is in the cluster's
    own one. Raises AlreadyExists, CIDROverlap, RangesOverlap or InvalidInput.
    """
    if not families:
        raise errors.InvalidInput.for_field(
            "ipv4", "family_required", "A pool needs an IPv4 or IPv6 part."
        )
    space = space or AddressSpace.objects.get(cluster=cluster, name=AddressSpace.OWN)
    if cooldown_seconds is None:
        cooldown_seconds = DEFAULT_COOLDOWN[Category(category)]
    pool = Pool(
        cluster=cluster,
        space=space,
        category=category,
        cooldown_seconds=cooldown_seconds,
    )
    for family, part in families.items():
        setattr(pool, f"mask_size_v{family}", part.mask_size)
    with events.recorded_by(author):
        _lock_plan_and_cluster(cluster.pk, space.name, category, author)
        attributes.assign(pool, columns)
        # Before the pool's name, in the order of clusters.divide_prefix.
        pool_cidrs.lock_prefix(pool)
        database.save(pool)
        window.lock(pool.pk)
        for family, part in sorted(families.items()):
            for index, entry in enumerate(part.cidrs):
                with pool_cidrs.error_path(f"ipv{family}.cidrs.{index}"):
                    pool_cidrs.add(pool, entry)
    return pool


def change(
    pool_id: int,
    pool_change: PoolChange,
    *,
    author: events.Author,
    version: database.Version = None,
) -> Pool:
    """Apply a change to a pool, as a whole or not at all.

    Raises VersionMismatch, ImmutableInUse (mask size), CIDRInUse, CIDROverlap, RangesOverlap or
    InvalidInput.
    """
    changes = {
        name: value
        for name, value in vars(pool_change).items()
        if value is not getattr(PoolChange, name)
    }
    takes_ownership = not changes.keys() <= {"dns_pattern", *ATTRIBUTES}
    with _locked_pool(
        pool_id, changes, author=author, version=version, takes_ownership=takes_ownership
    ) as pool:
        attributes.assign(pool, {name: changes[name] for name in changes.keys() & _COLUMNS})
        if pool_change.selectors is not None:
            pool.pod_selector, pool.namespace_selector = pool_change.selectors
        for family, part in sorted((pool_change.families or {}).items()):
            _refuse_repeated(family, part)
            _change_mask_size(pool, family, part.mask_size)
        database.save(pool)
        for family, part in sorted((pool_change.families or {}).items()):
            pool_cidrs.change_family(
                pool, family, part, keep_orphans=pool_change.keep_orphans, author=author
            )
    return Pool.objects.get(pk=pool_id)


def delete(pool_id: int, *, author: events.Author, version: database.Version = None) -> None:
    """Delete a pool; raise PoolInUse with the holders if blocks are in use."""
    with _locked_pool(pool_id, author=author, version=version) as pool:
        pool_cidrs.refuse_in_use(
            Block.objects.filter(pool=pool), f"The pool {pool}", errors.PoolInUse
        )
        # The triggers of the CIDRs delete the window, and refuse if blocks were allocated meanwhile.
        cidrs = PoolCIDR.objects.filter(pool=pool)
        pool_cidrs.map_integrity_error(
            cidrs.delete, {"cidr_in_use": errors.PoolInUse, "block_in_use": errors.PoolInUse}
        )
        pool.delete()


def add_cidr(
    pool_id: int,
    entry: CidrEntry,
    *,
    author: events.Author,
    values: Mapping[str, Any] | None = None,
) -> PoolCIDR:
    """Add a CIDR at the end of the pool's list; its family must have a mask size.

    `values` are its attributes. If the register writes the cluster's object, the CIDR is a pending addition until the
    object has it.
    """
    with _locked_pool(pool_id, values or {}, author=author) as pool:
        added = pool_cidrs.add(pool, entry)
        if values:
            attributes.assign(added, values)
            added.save(update_fields=ATTRIBUTES)
        pool_cidrs.await_addition(added, author)
    return added  # mypy: a context manager may swallow


def change_cidr(
    pool_cidr_id: int,
    values: Mapping[str, Any],
    *,
    author: events.Author,
    version: database.Version = None,
) -> PoolCIDR:
    """Set tags, owner and custom fields of a CIDR. Raises NotFound, VersionMismatch, InvalidInput."""
    pool_id = _get_cidr(pool_cidr_id).pool_id
    with _locked_pool(pool_id, values, author=author, takes_ownership=False):
        cidr = _get_cidr(pool_cidr_id)
        database.require_version(cidr, version)
        attributes.assign(cidr, values)
        cidr.save(update_fields=ATTRIBUTES)
    return cidr


def remove_cidr(pool_cidr_id: int, *, author: events.Author) -> PoolCIDR | None:
    """Remove an unused CIDR from its pool; raise CIDRInUse with the holders otherwise.

    If the cluster's object still has the CIDR, it stays as a pending removal and is returned.
    """
    with _locked_cidr(pool_cidr_id, author=author) as cidr:
        if not pool_cidrs.await_removal(cidr):
            pool_cidrs.delete(cidr)
    return PoolCIDR.objects.filter(pk=pool_cidr_id).first()


def complete_removal(pool_cidr_id: int, *, author: events.Author) -> bool:
    """Delete a CIDR after the cluster has applied its removal; with blocks in use it becomes an orphan.

    Returns False and changes nothing if somebody has cancelled the removal meanwhile.
    """
    with _locked_cidr(pool_cidr_id, author=author) as cidr:
        is_removed = cidr.pending == Pending.REMOVAL
        if is_removed:
            pool_cidrs.drop(cidr, keep_orphans=True)
    return is_removed


def set_pending(pool_cidr_id: int, pending: str, *, author: events.Author) -> None:
    """Make a CIDR a pending change, or with "" end its pending addition and resume allocations.

    A CIDR that somebody has changed since it was compared with its cluster's object stays as it is.
    """
    with _locked_cidr(pool_cidr_id, author=author) as cidr:
        if pending and not cidr.closed:
            orphans.suspend_allocation(cidr, Pending(pending))
        elif not pending and cidr.pending == Pending.ADDITION:
            orphans.resume_allocation(cidr)


def cancel_removal(pool_cidr_id: int, *, author: events.Author) -> None:
    """Cancel a removal that the cluster has not applied yet."""
    with _locked_cidr(pool_cidr_id, author=author) as cidr:
        pool_cidrs.keep(cidr, author)


def reserve(
    pool_cidr_id: int, span: addresses.AddressRange, *, author: events.Author, reason: str = ""
) -> ReservedRange:
    """Reserve a range: blocks in it are not allocated any more; blocks in use stay with their holders."""
    with _locked_cidr(pool_cidr_id, author=author) as cidr:
        reserved = pool_cidrs.reserve(cidr, span, reason)
    return reserved  # noqa: RET504  # mypy: a context manager may swallow


def unreserve(range_id: int, *, author: events.Author) -> None:
    """Remove a reserved range and make its blocks available again."""
    pool_id = _get_range(range_id).pool_id
    with _locked_pool(pool_id, author=author):
        pool_cidrs.unreserve(_get_range(range_id))


# --- parts of a change, under the lock ------------------------------------------------------------


@contextmanager
def _locked_pool(
    pool_id: int,
    values: Mapping[str, Any] = MappingProxyType({}),
    *,
    author: events.Author,
    version: database.Version = None,
    takes_ownership: bool = True,
) -> Iterator[Pool]:
    """Lock a pool for a change; `values` are those of the change that may have custom fields."""
    with events.recorded_by(author):
        for row in Pool.objects.filter(pk=pool_id).values_list(
            "cluster_id", "space__name", "category"
        ):
            _lock_plan_and_cluster(*row, author)
        attributes.lock_definitions(values)
        window.lock(pool_id)
        pool = (
            Pool.objects.select_related("cluster")
            .select_for_update(of=("self",))
            .filter(pk=pool_id)
            .first()
        )
        if pool is None:
            raise errors.NotFound("There is no such pool.")
        database.require_version(pool, version)
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
    if author.source == pool_cidrs.CLUSTER:
        return
    if space == AddressSpace.OWN:
        advisory_locks.lock_plan(shared=True)
    if category == Category.POD:
        leases.nudge(cluster_id, patient=True)


def _is_register_owned(pool: Pool, author: events.Author) -> bool:
    """Return True if the change makes the register the owner of the pool, which followed its cluster."""
    if author.source == pool_cidrs.CLUSTER:
        return False
    return orphans.is_written_to_cluster(pool)


@contextmanager
def _locked_cidr(pool_cidr_id: int, *, author: events.Author) -> Iterator[PoolCIDR]:
    """Lock a CIDR's pool for a change, and read the CIDR after that: others may have changed or removed it."""
    pool_id = _get_cidr(pool_cidr_id).pool_id
    with _locked_pool(pool_id, author=author):
        yield _get_cidr(pool_cidr_id)


def _get_range(range_id: int) -> ReservedRange:
    reserved = ReservedRange.objects.select_related("pool_cidr__pool").filter(pk=range_id).first()
    if reserved is None:
        raise errors.NotFound("There is no such reserved range.")
    return reserved


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
