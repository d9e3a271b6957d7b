"""Validate changes of CiliumPodIPPools against the register.

Beside it: warnings about CiliumPodIPPools that are valid and probably a mistake.

Cilium accepts what its CRD allows: it orphans the blocks of a CIDR that is removed, and allocates
blocks of overlapping pools twice. Only the changes of a request are validated, so that an object
that is already invalid can be labelled, repaired and deleted.
"""

from collections.abc import Iterator
from dataclasses import dataclass

from pools.core import addresses, blocks, errors, object_reader
from pools.core.cilium import conversion, podippool
from pools.models import AddressSpace
from pools.register import manifests, orphans
from pools.webhooks import register, reviews
from pools.webhooks.reviews import Review, ReviewResult

FEW_BLOCKS = 8  # warn below; each node needs a block
# The limit of the operator's IPv6 CIDR sets (pools/core/cilium/preflight.py).
MOST_IPV6_BITS = 16

Warnings = Iterator[tuple[str, str]]  # field, message


def warnings_for(
    pool: podippool.PodIPPool, before: dict[addresses.Network, podippool.CidrEntry]
) -> Warnings:
    """Yield warnings about the entries that are not in `before` (entries by CIDR), or differ."""
    for number, family in sorted(pool.families.items()):
        field = f"spec.ipv{number}"
        changed_entries = [
            (index, entry)
            for index, entry in enumerate(family.cidrs)
            if before.get(entry.cidr) != entry
        ]
        if changed_entries:
            yield from _mask_size_warnings(family, field)
        for index, entry in changed_entries:
            grid = blocks.Layout(
                entry.cidr, family.mask_size, pool.allow_first_ip, pool.allow_last_ip
            )
            yield from _cidr_warnings(entry, grid, f"{field}.cidrs.{index}")


def _mask_size_warnings(family: podippool.Family, field: str) -> Warnings:
    count = sum(1 << (family.mask_size - entry.cidr.prefixlen) for entry in family.cidrs)
    if count < FEW_BLOCKS:
        plural = "s" * (count > 1)
        message = (
            f"only {count} block{plural} of /{family.mask_size}: enough for {count} node{plural}"
        )
        yield f"{field}.maskSize", message


def _cidr_warnings(entry: podippool.CidrEntry, grid: blocks.Layout, field: str) -> Warnings:
    for problem in (*addresses.warnings_for(entry.cidr, field=field), *grid.warnings(field=field)):
        yield problem.field, problem.message
    if entry.cidr.version == 6 and grid.mask_size - entry.cidr.prefixlen > MOST_IPV6_BITS:
        longest = entry.cidr.prefixlen + MOST_IPV6_BITS
        yield field, f"Cilium's operator refuses a mask size above {longest} in {entry.cidr}"
    if entry.reserved and not grid.allocatable(entry.reserved):
        yield field, f"all of {entry.cidr} is reserved: no block of it can be allocated"
        return
    for span in entry.reserved:
        if partial_blocks := _partly_reserved_blocks(grid, span):
            message = (
                f"{span} touches {' and '.join(partial_blocks)} in part: whole blocks are withheld"
            )
            yield field, message


def _partly_reserved_blocks(grid: blocks.Layout, span: addresses.AddressRange) -> list[str]:
    """Return the blocks that the range covers only in part: its first or last block, or both."""
    touched = grid.span_touching(span)
    if touched is None:
        return []
    end_blocks = {index: grid.block_at(index) for index in (touched.first, touched.last)}
    return [
        str(block)
        for block in end_blocks.values()
        if int(block.network_address) < int(span.first)
        or int(block.broadcast_address) > int(span.last)
    ]


V2ALPHA1 = "v2alpha1"

Entries = dict[addresses.Network, podippool.CidrEntry]


