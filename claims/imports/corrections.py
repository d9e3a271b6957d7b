"""Corrections of a draft: change a row's values, skip rows, or assign free addresses of the network."""

from __future__ import annotations

import copy
from collections.abc import Collection, Iterable, Iterator, Mapping
from ipaddress import IPv4Network, IPv6Network, ip_address, ip_interface
from typing import Any

from django.db.models import QuerySet

from claims.address_index import own_addresses
from claims.core import address_requests
from claims.core.vm_import import resolving
from claims.imports import drafts, states, validation
from claims.imports import rows as import_rows
from claims.ipamclaims.ingest import readable_subnets
from claims.models import ImportRow, Network, VMImport
from claims.models.imports import RowStatus, Status
from pools.core import errors
from pools.platform import database, events
from pools.sql import statements

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


def correct_row(
    import_id: int,
    number: int,
    values: Mapping[str, Any],
    *,
    author: events.Author,
    user: Any = None,
) -> ImportRow:
    """Change source values of a row, and validate it and all rows that share a value with it.

    The keys of `values` are those of COLUMNS. A correction is parsed as leniently as a file: remaining
    problems are in the row's reasons. Raises NotFound, ImportState, NotAllowed.
    """
    with events.recorded_by(author):
        vm_import = drafts.lock_import(import_id, Status.DRAFTED, user=user)
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
    return _get_row(vm_import, number)


def skip_rows(
    import_id: int,
    numbers: Collection[int],
    *,
    skipped: bool,
    author: events.Author,
    user: Any = None,
) -> VMImport:
    """Skip rows, or include skipped rows again. Raises NotFound, ImportState, NotAllowed."""
    with events.recorded_by(author):
        vm_import = drafts.lock_import(import_id, Status.DRAFTED, user=user)
        rows = ImportRow.objects.filter(vm_import=vm_import, number__in=numbers)
        if rows.count() != len(set(numbers)):
            raise errors.NotFound("The import has no such row.")
        if skipped:
            rows.update(skipped=True, status=RowStatus.SKIPPED)
        else:
            rows.filter(usable=True).update(skipped=False, status=RowStatus.NEW)
            rows.filter(usable=False).update(skipped=False, status=RowStatus.REFUSED)
        states.revalidate(vm_import)
    return drafts.get(import_id)


def assign_free_addresses(
    import_id: int, number: int, *, author: events.Author, user: Any = None
) -> ImportRow:
    """Assign a row the lowest free address of each family that it lacks.

    A row that has an address of each family of its network gets new addresses instead. The addresses
    are not reserved before the commit. Raises NotFound, ImportState, Conflict (the row has no network),
    PoolExhausted.
    """
    with events.recorded_by(author):
        vm_import = drafts.lock_import(import_id, Status.DRAFTED, user=user)
        row = _get_row(vm_import, number)
        network = row.network
        if row.network_id is None or network is None or not readable_subnets(network):
            raise errors.Conflict("The row is not mapped to a network with subnets.")
        ips = list(row.ips) if _missing_families(row.ips, network) else []
        free = _free_addresses(vm_import, network, excluded_number=number)
        ips += [
            next(free[version])
            for version in sorted(free)
            if version in _missing_families(ips, network)
        ]
        return correct_row(import_id, number, {"ips": ips}, author=author, user=user)


def assign_missing_families(import_id: int, *, author: events.Author, user: Any = None) -> VMImport:
    """Assign the lowest free address of the missing family to all rows with one family on a dual-stack
    network.

    Raises NotFound, ImportState, NotAllowed, PoolExhausted.
    """
    with events.recorded_by(author):
        vm_import = drafts.lock_import(import_id, Status.DRAFTED, user=user)
        rows = list(
            rows_lacking_family(vm_import)
            .select_related("network")
            .order_by("network_id", "number")
        )
        free: dict[int, dict[int, Iterator[str]]] = {}
        for row in rows:
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
        ImportRow.objects.bulk_update(rows, ["source_ips", "corrected"], batch_size=5000)
        import_rows.reread_rows(vm_import)
        states.revalidate(vm_import)
    return drafts.get(import_id)


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
    is_point_to_point = subnet.num_addresses <= 2  # RFC 3021, RFC 6164
    candidate = int(subnet.network_address) + (not is_point_to_point)
    end = int(subnet.broadcast_address) + 1 - (not is_point_to_point and subnet.version == 4)
    own_spans = [
        (int(own_address.span.first), int(own_address.span.last))
        for own_address in own_addresses.own_spans(network)
        if own_address.span.family == subnet.version
    ]
    used_spans = [(host, host) for host in _used_hosts(vm_import, network, subnet, excluded_number)]
    for first, last in sorted([*used_spans, *own_spans, (end, end)]):
        for number in range(candidate, min(first, end)):
            address = subnet.network_address + (number - int(subnet.network_address))
            yield f"{address}/{subnet.prefixlen}"
        candidate = max(candidate, last + 1)
    raise errors.PoolExhausted(f"{network.name} has no free IPv{subnet.version} address.")


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
    states.revalidate(vm_import, validation.affected_numbers(vm_import, before, row))


def _used_hosts(
    vm_import: VMImport, network: Network, subnet: IPv4Network | IPv6Network, excluded_number: int
) -> Iterator[int]:
    values = {
        "network": network.pk,
        "space": network.pool.space_id if network.pool else 0,
        "subnet": str(subnet),
        "import": vm_import.pk,
        "number": excluded_number,
    }
    for (text,) in database.rows(_USED, values, prepare=False):
        yield int(ip_address(text))


_USED = statements.read("claims/used_addresses_of_subnet")
