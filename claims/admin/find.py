"""What the search box finds of VM networks: by MAC, address, CIDR, VM, namespace or name."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from django.db.models import Q
from django.http import HttpRequest

from claims.admin import scoped, tables
from claims.core import macs
from claims.models import NAD, Entry, IndexEntry, IPAMClaim, IPPool, Network, Workload
from claims.networks import networks
from pools.admin import find
from pools.core import errors
from pools.platform.admin import search_text


@dataclass(frozen=True)
class _TableFilters:
    """What of each table is looked for."""

    entries: Q
    claims: Q
    workloads: Q
    networks: Q
    ippools: Q


def finder(request: HttpRequest, searched: search_text.SearchText) -> Iterator[find.Section]:
    """At most one section, of what whoever asks sees."""
    if not request.user.has_perm("claims.view_entry"):
        return
    filters = _table_filters(request, searched)
    rows_by_table = {
        "entries": _rows(request, Entry, filters.entries, "ippool__network__cluster"),
        "claims": _rows(request, IPAMClaim, filters.claims, "network__cluster"),
        "workloads": _rows(request, Workload, filters.workloads, "network__cluster"),
        "networks": _rows(request, Network, filters.networks, "cluster"),
        "ippools": _rows(request, IPPool, filters.ippools, "cluster", "network__cluster"),
    }
    shown = [getattr(tables, name)(rows) for name, rows in rows_by_table.items() if rows]
    if shown:
        yield find.Section("cadastre/tables.html", {"tables": shown})


def _rows(request: HttpRequest, model: Any, query: Q, *related: str) -> list[Any]:
    rows = scoped.rows(request, model).filter(query).select_related(*related)
    return list(rows.order_by("pk")[: find.MOST])


def _table_filters(request: HttpRequest, searched: search_text.SearchText) -> _TableFilters:
    with contextlib.suppress(errors.InvalidInput):
        return _placed(request, {"mac": macs.parse_mac(searched.text, lenient=True)}, Q(pk__in=[]))
    if searched.network is None:
        return _name_filters(request, searched.text)
    lookup = {"address__net_contained_or_equal": str(searched.network)}
    if searched.address is not None:
        lookup = {"address": str(searched.address)}
    return _placed(request, lookup, networks.search(str(searched.network)))


def _placed(request: HttpRequest, lookup: dict[str, str], of_networks: Q) -> _TableFilters:
    """By the index of who names a MAC or an address; a network at a time, as the index goes."""
    network_ids = list(scoped.rows(request, Network).values_list("pk", flat=True))
    rows = scoped.rows(request, IndexEntry).filter(network_id__in=network_ids, **lookup)
    index_entries = list(rows[: find.MOST])
    return _TableFilters(
        Q(pk__in={index_entry.entry_id for index_entry in index_entries}),
        Q(pk__in={index_entry.claim_id for index_entry in index_entries}),
        Q(pk__in={index_entry.workload_id for index_entry in index_entries}),
        of_networks,
        Q(pk__in=[]),
    )


def _name_filters(request: HttpRequest, text: str) -> _TableFilters:
    """`web-1`, `shop/web-1`, `shop`, or a part of the name of a network or an IPPool, which may
    stand after its cluster; a network also by the name of its object, or of a NAD.
    """
    namespace, slash, name = text.partition("/")
    vm = Q(namespace=namespace, vm=name) if slash else Q(vm=text) | Q(namespace=text)
    name_query = Q(namespace=namespace, name=name) if slash else Q(name=text)
    part, of_object = Q(name__icontains=text), Q(object_name=text)
    if slash:
        part |= Q(cluster__name=namespace, name__icontains=name)
        nads = scoped.rows(request, NAD).filter(namespace=namespace, name=name)
        of_object = Q(namespace=namespace, object_name=name) | Q(pk__in=nads.values("network"))
    of_workloads = name_query if slash else name_query | Q(namespace=text)
    return _TableFilters(vm, vm | name_query, of_workloads, part | of_object, part)


def recognize_mac(text: str) -> str | None:
    """A MAC address, right or wrong, for the box: it is not told that it is no IPv6 address."""
    try:
        macs.parse_mac(text, lenient=True)
    except errors.InvalidInput as error:
        return None if error.code == "mac_syntax" else error.message
    return ""
