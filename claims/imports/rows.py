"""Stored rows of an import: read from the upload once, and resolved again when the mapping changes."""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Callable, Iterable, Mapping
from functools import lru_cache
from itertools import islice
from typing import Any

from django.db import connection

from claims.access import namespaces
from claims.core.networks import udn
from claims.core.vm_import import resolving
from claims.core.vm_import.resolving import Destination, Plan, Reason, ResolvedRow
from claims.core.vm_import.vm_interface import VMInterface
from claims.imports import validation
from claims.ipamclaims import ipamclaims
from claims.models import ImportRow, Network, PortGroup, VMImport
from claims.models.imports import ImportTarget
from claims.models.networks import NetworkKind
from pools.core import errors
from pools.platform import database

BATCH = 5000
LONGEST = 300
_LONGEST_NOTE = 500
# Formats of VMs that MTV migrates; MTV changes their names.
_SOURCES_OF_MTV = ("rvtools", "forklift", "powercli")
# Formats whose "port groups" are names of cluster networks.
_MANIFESTS = ("ippool-yaml", "ipamclaim-yaml")


class Destinations:
    """Destinations of rows by port group.

    The import's mapping comes first, then its network. Without one, the network named like the port group
    is used, or the port group's last mapping.
    """

    def __init__(self, vm_import: VMImport) -> None:
        scope = validation.scope(vm_import)
        rows = namespaces.visible(Network.objects.filter(cluster=vm_import.cluster_id), scope)
        self._networks: dict[int, Network] = {row.pk: row for row in rows}
        self._subnets = tuple(
            subnet for row in rows for subnet in udn.readable_networks(row.subnets)
        )
        self._default = vm_import.network_id
        self._namespace = vm_import.namespace
        self._mapped: dict[str, tuple[int | None, str]] = {}
        if vm_import.network_id is None:
            for port_group in PortGroup.objects.filter(cluster=vm_import.cluster_id):
                if vm_import.limited and not scope.has(vm_import.cluster_id, port_group.namespace):
                    port_group.namespace = ""
                self._mapped[_key(port_group.name)] = (port_group.network_id, port_group.namespace)
            self._mapped |= {_key(row.name): (row.pk, "") for row in self._networks.values()}
        for name, destination in vm_import.mapping.items():
            self._mapped[_key(name)] = (
                destination.get("network"),
                destination.get("namespace", ""),
            )
        self._destinations: dict[str, Destination | None] = {}
        self._claims = vm_import.target == ImportTarget.IPAMCLAIMS
        self._vm_networks: dict[int, Mapping[tuple[str, str], str]] = {}

    def find(self, port_group: str) -> Destination | None:
        if port_group not in self._destinations:
            self._destinations[port_group] = self._look_up(port_group)
        return self._destinations[port_group]

    def _look_up(self, port_group: str) -> Destination | None:
        network_id, namespace = self._mapped.get(_key(port_group), (None, ""))
        network = self._networks.get(network_id or self._default or 0)
        if network is None:
            return None
        if self._claims and network.pk not in self._vm_networks:
            self._vm_networks[network.pk] = ipamclaims.vm_networks(network)
        return Destination(
            network.pk,
            network.name,
            tuple(network.subnets),
            namespace or self._namespace or self._only_namespace(network),
            self._vm_networks.get(network.pk, {}),
            self._subnets,
        )

    def _only_namespace(self, network: Network) -> str:
        """Return the namespace of a UserDefinedNetwork, which serves its own namespace only."""
        return network.namespace if network.kind == NetworkKind.UDN else ""


def _key(name: str) -> str:
    return name.strip().casefold()


def plan(vm_import: VMImport) -> Plan:
    """Return the options for resolving the rows of an import."""
    names = validation.scope(vm_import).namespaces.get(vm_import.cluster_id, frozenset())
    return Plan(
        resolving.IPAMCLAIMS if vm_import.target == ImportTarget.IPAMCLAIMS else resolving.IPPOOL,
        names if vm_import.limited else None,
        moved=vm_import.format.startswith(_SOURCES_OF_MTV),
        manifests=vm_import.format in _MANIFESTS,
    )


def store(
    vm_import: VMImport, interfaces: Iterable[VMInterface], step: Callable[[int], None]
) -> int:
    """Store the rows of an upload in batches, and return their number.

    `step` is called after each batch with the number of rows done. Errors of reading are raised.
    """
    destinations, import_plan = Destinations(vm_import), plan(vm_import)
    rows = iter(interfaces)
    rows_done = 0
    while batch := list(islice(rows, BATCH)):
        # Lists: the connection is busy while COPY runs, and a destination may have to be read.
        lines = [
            _line(vm_import.pk, n, interface, destinations, import_plan)
            for n, interface in enumerate(batch, rows_done + 1)
        ]
        database.copy("claims_importrow", _COLUMNS, lines)
        rows_done += len(batch)
        step(rows_done)
    return rows_done


_RESOLVED = (
    *("network_id", "vm", "namespace", "mac", "ips", "claim_name", "usable"),
    *("problems", "status", "reasons"),
)
_COLUMNS = (
    *("vm_import_id", "number", "row", "sheet", "source_vm", "source_mac", "source_ips"),
    *("source_namespace", "port_group", "note", "found", "found_refused"),
    *_RESOLVED,
)


