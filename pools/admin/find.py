"""One box for an address, a CIDR, a holder, an environment or a pool: who is this?"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from django.core.exceptions import PermissionDenied
from django.db.models import Q
from django.http import HttpRequest, HttpResponseBase

from pools.admin import blocks as block_list
from pools.admin import edge, search
from pools.core import addresses
from pools.models import Block, BlockEvent, Cluster, Environment, Pool, PoolCIDR
from pools.models.blocks import LIVE
from pools.services import history, neighbours

MOST = 50


@dataclass(frozen=True)
class Section:
    """Something that was found: a template, and what it shows as `section.found`."""

    template: str
    found: Mapping[str, Any]


Finder = Callable[[HttpRequest, search.Searched], Iterable[Section]]
# Apps that use this one add their finders, and the permission of those who may ask them.
FINDERS: list[Finder] = []
PERMISSIONS = ["pools.view_block"]


@dataclass(frozen=True)
class Place:
    """A CIDR that holds the address, what the address is there, and free blocks near it."""

    cidr: PoolCIDR
    block: Block | None
    reserved: Any
    free: list[addresses.Network]

    @property
    def state(self) -> str:
        if self.block is not None:
            return self.block.state
        return "reserved" if self.reserved else "free"


def view(request: HttpRequest) -> HttpResponseBase:
    if not any(request.user.has_perm(name) for name in PERMISSIONS):
        raise PermissionDenied
    searched = search.read(request.GET.get("q", ""))
    found: dict[str, Any] = {}
    if request.user.has_perm("pools.view_block"):
        found = _found(searched)
    sections = [one for finder in FINDERS for one in finder(request, searched) if searched.text]
    nothing = bool(searched.text) and not any(found.values()) and not sections
    title = f"Find {searched.text}" if searched.text else "Find"
    return edge.page(
        request,
        "find.html",
        title=title,
        searched=searched,
        nothing=nothing,
        sections=sections,
        **found,
    )


def _found(searched: search.Searched) -> dict[str, Any]:
    if searched.address is not None:
        return _address(searched.address)
    if searched.network is not None:
        return _network(searched.network)
    return _name(searched.text) if searched.text else {}


def _address(address: addresses.Address) -> dict[str, Any]:
    _, tenures = history.holders(address)
    cidrs = PoolCIDR.objects.filter(cidr__net_contains_or_equals=str(address))
    cidrs = cidrs.select_related("pool__cluster").prefetch_related("reserved_ranges")
    places = [_place(cidr, address) for cidr in cidrs[:MOST]]
    return {"address": address if places or tenures else None, "places": places, "tenures": tenures}


def _place(cidr: PoolCIDR, address: addresses.Address) -> Place:
    rows = Block.objects.filter(space=cidr.space_id, state__in=LIVE)
    block = block_list.found(rows, str(address)).select_related("pool__cluster").first()
    reserved = [
        one for one in cidr.reserved_ranges.all() if int(one.first) <= int(address) <= int(one.last)
    ]
    return Place(cidr, block, reserved[:1], neighbours.free_near(cidr, address, 6))


def _network(network: addresses.Network) -> dict[str, Any]:
    cidrs = PoolCIDR.objects.filter(cidr__net_overlaps=str(network)).select_related("pool__cluster")
    rows = Block.objects.filter(state__in=LIVE).select_related("pool__cluster")
    return {
        "cidrs": list(cidrs[:MOST]),
        "blocks": list(block_list.found(rows, str(network)).order_by("space_id", "cidr")[:MOST]),
    }


def _name(text: str) -> dict[str, Any]:
    rows = Block.objects.filter(state__in=LIVE).select_related("pool__cluster")
    before = BlockEvent.objects.filter(holder_id=text).order_by("-pgh_id")
    return {
        "blocks": list(block_list.found(rows, text).order_by("space_id", "cidr")[:MOST]),
        "past": list(before.values_list("cidr", "pgh_label", "pgh_created_at")[:MOST]),
        "pools": list(Pool.objects.filter(name__icontains=text).select_related("cluster")[:MOST]),
        "clusters": list(Cluster.objects.filter(name__icontains=text)[:MOST]),
        "environments": list(
            Environment.objects.filter(Q(env=text) | Q(org=text)).select_related("cluster")[:MOST]
        ),
    }
