"""The part of the address plan that somebody looks at: the fleet, a cluster, or an isolated VM network."""

from __future__ import annotations

from dataclasses import dataclass

from django.db.models import Q

from pools.models import AddressSpace, Container


@dataclass(frozen=True)
class Scope:
    """The address spaces whose CIDRs count, and whether containers of the fleet do.

    Of the CIDRs of pools, or of objects, that are equal, `most` are read with what has them; None: all.
    """

    spaces: tuple[int, ...]
    fleet: bool
    space: AddressSpace | None = None  # None: the fleet
    most: int | None = None

    @property
    def containers(self) -> Q:
        """The filter for containers of the scope."""
        condition = Q(space__in=self.spaces)
        return condition | Q(space=None) if self.fleet else condition


def fleet_scope() -> Scope:
    """Return the scope of the fleet: all address spaces, so that nothing that a VM network has is free."""
    return Scope(tuple(AddressSpace.objects.values_list("pk", flat=True)), fleet=True)


def scope_of_space(space: AddressSpace | None) -> Scope:
    """Return the scope of an address space; None is the fleet.

    A cluster's own address space has its VM networks besides, of which nothing is free for its pools.
    """
    if space is None:
        return fleet_scope()
    spaces = AddressSpace.objects.filter(pk=space.pk)
    if space.name == AddressSpace.OWN:
        spaces = AddressSpace.objects.filter(cluster=space.cluster_id)
    return Scope(tuple(spaces.values_list("pk", flat=True)), fleet=False, space=space)


def scope_of(container: Container) -> Scope:
    """Return the scope in which a container's CIDRs are free or not."""
    return scope_of_space(container.space)
