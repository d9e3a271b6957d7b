"""The pool of the register that a CadastrePool names, and what it says of each address."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from ipaddress import ip_address, ip_interface
from typing import Any

from pools.core import addresses, errors
from pools.core.cluster_api.contract import PoolKey, PoolObject
from pools.models import Category, Cluster, Pool, PoolCIDR
from pools.platform import events
from pools.register import pools as register_pools

# Pods get blocks of their nodes; the other two categories demand an org and an env (`owner-is-named`).
CATEGORIES = (Category.NODE, Category.VM)


class PoolNotUsable(errors.Conflict):
    """No address can be allocated from the pool that the object names."""

    code = "pool_not_usable"


@dataclass(frozen=True)
class PoolBinding:
    """A pool object, and the pool of the register and the family from which it gives addresses."""

    pool_object: PoolObject
    pool: Pool
    family: int
    cidrs: tuple[addresses.Network, ...]

    def address_spec(self, text: str) -> dict[str, Any]:
        """Return address, prefix and gateway of an IPAddress's spec.

        The prefix length is that of the pool's CIDR unless the pool object has one. A gateway belongs to
        the addresses of its own network; a link-local one to all.
        """
        address = ip_address(text)
        pool_object = self.pool_object
        cidr = next((cidr for cidr in self.cidrs if address in cidr), None)
        default = cidr.prefixlen if cidr else addresses.LONGEST_PREFIX[address.version]
        prefix = pool_object.prefix or default
        spec: dict[str, Any] = {"address": text, "prefix": prefix}
        gateway = pool_object.gateway
        network = ip_interface(f"{text}/{prefix}").network
        if gateway is not None and (gateway.is_link_local or gateway in network):
            spec["gateway"] = str(gateway)
        return spec


Bindings = Mapping[PoolKey, PoolBinding | errors.IpamError]


def bind(
    cluster: Cluster, pool_objects: Mapping[PoolKey, PoolObject | errors.InvalidInput]
) -> Bindings:
    """Return the pool of the register for each pool object, or the error why none can be used."""
    names = {row.pool_name for row in pool_objects.values() if isinstance(row, PoolObject)}
    pools_by_name = {row.name: row for row in Pool.objects.filter(cluster=cluster, name__in=names)}
    cidrs: dict[int, list[addresses.Network]] = {}
    for row in PoolCIDR.objects.filter(pool__in=pools_by_name.values()):
        cidrs.setdefault(row.pool_id, []).append(row.cidr)
    bindings: dict[PoolKey, PoolBinding | errors.IpamError] = {}
    for key, pool_object in pool_objects.items():
        if isinstance(pool_object, errors.InvalidInput):
            details = "; ".join(
                f"{problem.field}: {problem.message}" for problem in pool_object.problems
            )
            bindings[key] = PoolNotUsable(details)
            continue
        pool = pools_by_name.get(pool_object.pool_name)
        try:
            bindings[key] = _bind_one(cluster, pool_object, pool, cidrs)
        except errors.IpamError as error:
            bindings[key] = error
    return bindings


def _bind_one(
    cluster: Cluster,
    pool_object: PoolObject,
    pool: Pool | None,
    cidrs: Mapping[int, Iterable[addresses.Network]],
) -> PoolBinding:
    if pool is None:
        raise PoolNotUsable(f"The cluster {cluster} has no pool {pool_object.pool_name}.")
    if pool.category not in CATEGORIES:
        labels = " or ".join(category.value for category in CATEGORIES)
        raise PoolNotUsable(f"{pool} is of the category {pool.category}; it must be {labels}.")
    families = [family for family in (4, 6) if pool.mask_size(family) is not None]
    family = pool_object.family or (families[0] if len(families) == 1 else 0)
    if not family:
        raise PoolNotUsable(f"{pool} has both families: spec.family must be 4 or 6.")
    if family not in families:
        raise PoolNotUsable(f"{pool} has no IPv{family} addresses.")
    if pool.mask_size(family) != addresses.LONGEST_PREFIX[family]:
        raise PoolNotUsable(
            f"{pool} has blocks of the mask size {pool.mask_size(family)}; a claim gets a single"
            f" address, which needs the mask size {addresses.LONGEST_PREFIX[family]}."
        )
    if pool_object.gateway is not None and pool_object.gateway.version != family:
        raise PoolNotUsable(f"spec.gateway {pool_object.gateway} is no IPv{family} address.")
    networks = tuple(cidr for cidr in cidrs.get(pool.pk, ()) if cidr.version == family)
    _check_prefix(pool_object.prefix or 0, pool, family, networks)
    return PoolBinding(pool_object, pool, family, networks)


def _check_prefix(
    prefix: int, pool: Pool, family: int, networks: Iterable[addresses.Network]
) -> None:
    """Raise PoolNotUsable for a prefix length with which an address of the pool would be none of a machine."""
    if prefix > addresses.LONGEST_PREFIX[family]:
        raise PoolNotUsable(f"spec.prefix {prefix} is longer than an IPv{family} address.")
    for cidr in networks:
        if cidr.prefixlen < prefix < addresses.LONGEST_PREFIX[family] - 1:
            raise PoolNotUsable(
                f"spec.prefix {prefix} divides {cidr} of {pool} into several networks, of which the first and"
                " last addresses are no addresses of machines: use a pool with a CIDR for each network."
            )


def reserve_gateway(binding: PoolBinding, *, author: events.Author) -> None:
    """Reserve the gateway in the register if it lies in the pool, so that no claim gets it.

    The range stays when the pool object goes: a router does not go with it.
    """
    gateway = binding.pool_object.gateway
    if gateway is None or not any(gateway in cidr for cidr in binding.cidrs):
        return
    text = str(gateway)
    cidr = PoolCIDR.objects.get(pool=binding.pool, cidr__net_contains_or_equals=text)
    if cidr.reserved_ranges.filter(first__lte=text, last__gte=text).exists():
        return
    reason = f"Gateway of {binding.pool_object.key}"
    register_pools.reserve(
        cidr.pk, addresses.AddressRange(gateway, gateway), author=author, reason=reason
    )
