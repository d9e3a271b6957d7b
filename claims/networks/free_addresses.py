"""Free addresses of a network: those that neither the register nor an import names, the lowest first."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from ipaddress import ip_address, ip_network

from claims.address_index import conflicts
from claims.models import Network
from pools.core import addresses, errors
from pools.platform import database
from pools.register.allocator import batches
from pools.sql import statements

_USED = statements.read("claims/used_addresses_of_subnet")


def readable_subnets(network: Network) -> list[addresses.Network]:
    """Return the valid subnets of a network; invalid ones are left out."""
    subnets = []
    for text in network.subnets:
        try:
            subnets.append(ip_network(text))
        except ValueError:
            continue
    return subnets


def next_addresses(network: Network) -> list[str]:
    """Return the next free address of each family with its prefix length; it is not reserved.

    Raises Conflict (the network has no subnets), PoolExhausted.
    """
    subnets = {subnet.version: subnet for subnet in reversed(readable_subnets(network))}
    if not subnets:
        raise errors.Conflict(f"The network {network.name} has no subnets.")
    return [next(unused_addresses(network, subnet)) for _version, subnet in sorted(subnets.items())]


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
