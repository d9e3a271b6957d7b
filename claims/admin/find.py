"""Search results of VM networks: by MAC, address, CIDR, VM, namespace or name; and their events in the event list."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import reduce
from operator import or_
from typing import Any

from django.db.models import Q, QuerySet, TextField
from django.db.models.functions import Cast
from django.http import HttpRequest

from claims.admin import scoped, tables
from claims.core import macs
from claims.models import (
    NAD,
    Entry,
    EntryEvent,
    IndexEntry,
    IPAMClaim,
    IPAMClaimEvent,
    IPPool,
    Network,
    Workload,
)
from claims.models.workloads import WorkloadKind
from claims.networks import networks
from claims.operations import history
from pools.admin import find
from pools.core import errors
from pools.platform import database
from pools.platform.admin import large_tables, search_text


@dataclass(frozen=True)
class _TableFilters:
    """The filter of each table for one search."""

    entries: Q
    claims: Q
    workloads: Q
    networks: Q
    ippools: Q
    found: bool = False  # the address index has rows


def finder(request: HttpRequest, searched: search_text.SearchText) -> Iterator[find.Section]:
    """Yield at most one section, with the matching rows that the user may see."""
    if not request.user.has_perm("claims.view_entry"):
        return
    filters = _table_filters(request, searched)
    rows_by_table = {
        **_rows_with_addresses(request, filters),
        "networks": _rows(request, Network, filters.networks, "cluster"),
        "ippools": _rows(request, IPPool, filters.ippools, "cluster", "network__cluster"),
    }
    if searched.network is None and not any(
        rows_by_table[name] for name in ("entries", "claims", "workloads")
    ):
        rows_by_table |= _rows_by_part(request, searched.text)
    if not any(rows_by_table.values()):
        rows_by_table |= _rows_with_part(request, searched)
    shown = [getattr(tables, name)(rows) for name, rows in rows_by_table.items() if rows]
    if shown:
        yield find.Section("cadastre/tables.html", {"tables": shown})


def _rows_by_part(request: HttpRequest, text: str) -> dict[str, list[Any]]:
    """Return the entries, claims and workloads whose VM's name contains a text."""
    namespace, slash, name = text.lower().rpartition("/")
    if len(name) < find.SHORTEST_PART:
        return {}
    tables_of_names: tuple[tuple[str, Any, str, str], ...] = (
        ("entries", Entry, "vm", "ippool__network__cluster"),
        ("claims", IPAMClaim, "vm", "network__cluster"),
        ("workloads", Workload, "name", "network__cluster"),
    )
    rows_by_table = {}
    for table, model, column, related in tables_of_names:
        query = Q(**{f"{column}__contains": name})
        if slash:
            query &= Q(namespace=namespace)
        # No index finds a part of a name.
        rows = large_tables.search_first(_matching(request, model, query, related))
        rows_by_table[table] = _first(rows)
    return rows_by_table


def _rows_with_part(request: HttpRequest, searched: search_text.SearchText) -> dict[str, list[Any]]:
    """Return the entries, claims and workloads of which a MAC or an address contains a text."""
    conditions = [Q(mac_text__contains=text) for text in macs.spellings_of_part(searched.text)]
    if searched.part:
        conditions.append(Q(address_text__contains=searched.part))
    if not conditions:
        return {}
    every = scoped.rows(request, IndexEntry).alias(
        mac_text=Cast("mac", TextField()), address_text=search_text.address_text("address")
    )
    with database.in_parallel():
        index_entries = list(every.filter(reduce(or_, conditions))[: find.MOST])
    return _rows_with_addresses(request, _filters_of(index_entries, Q(pk__in=[])))


def _rows_with_addresses(request: HttpRequest, filters: _TableFilters) -> dict[str, list[Any]]:
    """Return the entries, claims and workloads that filters name."""
    return {
        "entries": _rows(request, Entry, filters.entries, "ippool__network__cluster"),
        "claims": _rows(request, IPAMClaim, filters.claims, "network__cluster"),
        "workloads": _rows(request, Workload, filters.workloads, "network__cluster"),
    }


def _rows(request: HttpRequest, model: Any, query: Q, *related: str) -> list[Any]:
    return _first(_matching(request, model, query, *related))


