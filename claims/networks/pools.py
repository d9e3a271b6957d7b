"""Pools of networks: a network's subnets are the CIDRs of a pool, with map, utilization, reserved ranges and free addresses.

Each network has its own address space, because OVN-Kubernetes isolates networks: its subnets may
overlap those of another network or the pod CIDRs of the cluster. What OVN-Kubernetes keeps of them becomes
reserved ranges; their reasons distinguish them from ranges that users reserve.
"""

import bisect
import contextlib
from collections.abc import Iterable, Iterator, Sequence
from ipaddress import ip_address, ip_network

from claims.address_index import block_sync, conflicts
from claims.core.networks import kept_addresses, udn
from claims.models import IPPool, Network
from pools.cilium import pool_sync
from pools.core import addresses, blocks, errors, holders
from pools.core.addresses import AddressRange
from pools.core.cilium.podippool import CidrEntry, Family
from pools.models import AddressSpace, Category, Cluster, Pool, PoolCIDR, ReservedRange
from pools.platform import database, events
from pools.register import pool_cidrs, pools
from pools.register.allocator import batches
from pools.sql import statements


def pool_name(network_name: str) -> str:
    """Return the name of a network's pool: the logical name of the network.

    A network that a NAD defines may have the name of a CiliumPodIPPool; its pool is named
    `network/<name>`, which is no valid name of a Kubernetes object.
    """
    try:
        holders.parse_name(network_name)
    except errors.InvalidInput:
        return network_name
    return f"network/{network_name}"


def sync_pool(network: Network, *, author: events.Author) -> bool:
    """Sync the pool with the subnets of the network. Return True if the pool changed.

    A subnet that the network has lost is removed, or becomes an orphan while its addresses are in use.
    Raises CIDROverlap if subnets of the network overlap each other, and InvalidInput.
    """
    with events.recorded_by(author):
        block_sync.lock_pools([network.pk])
        changed = _sync_pool(network, author)
        if changed:
            block_sync.sync_all(network)
            conflicts.recheck_network(network)
    return changed


def _sync_pool(network: Network, author: events.Author) -> bool:
    desired_subnets = _desired_subnets(network)
    if network.pool is None:
        if not desired_subnets:
            return False
        # Without a pool, only the lock of its IPPool keeps entries apart: `sync_all` has to see those in progress.
        list(IPPool.objects.select_for_update().filter(network=network).values_list("pk"))
        network.pool = _create_pool(network, desired_subnets, author)
        Network.objects.filter(pk=network.pk).update(pool=network.pool)
        sync_ranges(network, network.pool, author)
        return True
    pool = network.pool
    present = list(_cidrs(pool))
    if not desired_subnets:
        return _orphan_pool(network, pool, present, author)
    changed = False
    if pool.orphaned_at is not None:
        Pool.objects.filter(pk=pool.pk).update(orphaned_at=None)
        changed = True
    if _active_cidrs(present) != desired_subnets:
        change = pools.PoolChange(families=_families(pool, desired_subnets), keep_orphans=True)
        pools.change(pool.pk, change, author=author)
        network.pool = Pool.objects.get(pk=pool.pk)
        changed = True
    return sync_ranges(network, network.pool, author) or changed


def diverged_networks(cluster: Cluster) -> list[Network]:
    """Return the networks whose pool was changed or deleted, so that it differs from the network."""
    rows = Network.objects.filter(cluster=cluster, gone_at=None).exclude(subnets=[])
    networks = rows.select_related("cluster", "pool").prefetch_related(
        "pool__cidrs__reserved_ranges"
    )
    return [
        network for network in networks if network.pool is None or _differs(network, network.pool)
    ]


def _differs(network: Network, pool: Pool) -> bool:
    present = sorted(pool.cidrs.all(), key=lambda row: row.cidr.version)
    if _active_cidrs(present) != _desired_subnets(network):
        return True
    reservations = list(_reservations(network))
    return any(
        any(_range_changes(cidr, reservations)) for cidr in present if cidr.orphaned_at is None
    )


def _active_cidrs(present: list[PoolCIDR]) -> list[addresses.Network]:
    return [cidr.cidr for cidr in present if cidr.orphaned_at is None]


def _desired_subnets(network: Network) -> list[addresses.Network]:
    """Return the subnets in the order of the pool: IPv4 first, each family in the network's order."""
    subnets = dict.fromkeys(map(ip_network, [] if network.gone_at else network.subnets))
    return sorted(subnets, key=lambda subnet: subnet.version)


def _cidrs(pool: Pool) -> list[PoolCIDR]:
    rows = PoolCIDR.objects.filter(pool=pool).select_related("pool").order_by("position", "id")
    cidrs = list(rows.prefetch_related("reserved_ranges"))
    return sorted(cidrs, key=lambda row: row.cidr.version)


