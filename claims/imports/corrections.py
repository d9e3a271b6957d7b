"""Corrections of a draft: change a row's values, or assign free addresses of the network."""

from __future__ import annotations

import copy
from collections.abc import Iterable, Iterator, Mapping
from ipaddress import IPv4Network, IPv6Network, ip_interface
from typing import Any

from django.db.models import QuerySet

from claims.core.networks import static_vms, udn
from claims.imports import rows as import_rows
from claims.imports import validation
from claims.models import Network, VMImport, VMRow
from claims.networks import pools as network_pools
from pools.core import errors
from pools.core.register_import import parsing
from pools.models.imports import RowStatus
from pools.platform.imports import rows as stored_rows
from pools.platform.imports import states

MOST_IPS = 32


def correct_row(vm_import: VMImport, number: int, values: Mapping[str, Any]) -> None:
    """Change source values of a row (import_rows.TEXTS), and validate it and all rows that share a value with it.

    Raises NotFound.
    """
    row = _get_row(vm_import, number)
    before = copy.copy(row)
    texts: dict[str, Any] = {
        name: [import_rows.clean(text) for text in value if text.strip()]
        if name == "ips"
        else import_rows.clean(value, 500 if name == "note" else import_rows.LONGEST)
        for name, value in values.items()
    }
    if problems := row.texts.get("problems"):
        texts["problems"] = [
            problem for problem in problems if problem["field"].partition(".")[0] not in values
        ]
        texts["refused"] = row.texts["refused"] and values.keys().isdisjoint({"vm", "mac", "ips"})
    row.texts = row.texts | texts
    row.corrected, row.skipped = True, False
    destinations, plan = import_rows.Destinations(vm_import), import_rows.plan(vm_import)
    import_rows.resolve(row, import_rows.source_row(row), destinations, plan)
    stored_rows.save([row])
    validation.validate(vm_import, validation.affected_numbers(vm_import, before, row))
    states.mark_drafted(vm_import)


def assign_free_addresses(vm_import: VMImport, number: int) -> None:
    """Assign a row the lowest free address of each family that it lacks.

    A row that has an address of each family of its network gets new addresses instead. The addresses
    are not reserved before the commit. Raises NotFound, Conflict (the row has no network), PoolExhausted.
    """
    row = _get_row(vm_import, number)
    network = Network.objects.filter(pk=row.network_id or 0).first()
    if network is None or not udn.readable_networks(network.subnets):
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
    completed = list(rows_lacking_family(vm_import).order_by("number"))
    networks = Network.objects.in_bulk({row.network_id for row in completed})
    free = {pk: _free_addresses(vm_import, network) for pk, network in networks.items()}
    for row in completed:
        if row.network_id in networks:
            missing = sorted(_missing_families(row.ips, networks[row.network_id]))
            added = [next(free[row.network_id][version]) for version in missing]
            row.source_ips = [*row.source_ips, *added]
            row.corrected = True
    stored_rows.save(completed)
    import_rows.reread_rows(vm_import)
    validation.validate(vm_import)
    states.mark_drafted(vm_import)


def rows_lacking_family(vm_import: VMImport) -> QuerySet[VMRow]:
    """Return the rows that `assign_missing_families` completes."""
    return vm_import.rows.filter(
        status=RowStatus.INVALID, problems__contains=[{"code": static_vms.MISSING}]
    )


def _missing_families(ips: Iterable[str], network: Network) -> set[int]:
    families: set[int] = {subnet.version for subnet in udn.readable_networks(network.subnets)}
    return families - {ip_interface(text).version for text in ips}


def _free_addresses(
    vm_import: VMImport, network: Network, *, excluded_number: int = 0
) -> dict[int, Iterator[str]]:
    """Return by family an iterator over the addresses that neither the register nor the import uses.

    Addresses of the row `excluded_number` count as free. The iterators raise PoolExhausted.
    """
    free_by_family: dict[int, Iterator[str]] = {}
    for subnet in udn.readable_networks(network.subnets):
        if subnet.version not in free_by_family:
            free_by_family[subnet.version] = _unused_addresses(
                vm_import, network, subnet, excluded_number
            )
    return free_by_family


def _unused_addresses(
    vm_import: VMImport, network: Network, subnet: IPv4Network | IPv6Network, excluded_number: int
) -> Iterator[str]:
    # Rows that cannot be parsed or have no network: what their texts name.
    others = vm_import.rows.filter(values__ips=[]).exclude(number=excluded_number)
    named = [
        first
        for texts in others.values_list("texts__ips", flat=True)
        for version, first, _last in parsing.find_spans("address", {"address": " ".join(texts)})
        if version == subnet.version
    ]
    return network_pools.unused_addresses(
        network, subnet, import_id=vm_import.pk, row_number=excluded_number, named=named
    )


def _get_row(vm_import: VMImport, number: int) -> VMRow:
    row: VMRow | None = vm_import.rows.filter(number=number).first()
    if row is None:
        raise errors.NotFound(f"The import has no row {number}.")
    return row
