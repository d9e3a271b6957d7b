"""Mark host-sized blocks as in use or released, as an address index reports them.

For VM networks, whose addresses are assigned by entries, claims and OVN-Kubernetes and not by the
allocator: an address in use is recorded even if it is reserved or in cooldown. The functions run in a
transaction of the caller.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from ipaddress import IPv4Address, IPv6Address

from pools.core import blocks
from pools.core.blocks import IndexSet
from pools.models import BlockState, Pool, PoolCIDR
from pools.platform import database
from pools.register.allocator import window
from pools.sql import statements

Address = IPv4Address | IPv6Address


@dataclass(frozen=True)
class AddressHolder:
    """The holder of an address and its organization; `uid` is "" if it is unknown."""

    kind: str
    id: str
    uid: str = ""
    org: str = ""

    @property
    def name(self) -> tuple[str, str]:
        return self.kind, self.id


@dataclass(frozen=True)
class AddressUse:
    """The holder that an address should have (None: no holder), and the holders that may lose it.

    `yields` are the holders that are known to have released or to share the address; a block of any
    other holder is not changed.
    """

    holder: AddressHolder | None
    yields: Collection[tuple[str, str]] = ()


@dataclass(frozen=True)
class _AddressRow:
    id: int
    state: str
    holder: AddressHolder


def hold(pool: Pool, holders: Mapping[Address, AddressHolder]) -> None:
    """Hold addresses that nobody holds, and that cool for nobody else; addresses outside the pool are ignored.

    Takes the pool's lock. The caller has compared the holders with the register under this lock.
    """
    uses = {address: AddressUse(holder) for address, holder in holders.items()}
    apply_uses(pool, uses, in_cooldown=False)


def apply_uses(pool: Pool, uses: Mapping[Address, AddressUse], *, in_cooldown: bool = True) -> None:
    """Apply the uses of addresses to the pool's blocks; addresses outside the pool are ignored.

    Takes the pool's lock. A block without a holder is released into the pool's cooldown; a block of a
    holder that is not in `yields` is not changed. An address in use is recorded even `in_cooldown` of another holder.
    """
    if not uses:
        return
    window.lock(pool.pk)
    pool_cidrs = _pool_cidrs(pool)
    candidates = ((address, _locate(pool_cidrs, address)) for address in uses)
    locations = [(address, location) for address, location in candidates if location is not None]
    # Batches keep each statement below the web's statement timeout.
    for first in range(0, len(locations), _BATCH):
        batch = dict(locations[first : first + _BATCH])
        _apply_batch(pool, batch, uses, in_cooldown=in_cooldown)


_BATCH = 10_000  # addresses


def _apply_batch(
    pool: Pool,
    locations: Mapping[Address, _Location],
    uses: Mapping[Address, AddressUse],
    *,
    in_cooldown: bool,
) -> None:
    rows = _rows(pool, locations)
    fresh: list[tuple[Address, AddressHolder]] = []
    handovers: list[tuple[int, AddressHolder]] = []
    freed: list[int] = []
    for address in locations:
        use = uses[address]
        row = rows.get(str(address))
        held = row is not None and row.state == BlockState.HELD
        if use.holder is None:
            if row is not None and held and row.holder.name in use.yields:
                freed.append(row.id)
        elif row is None:
            fresh.append((address, use.holder))
        elif not held or _should_hand_over(row.holder, use):
            handovers.append((row.id, use.holder))
    _insert(pool, locations, fresh)
    _hand_over(handovers, in_cooldown=in_cooldown)
    window.release_blocks(freed)


def _should_hand_over(holder: AddressHolder, use: AddressUse) -> bool:
    new_holder = use.holder
    if new_holder is None:
        return False
    if holder.name == new_holder.name:
        return new_holder.uid not in {"", holder.uid}
    return holder.name in use.yields


@dataclass(frozen=True)
class _SyncedCIDR:
    """One CIDR of the pool; `withheld` are the blocks that are never allocated."""

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
        all_blocks = [blocks.Span(0, layout.count - 1)]
        free = [] if cidr.closed else layout.allocatable(window.reserved_ranges(cidr))
        pool_cidrs.append(_SyncedCIDR(cidr.pk, layout, IndexSet(blocks.subtract(all_blocks, free))))
    return pool_cidrs


_Location = tuple[_SyncedCIDR, int]  # a CIDR and the index of a block in it


def _locate(pool_cidrs: Sequence[_SyncedCIDR], address: Address) -> _Location | None:
    for pool_cidr in pool_cidrs:
        index = pool_cidr.index_of(address)
        if index is not None:
            return pool_cidr, index
    return None


def _rows(pool: Pool, addresses: Iterable[Address]) -> dict[str, _AddressRow]:
    joined_addresses = database.join_values(addresses)
    return {
        address: _AddressRow(row_id, state, AddressHolder(kind, holder_id, uid))
        for row_id, address, state, kind, holder_id, uid in database.rows(
            _ROWS, {"space": pool.space_id, "addresses": joined_addresses}, prepare=False
        )
    }


_ROWS = statements.read("pools/lock_blocks_at_addresses")


def _insert(
    pool: Pool,
    locations: Mapping[Address, _Location],
    fresh: Sequence[tuple[Address, AddressHolder]],
) -> None:
    if not fresh:
        return
    indexes: dict[int, list[int]] = {}
    withheld: list[bool] = []
    for address, _ in fresh:
        pool_cidr, index = locations[address]
        indexes.setdefault(pool_cidr.id, []).append(index)
        withheld.append(pool_cidr.withheld.contains_span(blocks.Span(index, index)))
    for cidr_id, cidr_indexes in indexes.items():
        window.remove_free_blocks(cidr_id, cidr_indexes)
    values = {
        "pool": pool.pk,
        "addresses": database.join_values(address for address, _ in fresh),
        "withheld": database.join_values(withheld),
        **_joined([holder for _, holder in fresh]),
    }
    database.fetch(_INSERT, values)


# No identifier contains a control character (pools/core/holders.py).
_SEPARATOR = "\x1f"


def _joined(holders: Sequence[AddressHolder]) -> dict[str, str]:
    return {
        "kinds": _SEPARATOR.join(holder.kind for holder in holders),
        "ids": _SEPARATOR.join(holder.id for holder in holders),
        "uids": _SEPARATOR.join(holder.uid for holder in holders),
        "orgs": _SEPARATOR.join(holder.org for holder in holders),
    }


_INSERT = statements.read("pools/insert_synced_blocks")


def _hand_over(handovers: Sequence[tuple[int, AddressHolder]], *, in_cooldown: bool) -> None:
    if not handovers:
        return
    values = {
        "blocks": [row_id for row_id, _ in handovers],
        **_joined([holder for _, holder in handovers]),
    }
    setting = "on" if in_cooldown else "off"
    database.rows("SELECT set_config('ipam.skip_cooldown', %s, true)", [setting])
    database.fetch(_HAND_OVER, values)
    database.rows("SELECT set_config('ipam.skip_cooldown', 'off', true)", [])


_HAND_OVER = statements.read("pools/hand_over_blocks")