def _create_pool(network: Network, subnets: list[addresses.Network], author: events.Author) -> Pool:
    space, _ = AddressSpace.objects.get_or_create(cluster=network.cluster, name=network.name)
    families: dict[int, Family] = {
        version: Family(
            tuple(CidrEntry(subnet) for subnet in subnets if subnet.version == version),
            32 if version == 4 else 128,
        )
        for version in sorted({subnet.version for subnet in subnets})
    }
    return pools.create(
        cluster=network.cluster,
        name=pool_name(network.name),
        category=Category.VM,
        families=families,
        space=space,
        description=f"The subnets of the network {network.name}"[:500],
        author=author,
    )


def _families(pool: Pool, subnets: list[addresses.Network]) -> dict[int, Family]:
    """Return the families with their current reserved ranges; `sync_ranges` changes those later."""
    entries_by_cidr = {
        entry.cidr: entry for family in pool_cidrs.families(pool).values() for entry in family.cidrs
    }
    families = {}
    for version, size in ((4, 32), (6, 128)):
        entries = tuple(
            entries_by_cidr.get(subnet, CidrEntry(subnet))
            for subnet in subnets
            if subnet.version == version
        )
        if entries or pool.mask_size(version) is not None:
            families[version] = Family(entries, size)
    return families


def _orphan_pool(
    network: Network, pool: Pool, present: list[PoolCIDR], author: events.Author
) -> bool:
    if pool.orphaned_at is not None or not present:
        return False
    pool_sync.remove_pool(pool, author=author)
    network.pool = Pool.objects.filter(pk=pool.pk).first()
    return True


def delete_pool(network: Network, *, author: events.Author) -> None:
    """Delete the pool and its address space. Raises PoolInUse, with the holders, if addresses are held."""
    with events.recorded_by(author):
        if network.pool is not None:
            pools.delete(network.pool.pk, author=author)
            network.pool = None
        space = AddressSpace.objects.filter(cluster=network.cluster_id, name=network.name)
        if not Pool.objects.filter(space__in=space).exists():
            space.delete()


def sync_segments(cluster: Cluster, *, author: events.Author) -> None:
    """Share addresses, reserved ranges and duplicates anew between the localnet networks of a cluster."""
    rows = Network.objects.filter(cluster=cluster, topology=udn.LOCALNET).select_related("pool")
    networks = list(rows.order_by("pool_id"))
    with events.recorded_by(author):
        block_sync.lock_pools(network.pk for network in networks)
        for network in networks:
            if network.pool is not None and network.gone_at is None:
                sync_ranges(network, network.pool, author)
            block_sync.sync_segment(network)
            conflicts.recheck_network(network)


def orphaned_cidrs(cluster: Cluster) -> list[PoolCIDR]:
    """Return the subnets that their networks have lost while addresses of them are in use."""
    rows = PoolCIDR.objects.filter(pool__cluster=cluster, pool__category=Category.VM)
    rows = rows.exclude(orphaned_at=None).select_related("pool__cluster", "pool__network")
    return list(rows.order_by("pool_id", "id"))


# --- reserved ranges ------------------------------------------------------------------------------


def sync_ranges(network: Network, pool: Pool, author: events.Author) -> bool:
    """Reserve what the network keeps of the subnets in its pool. Return True if a range changed."""
    changed = False
    reservations = list(_reservations(network))
    for cidr in _cidrs(pool):
        if cidr.orphaned_at is None:
            changed = _sync_cidr_ranges(cidr, reservations, author) or changed
    return changed


def _reservations(network: Network) -> Iterator[tuple[AddressRange, str]]:
    """Yield the spans that the network keeps, with reasons; the first span with an address determines its reason."""
    for kept_span in kept_addresses.kept_spans(network):
        # A pool leaves out the edges of its CIDRs, except of those with one or two addresses.
        is_usable_edge = (
            kept_span.type == kept_addresses.EDGE and ip_network(kept_span.name).num_addresses <= 2
        )
        # A pool hands out the lowest addresses, and comes to the out-of-range ones of IPv6 last.
        if (
            kept_span.type not in {kept_addresses.EDGE, kept_addresses.OUT_OF_RANGE}
            or is_usable_edge
        ):
            yield kept_span.span, kept_span.reason
    yield from ((span, kept_addresses.SEGMENT_REASON) for span in _shared_reservations(network))


def _shared_reservations(network: Network) -> Iterator[AddressRange]:
    """Yield the parts of the subnets that are reserved on other networks of the segment, for whatever reason."""
    peers = [peer for _, peer in block_sync.shared_networks([network])]
    if not peers:
        return
    rows = ReservedRange.objects.filter(pool__network__in=peers)
    for row in rows.exclude(reason=kept_addresses.SEGMENT_REASON).order_by("first"):
        for subnet in map(ip_network, network.subnets):
            if subnet.version == row.first.version:
                first = max(row.first, subnet.network_address)
                last = min(row.last, subnet.broadcast_address)
                if first <= last:
                    yield AddressRange(first, last)


