"""Preview a change of a pool: apply it in a transaction and roll it back."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace

from django.db import transaction
from django.db.models import QuerySet

from pools.core import addresses, blocks
from pools.core.cilium.podippool import Family
from pools.models import Block, Pool, PoolCIDR
from pools.platform import database, events
from pools.register import orphans, pool_cidrs, pools, usage
from pools.register.allocator import window

FIRST_HOLDERS = 12


@dataclass(frozen=True)
class Preview:
    """The effect of a change; usages are by family (4, 6).

    `affected` is the number of blocks in use that would be withheld, `holders` the first of them.
    """

    before: Mapping[int, usage.Usage]
    after: Mapping[int, usage.Usage]
    removed: tuple[addresses.Network, ...]
    added: tuple[addresses.Network, ...]
    reserved: tuple[addresses.AddressRange, ...]
    given_back: tuple[addresses.AddressRange, ...]
    affected: int
    holders: tuple[Block, ...]

    @property
    def withholds(self) -> bool:
        """True if the change removes or withholds addresses, so that it needs a confirmation."""
        return bool(self.removed or self.reserved)

    @property
    def lines(self) -> list[tuple[int, usage.Usage, usage.Usage]]:
        """Rows (family, usage before, usage after)."""
        none = usage.Usage(0)
        return [
            (family, self.before.get(family, none), after)
            for family, after in sorted(self.after.items())
        ]


def preview_change(
    pool: Pool, change: pools.PoolChange, *, author: events.Author, version: database.Version = None
) -> Preview:
    """Return the effect of a change without applying it; raises what `pools.change` raises."""
    before = usage.usage_by_pool([pool])[pool.pk]
    old = pool_cidrs.families(pool)
    new = {**old, **(change.families or {})}
    old_cidrs, new_cidrs = _cidrs(old), _cidrs(new)
    old_ranges, new_ranges = _ranges(old), _ranges(new)
    reserved = _difference(new_ranges, old_ranges)
    with transaction.atomic():
        affected, holders = _affected_blocks(pool, reserved)
        pools.change(pool.pk, change, author=author, version=version)
        changed = Pool.objects.get(pk=pool.pk)
        after = usage.usage_by_pool([changed])[pool.pk]
        transaction.set_rollback(True)
    return Preview(
        before=before,
        after=after,
        removed=tuple(_removed_parts(old_cidrs, new_cidrs)),
        added=tuple(sorted(new_cidrs - old_cidrs, key=str)),
        reserved=reserved,
        given_back=_difference(old_ranges, new_ranges),
        affected=affected,
        holders=holders,
    )


def _removed_parts(
    old_cidrs: set[addresses.Network], new_cidrs: set[addresses.Network]
) -> Iterator[addresses.Network]:
    """Yield the parts of the old CIDRs that no new one contains: the blocks of the others stay."""
    for cidr in sorted(old_cidrs - new_cidrs, key=str):
        of_family = [other for other in new_cidrs if other.version == cidr.version]
        yield from orphans.remainder(cidr, of_family)


def _difference(
    ranges: set[addresses.AddressRange], other_ranges: set[addresses.AddressRange]
) -> tuple[addresses.AddressRange, ...]:
    """Return the parts of the ranges that no other range contains, in order; a longer range adds its end."""
    holes = {
        family: [
            _span(address_range) for address_range in other_ranges if address_range.family == family
        ]
        for family in (4, 6)
    }
    return tuple(
        addresses.AddressRange(
            _address(part.first, address_range), _address(part.last, address_range)
        )
        for address_range in sorted(
            ranges, key=lambda address_range: (address_range.family, int(address_range.first))
        )
        for part in blocks.subtract([_span(address_range)], holes[address_range.family])
    )


def _span(address_range: addresses.AddressRange) -> blocks.Span:
    return blocks.Span(int(address_range.first), int(address_range.last))


def _address(number: int, address_range: addresses.AddressRange) -> addresses.Address:
    return type(address_range.first)(number)


def _cidrs(families: Mapping[int, Family]) -> set[addresses.Network]:
    return {entry.cidr for family in families.values() for entry in family.cidrs}


def _ranges(families: Mapping[int, Family]) -> set[addresses.AddressRange]:
    return {
        span for family in families.values() for entry in family.cidrs for span in entry.reserved
    }


def _affected_blocks(
    pool: Pool, reserved: tuple[addresses.AddressRange, ...]
) -> tuple[int, tuple[Block, ...]]:
    """Return the number of blocks in use that the ranges touch, and the first of them."""
    count, first = 0, list[Block]()
    for cidr in PoolCIDR.objects.filter(pool=pool).select_related("pool"):
        for rows in _touched_blocks(cidr, reserved):
            count += rows.count()
            first += rows[: FIRST_HOLDERS - len(first)]
    return count, tuple(first)


def _touched_blocks(
    cidr: PoolCIDR, reserved: tuple[addresses.AddressRange, ...]
) -> Iterator[QuerySet[Block]]:
    grid = window.layout(cidr)
    for span in grid.withheld(reserved):
        yield pool_cidrs.blocks_in_use(cidr).filter(
            cidr__gte=str(grid.block_at(span.first)), cidr__lte=str(grid.block_at(span.last))
        )


def reservation_change(
    pool: Pool, cidr: PoolCIDR, span: addresses.AddressRange
) -> pools.PoolChange:
    """Return the change that reserves one more range in a CIDR of the pool."""
    old = pool_cidrs.families(pool)[span.family]
    entries = (
        replace(entry, reserved=(*entry.reserved, span)) if entry.cidr == cidr.cidr else entry
        for entry in old.cidrs
    )
    return pools.PoolChange(families={span.family: replace(old, cidrs=tuple(entries))})
