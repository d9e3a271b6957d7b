"""Addresses of rows that a commit leaves out: the source has them in use, so a reserved range of each withholds it.

Rule `left-out-rows-keep-their-addresses`. The ranges only note what is in use: a later import, an entry or a claim that
names the address gets it, and an import that writes it ends its range, as the undo of the import does. VM owners'
imports reserve nothing.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from ipaddress import ip_address, ip_interface

from django.db.models import F, QuerySet

from claims.core.networks import kept_addresses
from claims.models import IndexEntry, Network, VMImport, VMRow
from pools.core.addresses import Address, AddressRange
from pools.core.register_import import columns, parsing
from pools.models import Block, Pool, PoolCIDR, ReservedRange
from pools.models.imports import RowStatus
from pools.register import pool_cidrs

_LEFT_OUT = (RowStatus.CONFLICT, RowStatus.INVALID, RowStatus.LEFT_OUT)
_LONGEST_NAME = 200


def withhold(vm_import: VMImport) -> None:
    """Reserve the addresses of the rows that were left out, in the transaction of the commit, which has the locks."""
    if vm_import.limited:
        return
    for cidr in _cidrs(vm_import):
        networks = Network.objects.filter(pool=cidr.pool_id).values_list("pk", flat=True)
        on_network = vm_import.rows.filter(values__network__in=[*networks]).order_by("number")
        if noted := list(_noted(cidr)):
            written = set(_written(on_network))
            _end_ranges(cidr, [row for row in noted if row.first in written])
        names: dict[Address, str] = {}
        for address, name in _in_use(on_network.filter(status__in=_LEFT_OUT)):
            if address in cidr.cidr:
                names.setdefault(address, name)
        if names:
            _reserve(cidr, names, vm_import)


def _reserve(cidr: PoolCIDR, names: Mapping[Address, str], vm_import: VMImport) -> None:
    """Reserve the addresses that nobody has and no range has, each with the name of its VM."""
    held = Block.objects.filter(space=cidr.space_id, state="held", cidr__net_contained=cidr.cidr)
    known = {block.network_address for block in held.values_list("cidr", flat=True)}
    named = IndexEntry.objects.filter(network__pool=cidr.pool_id).exclude(address=None)
    known |= {*named.values_list("address", flat=True)}
    ranges = [AddressRange(row.first, row.last) for row in cidr.reserved_ranges.all()]
    reserved = 0
    for address, name in names.items():
        span = AddressRange(address, address)
        if address not in known and not any(span.overlaps(other) for other in ranges):
            reason = f"{kept_addresses.LEFT_OUT}: {name[:_LONGEST_NAME]} ({vm_import})"
            pool_cidrs.reserve(cidr, span, reason)
            reserved += 1
    if reserved:
        _note_change(cidr)


def _written(rows: QuerySet[VMRow]) -> Iterator[Address]:
    for ips in rows.filter(written=True).values_list("values__ips", flat=True):
        yield from (ip_interface(text).ip for text in ips)


def _in_use(rows: QuerySet[VMRow]) -> Iterator[tuple[Address, str]]:
    """Yield each address that the rows name, also where they cannot be parsed, with the name of its VM."""
    for row in rows:
        for text in row.ips or row.source_ips:
            for _version, first, _last in parsing.find_spans(columns.ADDRESS, {"address": text}):
                yield ip_address(first), row.vm or row.source_vm or row.source_mac


def end(vm_import: VMImport) -> None:
    """End the ranges of an import, in the transaction of its undo, which has the locks."""
    for cidr in _cidrs(vm_import):
        _end_ranges(cidr, _noted(cidr).filter(reason__endswith=f" ({vm_import})"))


def _noted(cidr: PoolCIDR) -> QuerySet[ReservedRange]:
    return cidr.reserved_ranges.filter(reason__startswith=kept_addresses.LEFT_OUT)


def _end_ranges(cidr: PoolCIDR, rows: Iterable[ReservedRange]) -> None:
    ended = list(rows)
    for row in ended:
        pool_cidrs.unreserve(row)
    if ended:
        _note_change(cidr)


def _note_change(cidr: PoolCIDR) -> None:
    """Make the pool another version, so that no form that showed the former one overwrites it."""
    Pool.objects.filter(pk=cidr.pool_id).update(version=F("version") + 1)


def _cidrs(vm_import: VMImport) -> list[PoolCIDR]:
    """Return the CIDRs of the networks of an import."""
    ids = vm_import.rows.order_by().values_list("values__network", flat=True).distinct()
    networks = [pk for pk in ids if pk]
    rows = PoolCIDR.objects.filter(pool__network__in=networks).select_related("pool")
    return [cidr for cidr in rows.order_by("pool_id", "position") if not cidr.closed]