def _line(
    import_id: int,
    number: int,
    interface: VMInterface,
    destinations: Destinations,
    import_plan: Plan,
) -> tuple[object, ...]:
    source = _cleaned(interface)
    return (
        import_id,
        number,
        source.row,
        clean(source.sheet, 64) if source.sheet else "",
        source.vm,
        source.mac,
        list(source.ips),
        source.namespace,
        source.port_group,
        source.note,
        _problems(source.problems) if source.problems else "[]",
        source.refused,
        *_resolved(resolving.resolve(source, destinations.find(source.port_group), import_plan)),
    )


def _cleaned(source: VMInterface) -> VMInterface:
    """Return the source values, cleaned for storage; nearly every row needs no change."""
    text = "".join(
        (source.vm, source.mac, source.port_group, source.namespace, source.note, *source.ips)
    )
    if len(text) <= LONGEST and text.isprintable():
        return source
    return dataclasses.replace(
        source,
        vm=clean(source.vm),
        mac=clean(source.mac),
        ips=tuple(map(clean, source.ips)),
        port_group=clean(source.port_group),
        namespace=clean(source.namespace),
        note=clean(source.note, _LONGEST_NOTE),
    )


def _resolved(row: ResolvedRow) -> tuple[object, ...]:
    """Return the columns _RESOLVED for COPY."""
    status, reasons = "new" if row.usable else "refused", _json(row.reasons)
    values = (row.network_id, row.vm, row.namespace, row.mac, list(row.ips), row.claim_name)
    return (*values, row.usable, reasons, status, reasons)


def clean(text: str, longest: int = LONGEST) -> str:
    """Return the text without control characters and surrounding blanks, at most `longest` characters."""
    if text.isprintable() and len(text) <= longest:
        return text.strip()
    printable = "".join(char if char.isprintable() else " " for char in text[: 4 * longest])
    return " ".join(printable.split())[:longest]


@lru_cache(4096)
def _json(reasons: tuple[Reason, ...]) -> str:
    return json.dumps([{"code": code, "message": clean(message, 500)} for code, message in reasons])


@lru_cache(4096)
def _problems(problems: tuple[errors.FieldProblem, ...]) -> str:
    return json.dumps(
        [
            {key: clean(value, 500) for key, value in dataclasses.asdict(problem).items()}
            for problem in problems
        ]
    )


# --- resolving stored rows again ------------------------------------------------------------------


def source_row(row: ImportRow) -> VMInterface:
    """Return the source values of a row, as its file or a correction has them."""
    return VMInterface(
        row.row,
        row.source_vm,
        row.source_mac,
        tuple(row.source_ips),
        row.port_group,
        row.source_namespace,
        note=row.note,
        problems=tuple(errors.FieldProblem(**problem) for problem in row.found),
        refused=row.found_refused,
    )


def row_values(row: ResolvedRow) -> dict[str, Any]:
    """Return the columns of a resolved row."""
    reasons = json.loads(_json(row.reasons))
    values = dict(zip(_RESOLVED, _resolved(row), strict=True))
    return values | {"problems": reasons, "reasons": reasons}


def reread_rows(vm_import: VMImport) -> None:
    """Resolve all rows again by the import's mapping, network and namespace; skipped rows stay skipped.

    The caller opens the transaction.
    """
    destinations, import_plan = Destinations(vm_import), plan(vm_import)
    last_number = 0
    with connection.cursor() as cursor:
        cursor.execute(_CREATE_REREAD)
    rows = vm_import.rows.order_by("number")
    while batch := list(rows.filter(number__gt=last_number)[:BATCH]):
        last_number = batch[-1].number
        lines = []
        for row in batch:
            source = source_row(row)
            destination = destinations.find(source.port_group)
            resolved = resolving.resolve(source, destination, import_plan)
            lines.append((row.number, *_resolved(resolved)))
        database.copy("claims_reread", ("number", *_RESOLVED), lines)
    database.rows(_UPDATE_FROM_REREAD, [vm_import.pk], prepare=False)
    with connection.cursor() as cursor:
        cursor.execute("DROP TABLE claims_reread")


_CREATE_REREAD = """
    CREATE TEMPORARY TABLE claims_reread (number integer, network_id bigint, vm text,
        namespace text, mac macaddr, ips varchar[], claim_name text, usable boolean,
        problems jsonb, status text, reasons jsonb) ON COMMIT DROP
"""
_UPDATE_FROM_REREAD = """
    UPDATE claims_importrow r SET network_id = w.network_id, vm = w.vm, namespace = w.namespace,
        mac = w.mac, ips = w.ips, claim_name = w.claim_name, usable = w.usable,
        problems = w.problems, reasons = w.reasons, entry_id = NULL, claim_id = NULL, before = NULL,
        status = CASE WHEN r.skipped THEN 'skipped' ELSE w.status END
    FROM claims_reread w WHERE r.vm_import_id = %s AND r.number = w.number RETURNING 1
"""
