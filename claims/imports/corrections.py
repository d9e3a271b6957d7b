"""Corrections of a draft: change a row's values, skip rows, or assign free addresses of the network."""

from __future__ import annotations

import copy
from collections.abc import Collection, Iterable, Iterator, Mapping
from ipaddress import IPv4Network, IPv6Network, ip_interface
from typing import Any

from django.db.models import QuerySet

from claims.core import address_requests
from claims.core.vm_import import resolving
from claims.imports import rows as import_rows
from claims.imports import validation
from claims.models import ImportRow, Network, VMImport
from claims.networks import free_addresses
from claims.networks.free_addresses import readable_subnets
from pools.core import errors
from pools.core.register_import import parsing
from pools.models.imports import RowStatus
from pools.platform.imports import states

# The fields that can be corrected, and the columns that store their source values.
COLUMNS = {
    "vm": "source_vm",
    "mac": "source_mac",
    "ips": "source_ips",
    "namespace": "source_namespace",
    "port_group": "port_group",
    "note": "note",
}
MOST_IPS = 32


def correct_row(vm_import: VMImport, number: int, values: Mapping[str, Any]) -> None:
    """Change source values of a row, and validate it and all rows that share a value with it.

    The keys of `values` are those of COLUMNS. Raises NotFound.
    """
    row = _get_row(vm_import, number)
    before = copy.copy(row)
    for name, value in values.items():
        limit = 500 if name == "note" else import_rows.LONGEST
        cleaned = (
            [import_rows.clean(text) for text in value if text.strip()]
            if name == "ips"
            else import_rows.clean(value, limit)
        )
        setattr(row, COLUMNS[name], cleaned)
    row.found = [
        problem for problem in row.found if problem["field"].partition(".")[0] not in values
    ]
    if values.keys() & {"vm", "mac", "ips"}:
        row.found_refused = False
    row.corrected, row.skipped = True, False
    _resolve_row(vm_import, before, row)


def skip_rows(vm_import: VMImport, numbers: Collection[int], *, skipped: bool) -> None:
    """Skip rows, or include skipped rows again. Raises NotFound."""
    rows = vm_import.rows.filter(number__in=numbers)
    if rows.count() != len(set(numbers)):
        raise errors.NotFound("The import has no such row.")
    if skipped:
        rows.update(skipped=True, status=RowStatus.SKIPPED)
    else:
        rows.filter(usable=True).update(skipped=False, status=RowStatus.NEW)
        rows.filter(usable=False).update(skipped=False, status=RowStatus.REFUSED)
    validation.validate(vm_import)
    states.mark_drafted(vm_import)


def assign_free_addresses(vm_import: VMImport, number: int) -> None:
    """Assign a row the lowest free address of each family that it lacks.

    A row that has an address of each family of its network gets new addresses instead. The addresses
    are not reserved before the commit. Raises NotFound, Conflict (the row has no network), PoolExhausted.
    """
    row = _get_row(vm_import, number)
    network = row.network
    if row.network_id is None or network is None or not readable_subnets(network):
        raise errors.Conflict("The row is not mapped to a network with subnets.")
    ips = list(row.ips) if _missing_families(row.ips, network) else []
    free = _free_addresses(vm_import, network, excluded_number=number)
    missing = _missing_families(ips, network)
    ips += [next(free[version]) for version in sorted(free) if version in missing]
    correct_row(vm_import, number, {"ips": ips})


def assign_missing_families(vm_import: VMImport) -> None:
    """Assign the lowest free address of the missing family to all rows with one family on a dual-stack
    network.

    Raises PoolExhausted.
    """
    rows = rows_lacking_family(vm_import).select_related("network").order_by("network_id", "number")
    completed = list(rows)
    free: dict[int, dict[int, Iterator[str]]] = {}
    for row in completed:
        network = row.network
        if network is None:
            continue
        if network.pk not in free:
            free[network.pk] = _free_addresses(vm_import, network)
        missing = sorted(_missing_families(row.ips, network))
        row.source_ips = [
            *row.source_ips,
            *(next(free[network.pk][version]) for version in missing),
        ]
        row.corrected = True
    ImportRow.objects.bulk_update(completed, ["source_ips", "corrected"], batch_size=5000)
    import_rows.reread_rows(vm_import)
    validation.validate(vm_import)
    states.mark_drafted(vm_import)


def rows_lacking_family(vm_import: VMImport) -> QuerySet[ImportRow]:
    """Return the rows that `assign_missing_families` completes."""
    return ImportRow.objects.filter(
        vm_import=vm_import,
        status=RowStatus.REFUSED,
        problems__contains=[{"code": address_requests.MISSING}],
    )


def _missing_families(ips: Iterable[str], network: Network) -> set[int]:
    families: set[int] = {subnet.version for subnet in readable_subnets(network)}
    return families - {ip_interface(text).version for text in ips}


def _free_addresses(
    vm_import: VMImport, network: Network, *, excluded_number: int = 0
) -> dict[int, Iterator[str]]:
    """Return by family an iterator over the addresses that neither the register nor the import uses.

    Addresses of the row `excluded_number` count as free. The iterators raise PoolExhausted.
    """
    free_by_family: dict[int, Iterator[str]] = {}
    for subnet in readable_subnets(network):
        if subnet.version not in free_by_family:
            free_by_family[subnet.version] = _unused_addresses(
                vm_import, network, subnet, excluded_number
            )
    return free_by_family


def _unused_addresses(
    vm_import: VMImport, network: Network, subnet: IPv4Network | IPv6Network, excluded_number: int
) -> Iterator[str]:
    # Rows that cannot be parsed or have no network: what their texts name.
    others = vm_import.rows.filter(ips=[]).exclude(source_ips=[]).exclude(number=excluded_number)
    named = [
        first
        for texts in others.values_list("source_ips", flat=True)
        for version, first, _last in parsing.find_spans("address", {"address": " ".join(texts)})
        if version == subnet.version
    ]
    return free_addresses.unused_addresses(
        network, subnet, import_id=vm_import.pk, row_number=excluded_number, named=named
    )


def _get_row(vm_import: VMImport, number: int) -> ImportRow:
    rows = ImportRow.objects.select_related("network")
    row = rows.filter(vm_import=vm_import, number=number).first()
    if row is None:
        raise errors.NotFound(f"The import has no row {number}.")
    return row


def _resolve_row(vm_import: VMImport, before: ImportRow, row: ImportRow) -> None:
    source = import_rows.source_row(row)
    destination = import_rows.Destinations(vm_import).find(source.port_group)
    resolved = resolving.resolve(source, destination, import_rows.plan(vm_import))
    for name, value in import_rows.row_values(resolved).items():
        setattr(row, name, value)
    row.entry_id = row.claim_id = row.before = None
    row.save()
    validation.validate(vm_import, validation.affected_numbers(vm_import, before, row))
    states.mark_drafted(vm_import)