def _matching(request: HttpRequest, model: Any, query: Q, *related: str) -> QuerySet[Any]:
    rows: QuerySet[Any] = scoped.rows(request, model).filter(query).select_related(*related)
    if model is Workload:  # a VM that runs is there as such
        rows = rows.exclude(kind=WorkloadKind.TEMPLATE, phase="Running")
    return rows


def _first(rows: QuerySet[Any]) -> list[Any]:
    return list(rows.order_by("pk")[: find.MOST])


def _table_filters(request: HttpRequest, searched: search_text.SearchText) -> _TableFilters:
    with contextlib.suppress(errors.InvalidInput):
        return _index_filters(
            request, {"mac": macs.parse_mac(searched.text, lenient=True)}, Q(pk__in=[])
        )
    part = macs.parse_mac_part(searched.text)
    if part is not None:
        lookup = {"mac__gte": part[0], "mac__lte": part[1]}
        filters = _index_filters(request, lookup, Q(pk__in=[]))
        if filters.found:
            return filters
    if searched.network is None:
        return _name_filters(request, searched.text)
    lookup = {"address__net_contained_or_equal": str(searched.network)}
    if searched.address is not None:
        lookup = {"address": str(searched.address)}
    return _index_filters(request, lookup, networks.search(str(searched.network)))


def _index_filters(request: HttpRequest, lookup: dict[str, str], network_query: Q) -> _TableFilters:
    """Return the filters for rows that name a MAC or an address, by the address index of each network."""
    network_ids = list(scoped.rows(request, Network).values_list("pk", flat=True))
    rows = scoped.rows(request, IndexEntry).filter(network_id__in=network_ids, **lookup)
    return _filters_of(list(rows[: find.MOST]), network_query)


def _filters_of(index_entries: Sequence[IndexEntry], network_query: Q) -> _TableFilters:
    """Return the filters for the owners of rows of the address index."""
    return _TableFilters(
        Q(pk__in={index_entry.entry_id for index_entry in index_entries}),
        Q(pk__in={index_entry.claim_id for index_entry in index_entries}),
        Q(pk__in={index_entry.workload_id for index_entry in index_entries}),
        network_query,
        Q(pk__in=[]),
        found=bool(index_entries),
    )


def _name_filters(request: HttpRequest, text: str) -> _TableFilters:
    """Return the filters for a name.

    The name is a VM (`web-1`, `shop/web-1`), a namespace (`shop`), or a part of the name of a network or
    an IPPool (`blue`, `prod/blue`). A network is also found by the name of its object or of a NAD.
    """
    namespace, slash, name = text.partition("/")
    vm = Q(namespace=namespace, vm=name) if slash else Q(vm=text) | Q(namespace=text)
    name_query = Q(namespace=namespace, name=name) if slash else Q(name=text)
    part, object_query = Q(name__icontains=text), Q(object_name=text)
    if slash:
        part |= Q(cluster__name=namespace, name__icontains=name)
        nads = scoped.rows(request, NAD).filter(namespace=namespace, name=name)
        object_query = Q(namespace=namespace, object_name=name) | Q(pk__in=nads.values("network"))
    workload_query = name_query if slash else name_query | Q(namespace=text)
    return _TableFilters(vm, vm | name_query, workload_query, part | object_query, part)


def recognize_mac(text: str) -> str | None:
    """Return "" for a MAC address, an error message for an invalid one, and None for any other text.

    The search box then does not report a MAC address as an invalid IPv6 address.
    """
    if macs.parse_mac_part(text) is not None:
        return ""
    try:
        macs.parse_mac(text, lenient=True)
    except errors.InvalidInput as error:
        return None if error.code == "mac_syntax" else error.message
    return ""


def search_events(searched: search_text.SearchText) -> Iterator[int]:
    """Yield the ids of the newest events of a MAC address, a VM (`namespace/name` or `name`) or a claim."""
    query = history.vm_query(searched.text)
    with contextlib.suppress(errors.InvalidInput):
        query |= Q(mac=macs.parse_mac(searched.text, lenient=True))
    for model, extra_query in ((EntryEvent, Q()), (IPAMClaimEvent, Q(name=searched.text))):
        rows: Any = model.objects.filter(query | extra_query).order_by("-pgh_id")
        yield from rows.values_list("pgh_id", flat=True)[: large_tables.REACH]
