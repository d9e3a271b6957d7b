"""Stored rows of an import: read from the upload once, and resolved again when the mapping changes."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterable, Mapping
from itertools import islice
from typing import Any

from claims.access import namespaces
from claims.core.networks import udn
from claims.core.vm_import import resolving
from claims.core.vm_import.resolving import Destination, Plan
from claims.core.vm_import.vm_interface import VMInterface
from claims.ipamclaims import ipamclaims
from claims.models import Network, PortGroup, VMImport, VMRow
from claims.models.imports import ImportTarget
from claims.models.networks import NetworkKind
from pools.core import errors
from pools.models.imports import RowStatus
from pools.platform.imports import rows as stored_rows

BATCH = 5000
# What a row of a file says; a correction may change it.
TEXTS = ("vm", "mac", "ips", "port_group", "namespace", "note")
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
        scope = namespaces.import_scope(vm_import)
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
    names = namespaces.import_scope(vm_import).namespaces.get(vm_import.cluster_id, frozenset())
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
    numbered = enumerate(interfaces, start=1)
    rows_done = 0
    while batch := list(islice(numbered, BATCH)):
        # A list: the connection is busy while COPY runs, and a destination may have to be read.
        rows = []
        for number, interface in batch:
            source = _cleaned(interface)
            row = VMRow(
                source_import_id=vm_import.pk,
                number=number,
                file=clean(source.sheet, 64) if source.sheet else "",
                line=source.row,
                texts=_texts(source),
            )
            resolve(row, source, destinations, import_plan)
            rows.append(row)
        stored_rows.save(rows)
        rows_done += len(batch)
        step(rows_done)
    return rows_done


def _texts(source: VMInterface) -> dict[str, Any]:
    """Return what a row of a file says, with the problems of the file itself and whether they refuse the row."""
    texts: dict[str, Any] = {name: getattr(source, name) for name in TEXTS}
    if source.problems:
        texts |= {"problems": _problems(source.problems), "refused": source.refused}
    return texts


def resolve(row: VMRow, source: VMInterface, destinations: Destinations, import_plan: Plan) -> None:
    """Set the values that follow from the row's own texts, and the problems that they have."""
    destination = destinations.find(source.port_group)
    resolved = resolving.resolve(source, destination, import_plan)
    row.values = {
        "network": resolved.network_id,
        "vm": resolved.vm,
        "namespace": resolved.namespace,
        "mac": resolved.mac,
        "ips": list(resolved.ips),
        "claim_name": resolved.claim_name,
    }
    row.problems = [
        {"code": code, "message": clean(message, 500)} for code, message in resolved.reasons
    ]
    row.verdict = "" if resolved.usable else RowStatus.INVALID.value


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


def clean(text: str, longest: int = LONGEST) -> str:
    """Return the text without control characters and surrounding blanks, at most `longest` characters."""
    if text.isprintable() and len(text) <= longest:
        return text.strip()
    printable = "".join(char if char.isprintable() else " " for char in text[: 4 * longest])
    return " ".join(printable.split())[:longest]


def _problems(problems: Iterable[errors.FieldProblem]) -> list[dict[str, str]]:
    return [
        {key: clean(value, 500) for key, value in dataclasses.asdict(problem).items()}
        for problem in problems
    ]


# --- resolving stored rows again ------------------------------------------------------------------


def source_row(row: VMRow) -> VMInterface:
    """Return the source values of a row, as its file or a correction has them."""
    problems = tuple(errors.FieldProblem(**problem) for problem in row.texts.get("problems", ()))
    tuples = {"ips": tuple(row.source_ips), "problems": problems}
    return VMInterface(row.line, **{**row.texts, **tuples})


def reread_rows(vm_import: VMImport) -> None:
    """Resolve all rows again by the import's mapping, network and namespace. The caller opens the transaction."""
    destinations, import_plan = Destinations(vm_import), plan(vm_import)
    for batch in stored_rows.in_batches(vm_import.rows, BATCH):
        for row in batch:
            resolve(row, source_row(row), destinations, import_plan)
        stored_rows.save(batch)