def validate(review: Review, space: AddressSpace) -> ReviewResult:
    """Return the result of one review; `space` is the address space of the cluster. Reads only."""
    result = ReviewResult()
    registered = register.find_pool(space.cluster_id, review.name)
    if registered is not None and not registered.is_of_pods:
        message = f"the register has a {registered.pool.category} pool named {review.name}"
        if review.operation == reviews.CREATE:
            result.refuse(errors.AlreadyExists(message))
        else:
            result.warn(message)
        registered = None
    if review.operation == reviews.DELETE:
        _validate_removal(review, registered, result)
    elif review.old is None or review.old.get("spec") != (review.new or {}).get("spec"):
        _validate_change(review, registered, space, result)
    return result


def _validate_removal(
    review: Review, registered: register.RegisteredPool | None, result: ReviewResult
) -> None:
    if registered is None:
        result.warn(f"the register has no pool {review.name}; nodes may still hold blocks of it")
        return
    for row, _, used in register.find_used_blocks(registered.whole_cidrs):
        message = f"the pool {review.name} is in use: {row.cidr} has {used}"
        result.refuse(errors.PoolInUse(message))


# --- create and update ----------------------------------------------------------------------------


@dataclass(frozen=True)
class _Change:
    """A parsed request; `before` is the old object, None if there is none or it cannot be read."""

    review: Review
    space: AddressSpace
    registered: register.RegisteredPool | None
    pool: podippool.PodIPPool
    before: podippool.PodIPPool | None

    @property
    def is_update(self) -> bool:
        return self.review.operation == reviews.UPDATE


def _validate_change(
    review: Review,
    registered: register.RegisteredPool | None,
    space: AddressSpace,
    result: ReviewResult,
) -> None:
    try:
        pool = _parse_pool(review.new)
    except errors.InvalidInput as error:
        result.refuse(error)
        return
    change = _Change(review, space, registered, pool, _old_pool(review, registered))
    _validate_removed_cidrs(change, result)
    _validate_reserved_ranges(change, result)
    _validate_immutable_fields(change, result)
    _validate_overlaps(change, result)
    _validate_families(change, result)
    for field, message in warnings_for(pool, _entries(change.before)):
        result.warn(message, field)


def _parse_pool(manifest: object_reader.Json | None) -> podippool.PodIPPool:
    """Return the pool of a manifest; its CRD allows a pool without families. Raises InvalidInput."""
    if manifest is None or manifest.get("kind") != podippool.KIND:
        message = f"a {podippool.KIND} is expected"
        raise errors.InvalidInput.for_field("kind", "unsupported_kind", message)
    conversion.check_written_shape(manifest)
    try:
        return podippool.parse_document(manifest, strict=False)[0]
    except errors.InvalidInput as error:
        if [(problem.field, problem.code) for problem in error.problems] != [("spec", "required")]:
            raise
        return podippool.PodIPPool(manifest["metadata"]["name"], {})


def _old_pool(
    review: Review, registered: register.RegisteredPool | None
) -> podippool.PodIPPool | None:
    """Return the old object, else the register's copy if the object cannot be read."""
    if review.operation == reviews.CREATE:
        return None
    try:
        return _parse_pool(review.old)
    except errors.InvalidInput:
        return manifests.to_manifest(registered.pool) if registered else None


def _entries(pool: podippool.PodIPPool | None) -> Entries:
    families = pool.families.values() if pool else ()
    return {entry.cidr: entry for family in families for entry in family.cidrs}


def _validate_removed_cidrs(change: _Change, result: ReviewResult) -> None:
    """Refuse to remove CIDRs with blocks in use; warn if a new object lacks such CIDRs.

    What another CIDR of the object contains is not removed: its blocks stay with their holders.
    """
    before, after = _entries(change.before), _entries(change.pool)
    registered_cidrs = change.registered.cidrs if change.registered else {}
    if change.is_update:
        for cidr in before.keys() - after.keys() - registered_cidrs.keys():
            result.warn(f"the register does not know {cidr}; its blocks may be in use")
        registered_cidrs = {cidr: row for cidr, row in registered_cidrs.items() if cidr in before}
    lost_parts = [
        (row, part)
        for cidr, row in registered_cidrs.items()
        for part in orphans.remainder(
            cidr, [other for other in after if other.version == cidr.version]
        )
    ]
    by_span = {addresses.AddressRange.from_network(part): (row, part) for row, part in lost_parts}
    for _, span, used in register.find_used_blocks(
        [(row, span) for span, (row, _) in by_span.items()]
    ):
        part = by_span[span][1] if span else None
        if change.is_update:
            result.refuse(errors.CIDRInUse(f"{part} cannot be removed: it has {used}"))
        else:
            result.warn(f"{part} stays an orphan of this pool because it has {used}")


