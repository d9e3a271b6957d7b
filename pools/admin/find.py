"""The search page: addresses, CIDRs, holders, environments, pools, clusters and objects."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from ipaddress import ip_network
from typing import Any

from django.core.exceptions import PermissionDenied
from django.db.models import Q, QuerySet
from django.http import HttpRequest, HttpResponse
from django.utils.translation import gettext

from pools.admin.pools import blocks as block_list
from pools.clusters.reconcile import registry
from pools.core import addresses
from pools.models import (
    Block,
    BlockEvent,
    Cluster,
    Container,
    Environment,
    ObservedCIDR,
    ObservedObject,
    Pool,
    PoolCIDR,
)
from pools.models.blocks import LIVE
from pools.platform.admin import large_tables, pages, search_text
from pools.register import dns
from pools.register.history import addresses as history_addresses
from pools.register.plan import free_space

MOST = 50
SHORTEST_PART = 2  # characters of a name that is searched for as a part


@dataclass(frozen=True)
class Section:
    """A section of the results: a template and its values, `section.context` in the template."""

    template: str
    context: Mapping[str, Any]


Finder = Callable[[HttpRequest, search_text.SearchText], Iterable[Section]]
# Apps add their finders, and the permissions that allow to use them.
FINDERS: list[Finder] = []  # filled by pools.extension
PERMISSIONS: list[str] = []  # any of them; filled by pools.extension


@dataclass(frozen=True)
class AddressMatch:
    """A CIDR that contains the address, its block or reserved range, and nearby free blocks."""

    cidr: PoolCIDR
    block: Block | None
    reserved: Any
    free: list[addresses.Network]

    @property
    def state(self) -> str:
        if self.block is not None:
            return self.block.state
        return "reserved" if self.reserved else "free"


def may_search(request: HttpRequest) -> bool:
    """Return True if the user may use the Find page."""
    return any(request.user.has_perm(name) for name in PERMISSIONS)


def view(request: HttpRequest) -> HttpResponse:
    if not may_search(request):
        raise PermissionDenied
    searched = search_text.parse(request.GET.get("q", ""))
    results, sections = _search(request, searched)
    _, blank, name = searched.text.partition(" ")
    if (
        blank and not results and not sections
    ):  # pages print `node fra-1`, `VM shop/web`: search without the kind
        results, sections = _search(request, search_text.parse(name))
    nothing = bool(searched.text) and not results and not sections
    title = gettext("Find %(text)s") % {"text": searched.text} if searched.text else gettext("Find")
    return pages.page(
        request,
        "find.html",
        title=title,
        searched=searched,
        nothing=nothing,
        sections=sections,
        **results,
    )


def _search(
    request: HttpRequest, searched: search_text.SearchText
) -> tuple[dict[str, Any], list[Section]]:
    """Return the results of the register (as template context) and the sections of the apps."""
    if not searched.text:
        return {}, []
    results: dict[str, Any] = {}
    if request.user.has_perm("pools.view_block"):
        results = _search_register(request, searched)
    if request.user.has_perm("pools.view_container"):
        results["containers"] = _search_containers(searched)
    if request.user.has_perm("pools.view_observedcidr"):
        results["observed_cidrs"] = _search_observed_cidrs(searched)
    sections = [section for finder in FINDERS for section in finder(request, searched)]
    return results if any(results.values()) else {}, sections


def _search_containers(searched: search_text.SearchText) -> list[Container]:
    """Return the network containers around or inside a CIDR, or with this part of a name or a CIDR."""
    text = searched.text
    condition = Q(name__icontains=text) | Q(description__icontains=text)
    return _search_cidrs(Container.objects.select_related("space__cluster"), searched, condition)


def _search_cidrs(rows: QuerySet[Any], searched: search_text.SearchText, names: Q) -> list[Any]:
    """Return the rows whose CIDR is around or inside a CIDR or whose name fits, else whose CIDR contains a text."""
    network = searched.network
    condition = names if network is None else Q(cidr__net_overlaps=str(network))
    found = list(rows.filter(condition).order_by("cidr", "pk")[:MOST])
    if found or not searched.part:
        return found
    return list(search_text.containing(rows, searched.part).order_by("cidr", "pk")[:MOST])


def _search_observed_cidrs(searched: search_text.SearchText) -> list[ObservedCIDR]:
    """Return what objects of clusters use around or inside a CIDR, or what has this part of a name or a CIDR."""
    namespace, slash, name = searched.text.partition("/")
    condition = Q(name__icontains=searched.text)
    if slash:
        condition = Q(namespace=namespace, name__icontains=name)
    return _search_cidrs(ObservedCIDR.objects.select_related("space__cluster"), searched, condition)


def _search_register(request: HttpRequest, searched: search_text.SearchText) -> dict[str, Any]:
    if searched.address is not None:
        results = _search_address(searched.address)
    elif searched.network is not None:
        results = _search_cidr(searched.network)
    else:
        results = {}
    if searched.network is not None:
        if searched.part and not any(results.values()):
            rows = Block.objects.filter(state__in=LIVE).select_related("pool__cluster")
            blocks = search_text.containing(rows, searched.part)
            results["blocks"] = list(_first_blocks(blocks))
        return results
    observed = (
        _search_objects(searched.text) if request.user.has_perm("pools.view_observedobject") else []
    )
    return {**_search_name(searched.text), "observed": observed}


def _search_address(address: addresses.Address) -> dict[str, Any]:
    _, tenures = history_addresses.find_holders(address)
    cidrs = PoolCIDR.objects.filter(cidr__net_contains_or_equals=str(address))
    cidrs = cidrs.select_related("pool__cluster").prefetch_related("reserved_ranges")
    matches = [_address_match(cidr, address) for cidr in cidrs[:MOST]]
    return {
        "address": address if matches or tenures else None,
        "matches": matches,
        "tenures": tenures,
    }


def _address_match(cidr: PoolCIDR, address: addresses.Address) -> AddressMatch:
    rows = Block.objects.filter(space=cidr.space_id, state__in=LIVE)
    block = (
        block_list.overlapping(rows, ip_network(address)).select_related("pool__cluster").first()
    )
    reserved = [
        reserved_range
        for reserved_range in cidr.reserved_ranges.all()
        if int(reserved_range.first) <= int(address) <= int(reserved_range.last)
    ]
    return AddressMatch(cidr, block, reserved[:1], free_space.nearest_free_blocks(cidr, address, 6))


def _search_cidr(network: addresses.Network) -> dict[str, Any]:
    cidrs = PoolCIDR.objects.filter(cidr__net_overlaps=str(network)).select_related("pool__cluster")
    rows = Block.objects.filter(state__in=LIVE).select_related("pool__cluster")
    return {
        "cidrs": list(cidrs[:MOST]),
        "blocks": list(block_list.overlapping(rows, network).order_by("space_id", "cidr")[:MOST]),
    }


def _search_name(text: str) -> dict[str, Any]:
    """Return what has this name: `i-42`, `acme`, `acme/env-03`, `green-pool`, `frankfurt/green-pool`."""
    first, slash, second = text.partition("/")
    pools = Q(name__icontains=text)
    if slash:
        pools |= Q(cluster__name=first, name__icontains=second)
    rows = Block.objects.filter(state__in=LIVE).select_related("pool__cluster")
    before = BlockEvent.objects.filter(holder_id=text).order_by("-pgh_id")
    return {
        "blocks": [
            *dns.find_blocks(text, MOST).select_related("pool__cluster"),
            *_first_blocks(block_list.filter_blocks(rows, text)),
        ][:MOST],
        "past": list(before.values_list("cidr", "pgh_label", "pgh_created_at")[:MOST]),
        "pools": list(Pool.objects.filter(pools).select_related("cluster")[:MOST]),
        "clusters": list(Cluster.objects.filter(name__icontains=text)[:MOST]),
        "environments": _search_environments(text),
    }


def _search_environments(text: str) -> list[Environment]:
    """Return the environments with this name or organization, or else with this part of one."""
    first, slash, second = text.partition("/")
    exact = Q(env=text) | Q(org=text)
    if slash:
        exact |= Q(org=first, env=second)
    rows = Environment.objects.select_related("cluster").order_by("cluster__name", "org", "env")
    found = list(rows.filter(exact)[:MOST])
    if found:
        return found
    part = Q(env__contains=text) | Q(org__contains=text)
    if slash:
        part |= Q(org=first, env__contains=second)
    return list(large_tables.search_first(rows.filter(part))[:MOST])


def _first_blocks(blocks: QuerySet[Block]) -> QuerySet[Block]:
    """Return the first blocks of a search in their order."""
    return large_tables.search_first(blocks).order_by("space_id", "cidr")[:MOST]


def _search_objects(text: str) -> list[ObservedObject]:
    """Return the cluster objects with this name or `namespace/name`, or else with this part of a name.

    The first query gives all leading columns of the index.
    """
    namespace, slash, name = text.lower().rpartition("/")
    rows = ObservedObject.objects.filter(kind__in=[handler.kind for handler in registry.HANDLERS])
    ordered = rows.select_related("cluster").order_by("cluster__name", "kind", "namespace", "name")
    clusters = list(Cluster.objects.values_list("pk", flat=True))
    found = list(ordered.filter(cluster__in=clusters, namespace=namespace, name=name)[:MOST])
    if found or len(name) < SHORTEST_PART:
        return found
    matches = ordered.filter(name__contains=name)
    if slash:
        matches = matches.filter(namespace=namespace)
    return list(large_tables.search_first(matches)[:MOST])
