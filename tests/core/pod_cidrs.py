"""Pools and nodes in few words, for the tests of PodCIDR allocation."""

from ipaddress import ip_network

from pools.core import addresses
from pools.core.cilium import ciliumnode, podippool


def pool(
    name: str, *cidrs: str, mask: int = 24, reserved: str = "", **allow: bool
) -> podippool.PodIPPool:
    """`reserved` are ranges with a blank between them; `allow` may say first=True, last=True."""
    ranges = [addresses.parse_range(text) for text in reserved.split()]
    families: dict[int, podippool.Family] = {}
    for network in map(ip_network, cidrs):
        inside = tuple(span for span in ranges if span.within(network))
        before = families.get(network.version, podippool.Family((), mask))
        entries = (*before.cidrs, podippool.CidrEntry(network, inside))
        families[network.version] = podippool.Family(entries, mask)
    flags = {f"allow_{which}_ip": allowed for which, allowed in allow.items()}
    return podippool.PodIPPool(name, families, **flags)


def node(
    name: str = "n1", *, demands: dict[str, int] | None = None, **lists: list[str]
) -> ciliumnode.NodeDemand:
    """`wants` are IPv4 addresses by pool, `lists` the CIDRs that it has allocated by pool."""
    requested = {pool: {4: number, 6: 0} for pool, number in (demands or {}).items()}
    allocated = (
        ciliumnode.AllocatedEntry(pool, tuple(map(ip_network, cidrs)))
        for pool, cidrs in lists.items()
    )
    return ciliumnode.NodeDemand(name, requested=requested, allocated=tuple(allocated))