def _validate_reserved_ranges(change: _Change, result: ReviewResult) -> None:
    """Warn of new reserved ranges with blocks in use, and of ranges that the version cannot hold."""
    if change.registered is None:
        return
    before, registered_cidrs = _entries(change.before), change.registered.cidrs
    new_ranges = [
        (registered_cidrs[cidr], span)
        for cidr, entry in _entries(change.pool).items()
        if cidr in registered_cidrs
        for span in entry.reserved
        if cidr not in before or span not in before[cidr].reserved
    ]
    for _, span, used in register.find_used_blocks(new_ranges):
        result.warn(f"{span} is reserved while in use, until it is released: {used}")
    if change.registered.ranges and change.review.version == V2ALPHA1:
        result.warn(
            f"v2alpha1 cannot hold the {change.registered.ranges} reserved ranges of this pool:"
            " use v2 to keep them"
        )


def _validate_immutable_fields(change: _Change, result: ReviewResult) -> None:
    """Refuse changes of mask sizes, allowFirstIP and allowLastIP.

    A new object of the same name may differ from the old one, unless blocks are in use.
    """
    before = change.before
    if not change.is_update and change.registered:
        before = manifests.to_manifest(change.registered.pool)
    if before is None:
        return
    changes = list(_immutable_changes(before, change.pool))
    if not changes:
        return
    if change.is_update or (
        change.registered and register.find_used_blocks(change.registered.whole_cidrs)
    ):
        problems = [
            errors.FieldProblem(field, errors.ImmutableInUse.code, text) for field, text in changes
        ]
        result.refuse(errors.ImmutableInUse(problems=problems))
    else:
        for field, text in changes:
            result.warn(f"differs from the register: {text}", field)


def _immutable_changes(
    before: podippool.PodIPPool, after: podippool.PodIPPool
) -> Iterator[tuple[str, str]]:
    for number in sorted(before.families.keys() & after.families.keys()):
        old, new = before.families[number].mask_size, after.families[number].mask_size
        if old != new:
            yield (
                f"spec.ipv{number}.maskSize",
                f"cannot change IPv{number} mask size {old} to {new}",
            )
    for name, old_flag, new_flag in (
        ("allowFirstIP", before.allow_first_ip, after.allow_first_ip),
        ("allowLastIP", before.allow_last_ip, after.allow_last_ip),
    ):
        if old_flag != new_flag:
            yield f"spec.{name}", f"cannot change {name} of a pool"


def _validate_overlaps(change: _Change, result: ReviewResult) -> None:
    """Refuse overlaps of CIDRs that this request adds; warn of overlaps of other CIDRs."""
    before, after = _entries(change.before), list(_entries(change.pool))
    registered_pool = change.registered.pool if change.registered else None
    # New CIDRs come first: the number of reported overlaps is limited.
    after.sort(key=lambda cidr: cidr in before)
    name = change.review.name
    for overlap in register.find_overlaps(
        after, space=change.space, name=name, pool=registered_pool
    ):
        if overlap.requested in before:
            result.warn(str(overlap))
        else:
            result.refuse(errors.CIDROverlap(str(overlap)))
    added = [cidr for cidr in after if cidr not in before]
    for overlap in register.find_overlaps_elsewhere(added, space_id=change.space.pk):
        result.warn(str(overlap))


def _validate_families(change: _Change, result: ReviewResult) -> None:
    families = change.pool.families.keys()
    if not families:
        result.warn("neither ipv4 nor ipv6: no pod gets an address of this pool", "spec")
        return
    if change.before and change.before.families.keys() <= families:
        return
    other_families = register.other_pool_families(change.space.cluster_id, change.review.name)
    for family in sorted(other_families - families):
        result.warn(f"no ipv{family}, which other pools of the cluster have", "spec")