def _sync_cidr_ranges(
    cidr: PoolCIDR, reservations: list[tuple[AddressRange, str]], author: events.Author
) -> bool:
    obsolete, missing = _range_changes(cidr, reservations)
    for row in obsolete:
        pools.unreserve(row.pk, author=author)
    for span, reason in missing:
        pools.reserve(cidr.pk, span, author=author, reason=reason)
    return bool(obsolete or missing)


def _range_changes(
    cidr: PoolCIDR, reservations: list[tuple[AddressRange, str]]
) -> tuple[list[ReservedRange], list[tuple[AddressRange, str]]]:
    """Return the obsolete and the missing reserved ranges of the network in a CIDR."""
    rows = list(cidr.reserved_ranges.all())
    # Ranges that users reserved stay: the ranges of the network leave them out.
    reserved_spans = blocks.merge(  # in order and apart, as a NAD may exclude thousands of subnets
        _span(row.first, row.last) for row in rows if row.reason not in kept_addresses.POOL_REASONS
    )
    reasons_by_span: dict[blocks.Span, str] = {}
    for span, reason in reservations:
        if span.within(cidr.cidr):
            wanted = _span(span.first, span.last)
            begin = bisect.bisect_left(reserved_spans, wanted.first, key=lambda each: each.last)
            end = bisect.bisect_right(reserved_spans, wanted.last, key=lambda each: each.first)
            for piece in blocks.subtract([wanted], reserved_spans[begin:end]):
                reasons_by_span[piece] = reason
                bisect.insort(reserved_spans, piece)
    obsolete = []
    for row in rows:
        if (
            row.reason in kept_addresses.POOL_REASONS
            and reasons_by_span.get(_span(row.first, row.last)) == row.reason
        ):
            del reasons_by_span[_span(row.first, row.last)]
        elif row.reason in kept_addresses.POOL_REASONS:
            obsolete.append(row)
    kind = type(cidr.cidr.network_address)
    missing = [
        (AddressRange(kind(piece.first), kind(piece.last)), reason)
        for piece, reason in sorted(reasons_by_span.items())
    ]
    return obsolete, missing


def _span(first: addresses.Address, last: addresses.Address) -> blocks.Span:
    return blocks.Span(int(first), int(last))


_USED = statements.read("claims/used_addresses_of_subnet")


def next_addresses(network: Network) -> list[str]:
    """Return the next free address of each family with its prefix length; it is not reserved.

    Raises Conflict (the network has no subnets), PoolExhausted.
    """
    subnets = subnets_by_family(network)
    if not subnets:
        raise errors.Conflict(f"The network {network.name} has no subnets.")
    return [
        next(unused_addresses_of_family(network, of_family))
        for _version, of_family in sorted(subnets.items())
    ]


def subnets_by_family(network: Network) -> dict[int, list[addresses.Network]]:
    """Return the subnets of each family in the network's order; a NAD may have several."""
    subnets: dict[int, list[addresses.Network]] = {}
    for subnet in udn.readable_networks(network.subnets):
        subnets.setdefault(subnet.version, []).append(subnet)
    return subnets


def unused_addresses_of_family(
    network: Network,
    subnets: Sequence[addresses.Network],
    *,
    import_id: int = 0,
    row_number: int = 0,
    named: Sequence[int] = (),
) -> Iterator[str]:
    """Yield the free addresses of one subnet after the other, as `unused_addresses` does."""
    for number, subnet in enumerate(subnets, 1):
        is_last = number == len(subnets)
        with contextlib.nullcontext() if is_last else contextlib.suppress(errors.PoolExhausted):
            yield from unused_addresses(
                network, subnet, import_id=import_id, row_number=row_number, named=named
            )


def unused_addresses(
    network: Network,
    subnet: addresses.Network,
    *,
    import_id: int = 0,
    row_number: int = 0,
    named: Iterable[int] = (),
) -> Iterator[str]:
    """Yield the free addresses of a subnet with its prefix length; raise PoolExhausted after the last one.

    What the rows of an import name is in use, too, but for that of one row, and so are the addresses `named`.
    """
    candidate, end = int(subnet.network_address), int(subnet.broadcast_address) + 1
    own_spans = [
        (int(own_address.span.first), int(own_address.span.last))
        for own_address in conflicts.find_own_spans(network)
        if own_address.span.family == subnet.version
    ]
    values = {
        "network": network.pk,
        "space": network.pool.space_id if network.pool else 0,
        "subnet": str(subnet),
        "import": import_id,
        "number": row_number,
    }
    used = [int(ip_address(text)) for (text,) in database.rows(_USED, values, prepare=False)]
    used_spans = [(host, host) for host in (*used, *named)]
    for first, last in sorted([*used_spans, *own_spans, (end, end)]):
        for number in range(candidate, min(first, end)):
            address = subnet.network_address + (number - int(subnet.network_address))
            yield f"{address}/{subnet.prefixlen}"
        candidate = max(candidate, last + 1)
    message = f"{network.name} has no free IPv{subnet.version} address."
    if network.pool is None:
        raise errors.PoolExhausted(message)
    raise batches.exhausted(network.pool, subnet.version, message)
