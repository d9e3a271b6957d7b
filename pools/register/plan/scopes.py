"""The part of the address plan that somebody looks at: the fleet, or one address space."""

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
    """Return the scope of the fleet: the clusters' own address spaces, without isolated VM networks."""
    own = AddressSpace.objects.filter(name=AddressSpace.OWN)
    return Scope(tuple(own.values_list("pk", flat=True)), fleet=True)


def scope_of_space(space: AddressSpace | None) -> Scope:
    """Return the scope of an address space; None is the fleet."""
    return fleet_scope() if space is None else Scope((space.pk,), fleet=False, space=space)


def scope_of(container: Container) -> Scope:
    """Return the scope in which a container's CIDRs are free or not."""
    return scope_of_space(container.space)
