"""Host-sized blocks as others report them in use: in use is in use, whatever the pool thinks of it.

For VM networks, whose addresses are given by entries, claims and OVN-Kubernetes rather than by this
allocator. Everything here stands in a transaction of the caller.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from ipaddress import IPv4Address, IPv6Address

from pools.core import blocks
from pools.core.index_set import IndexSet
from pools.models import Pool, PoolCIDR
from pools.models.blocks import BlockState
from pools.platform import database
from pools.register.allocator import window
from pools.sql import statements

Address = IPv4Address | IPv6Address


@dataclass(frozen=True)
class AddressHolder:
    """Who has an address; `uid` is "" where it is not known."""

    kind: str
    id: str
    uid: str = ""

    @property
    def name(self) -> tuple[str, str]:
        return self.kind, self.id


@dataclass(frozen=True)
class Use:
    """Who should have an address now, None for nobody, and who may lose it for that.

    `yields` are the holders of whom it is known that they have it no more, or share it: what anybody
    else holds stays theirs.
    """

    holder: AddressHolder | None
    yields: Collection[tuple[str, str]] = ()


@dataclass(frozen=True)
class _AddressRow:
    id: int
    state: str
    holder: AddressHolder


def settle(pool: Pool, uses: Mapping[Address, Use]) -> None:
    """Bring the blocks of these addresses to what is said; addresses outside the pool are left out.

    Takes the pool's lock. What nobody has any more is released into the pool's cooldown; what
    somebody else holds stays with them.
    """
    if not uses:
        return
    window.lock(pool.pk)
    pool_cidrs = _pool_cidrs(pool)
    located = ((address, _spot(pool_cidrs, address)) for address in uses)
    spots = [(address, spot) for address, spot in located if spot is not None]
    # No statement so long that the web's time-out for statements ends it.
    for first in range(0, len(spots), _BATCH):
        _settle(pool, dict(spots[first : first + _BATCH]), uses)


_BATCH = 10_000  # addresses


def _settle(pool: Pool, spots: Mapping[Address, _Spot], uses: Mapping[Address, Use]) -> None:
    rows = _rows(pool, spots)
    fresh: list[tuple[Address, AddressHolder]] = []
    handovers: list[tuple[int, AddressHolder]] = []
    freed: list[int] = []
    for address in spots:
        use = uses[address]
        row = rows.get(str(address))
        held = row is not None and row.state == BlockState.HELD
        if use.holder is None:
            if row is not None and held and row.holder.name in use.yields:
                freed.append(row.id)
        elif row is None:
            fresh.append((address, use.holder))
        elif not held or _takes_over(row.holder, use):
            handovers.append((row.id, use.holder))
    _insert(pool, spots, fresh)
    _give(handovers)
    window.release(freed)


def _takes_over(now: AddressHolder, use: Use) -> bool:
    new_holder = use.holder
    if new_holder is None:
        return False
    if now.name == new_holder.name:
        return new_holder.uid not in {"", now.uid}
    return now.name in use.yields


@dataclass(frozen=True)
class _SyncedCIDR:
    """One CIDR of the pool; `withheld` are the blocks that are not handed out."""

    id: int
    layout: blocks.Layout
    withheld: IndexSet

    def index_of(self, address: Address) -> int | None:
        if address.version != self.layout.cidr.version or address not in self.layout.cidr:
            return None
        return self.layout.index_of_address(address)


def _pool_cidrs(pool: Pool) -> list[_SyncedCIDR]:
    pool_cidrs = []
    for cidr in PoolCIDR.objects.filter(pool=pool).prefetch_related("reserved_ranges"):
        cidr.pool = pool
        layout = window.layout(cidr)
        every = [blocks.Span(0, layout.count - 1)]
        free = [] if cidr.closed else layout.allocatable(window.ranges(cidr))
        pool_cidrs.append(_SyncedCIDR(cidr.pk, layout, IndexSet(blocks.subtract(every, free))))
    return pool_cidrs


_Spot = tuple[_SyncedCIDR, int]  # a CIDR and the index of a block in it


def _spot(pool_cidrs: Sequence[_SyncedCIDR], address: Address) -> _Spot | None:
    for pool_cidr in pool_cidrs:
        index = pool_cidr.index_of(address)
        if index is not None:
            return pool_cidr, index
    return None


def _rows(pool: Pool, uses: Iterable[Address]) -> dict[str, _AddressRow]:
    texts = database.joined(uses)
    return {
        address: _AddressRow(row_id, state, AddressHolder(kind, holder_id, uid))
        for row_id, address, state, kind, holder_id, uid in database.rows(
            _ROWS, {"space": pool.space_id, "addresses": texts}, prepare=False
        )
    }


_ROWS = statements.read("pools/lock_blocks_at_addresses")


def _insert(
    pool: Pool, spots: Mapping[Address, _Spot], fresh: Sequence[tuple[Address, AddressHolder]]
) -> None:
    if not fresh:
        return
    indexes: dict[int, list[int]] = {}
    withheld: list[bool] = []
    for address, _ in fresh:
        pool_cidr, index = spots[address]
        indexes.setdefault(pool_cidr.id, []).append(index)
        withheld.append(pool_cidr.withheld.contains_span(blocks.Span(index, index)))
    for cidr_id, taken_indexes in indexes.items():
        window.cut(cidr_id, taken_indexes)
    values = {
        "pool": pool.pk,
        "addresses": database.joined(address for address, _ in fresh),
        "withheld": database.joined(withheld),
        **_joined([holder for _, holder in fresh]),
    }
    database.fetch(_INSERT, values)


# No identifier has a control character (pools/core/holders.py).
_SEPARATOR = "\x1f"


def _joined(holders: Sequence[AddressHolder]) -> dict[str, str]:
    return {
        "kinds": _SEPARATOR.join(holder.kind for holder in holders),
        "ids": _SEPARATOR.join(holder.id for holder in holders),
        "uids": _SEPARATOR.join(holder.uid for holder in holders),
    }


_INSERT = statements.read("pools/insert_synced_blocks")


def _give(handovers: Sequence[tuple[int, AddressHolder]]) -> None:
    if not handovers:
        return
    values = {
        "blocks": [row_id for row_id, _ in handovers],
        **_joined([holder for _, holder in handovers]),
    }
    # In use is in use, also in the midst of another's cooldown.
    database.rows("SELECT set_config('ipam.skip_cooldown', 'on', true)", [])
    database.fetch(_GIVE, values)
    database.rows("SELECT set_config('ipam.skip_cooldown', 'off', true)", [])


_GIVE = statements.read("pools/hand_over_blocks")
