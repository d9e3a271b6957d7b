"""Validation of an import's rows, against the current register and against each other.

One statement validates all rows, or those that a correction affects. Conflicts follow the rules of
claims/address_index/conflicts.py: a row is validated as the entry or claim that it would become.

The status of a row is new, changed, unchanged, conflict or invalid. Conflict: another index entry, the
network itself or another row has its MAC or an address. Invalid: the row cannot be parsed, its user may not
write it, or its addresses would keep the VM from starting (claims/core/vm_import).
"""

from __future__ import annotations

from collections.abc import Collection

from claims.access import namespaces
from claims.address_index import conflicts
from claims.core.networks import kept_addresses, static_vms
from claims.core.vm_import import resolving
from claims.models import IPPool, Network, VMImport, VMRow
from claims.models.imports import ImportTarget
from pools.platform import database
from pools.platform.imports import rows
from pools.sql import statements

KEPT = "kept_address"  # the row lacks an address that its entry or claim has


def validate(vm_import: VMImport, numbers: Collection[int] | None = None) -> None:
    """Update the status of all rows; with `numbers`, compare only these rows with the register and each other."""
    networks = _networks(vm_import)
    claims, user_scope = vm_import.target == ImportTarget.IPAMCLAIMS, scope(vm_import)
    visible = {
        "everything": user_scope.everything,
        "namespaces": sorted(user_scope.namespaces.get(vm_import.cluster_id, ())),
    }
    lacking = [static_vms.MISSING, *([] if claims else [resolving.NO_ADDRESS])]
    kept = {"import": vm_import.pk, "lacking": lacking, "claims": claims, "kept": KEPT}
    database.fetch(_COMPLETE, {**kept, **visible})
    ippools = IPPool.objects.filter(network__in=networks).values_list("pk", flat=True)
    values = {
        "cluster": vm_import.cluster_id,
        "networks": list(networks),
        "spaces": [n.pool.space_id for n in networks.values() if n.pool],
        "ippools": list(ippools),
        "claims": claims,
        "declined": [*resolving.DECLINED, *lacking],
        **visible,
        **_own_address_values(networks),
    }
    rows.compare(vm_import, _VALIDATE, numbers, values)


_COMPLETE = statements.read("claims/complete_import_rows")


def scope(vm_import: VMImport) -> namespaces.Scope:
    """Return the namespaces that the import may read and write: all, or those of its user."""
    if not vm_import.limited:
        return namespaces.EVERYTHING
    return namespaces.owner_scope(vm_import.user) if vm_import.user else namespaces.Scope()


def affected_numbers(vm_import: VMImport, before: VMRow, after: VMRow) -> list[int]:
    """Return the numbers of the rows whose status may change because one row has changed."""
    values = {
        "import": vm_import.pk,
        "number": after.number,
        "macs": [str(row.mac) for row in (before, after) if row.mac],
        "hosts": [ip.partition("/")[0] for row in (before, after) for ip in row.ips],
        "vms": [row.vm for row in (before, after) if row.vm],
    }
    return [number for (number,) in database.rows(_AFFECTED, values, prepare=False)]


_AFFECTED = statements.read("claims/import_rows_sharing_values")


def _networks(vm_import: VMImport) -> dict[int, Network]:
    rows = vm_import.rows.filter(verdict="").order_by()
    network_ids = rows.values_list("values__network", flat=True).distinct()
    return Network.objects.select_related("pool").in_bulk([pk for pk in network_ids if pk])


def _own_address_values(networks: dict[int, Network]) -> dict[str, list[object]]:
    network_addresses = [
        (pk, address)
        for pk, network in networks.items()
        for address in conflicts.find_own_spans(network)
    ]
    macs = [
        (pk, mac, kept_span)
        for pk, network in networks.items()
        for mac, kept_span in kept_addresses.kept_macs(network).items()
    ]
    return {
        "own_networks": [pk for pk, _ in network_addresses],
        "own_firsts": [str(address.span.first) for _, address in network_addresses],
        "own_lasts": [str(address.span.last) for _, address in network_addresses],
        "own_types": [address.type for _, address in network_addresses],
        "own_names": [address.description for _, address in network_addresses],
        "own_bad": [not address.is_note for _, address in network_addresses],
        "own_mac_networks": [pk for pk, _, _ in macs],
        "own_macs": [mac for _, mac, _ in macs],
        "own_mac_types": [kept_span.type for _, _, kept_span in macs],
        "own_mac_ports": [kept_span.port for _, _, kept_span in macs],
    }


_VALIDATE = statements.read("claims/validate_import_rows")
