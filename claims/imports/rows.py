"""The rows of an import as they are stored: read from a file once, read again when the mapping changes."""

from __future__ import annotations

import dataclasses
import json
import re
from collections.abc import Callable, Iterable, Mapping
from functools import lru_cache
from itertools import islice
from typing import Any

from django.db import connection

from claims.access import namespaces
from claims.core.vm_import import resolving
from claims.core.vm_import.resolving import Destination, Plan, Reason, ResolvedRow, SourceRow
from claims.core.vm_import.vm_interface import VMInterface
from claims.imports import validation
from claims.ipamclaims import naming
from claims.models import ImportRow, Network, PortGroup, VMImport
from claims.models.imports import ImportTarget
from claims.models.networks import NetworkKind
from pools.core import errors
from pools.platform import database

BATCH = 5000
_PLAIN = re.compile("[0-9a-fA-F.:/]+")
LONGEST = 300
_LONGEST_NOTE = 500
# Whose VMs are moved by MTV, which gives them other names than they had.
_SOURCES_OF_MTV = ("rvtools", "forklift", "powercli")
# Whose "port groups" are names of networks of a cluster.
_MANIFESTS = ("ippool-yaml", "ipamclaim-yaml")


class Destinations:
    """Where rows go by their port group: as mapped for this import; to its network; else to the
    network of that very name, or where the port group went last."""

    def __init__(self, vm_import: VMImport) -> None:
        scope = validation.scope(vm_import)
        rows = namespaces.visible(Network.objects.filter(cluster=vm_import.cluster_id), scope)
        self._networks: dict[int, Network] = {row.pk: row for row in rows}
        self._default = vm_import.network_id
        self._namespace = vm_import.namespace
        self._mapped: dict[str, tuple[int | None, str]] = {}
        if vm_import.network_id is None:
            for port_group in PortGroup.objects.filter(cluster=vm_import.cluster_id):
                if vm_import.limited and not scope.has(vm_import.cluster_id, port_group.namespace):
                    port_group.namespace = ""
                self._mapped[_key(port_group.name)] = (port_group.network_id, port_group.namespace)
            self._mapped |= {_key(row.name): (row.pk, "") for row in self._networks.values()}
        for name, to in vm_import.mapping.items():
            self._mapped[_key(name)] = (to.get("network"), to.get("namespace", ""))
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
            self._vm_networks[network.pk] = naming.vm_networks(network)
        return Destination(
            network.pk,
            network.name,
            tuple(network.subnets),
            namespace or self._namespace or self._only_namespace(network),
            self._vm_networks.get(network.pk, {}),
        )

    def _only_namespace(self, network: Network) -> str:
        """A UserDefinedNetwork is one of its own namespace."""
        return network.namespace if network.kind == NetworkKind.UDN else ""


def _key(name: str) -> str:
    return name.strip().casefold()


def plan(vm_import: VMImport) -> Plan:
    """How the rows of an import are read."""
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
    """Store what a file has, in batches; `step` is called with the number of rows after each.

    Whatever reading the file raises ends it.
    """
    destinations, import_plan = Destinations(vm_import), plan(vm_import)
    rows = iter(interfaces)
    done = 0
    while batch := list(islice(rows, BATCH)):
        # Lists: the connection is busy while COPY runs, and a destination may have to be read.
        lines = [
            _line(vm_import.pk, n, interface, destinations, import_plan)
            for n, interface in enumerate(batch, done + 1)
        ]
        database.copy("claims_importrow", _COLUMNS, lines)
        done += len(batch)
        step(done)
    return done


_COLUMNS = (
    "vm_import_id", "number", "row", "sheet", "source_vm", "source_mac", "source_ips",
    "source_namespace", "port_group", "note", "found", "found_refused",
    "network_id", "vm", "namespace", "mac", "ips", "claim_name", "usable", "problems", "verdict",
    "reasons",
)  # fmt: skip


def _line(
    import_id: int,
    number: int,
    interface: VMInterface,
    destinations: Destinations,
    import_plan: Plan,
) -> tuple[object, ...]:
    source = _source(interface)
    return (
        import_id, number, interface.row, clean(interface.sheet, 64) if interface.sheet else "", source.vm, source.mac,
        _array(source.ips), source.namespace, source.port_group, source.note,
        _problems(interface.problems) if interface.problems else "[]", interface.refused,
        *_resolved(resolving.resolve(source, destinations.find(source.port_group), import_plan)),
    )  # fmt: skip


def _source(interface: VMInterface) -> SourceRow:
    """What may be stored and shown; nearly every row as it is."""
    whole = "".join(
        (
            interface.vm,
            interface.mac,
            interface.port_group,
            interface.namespace,
            interface.note,
            *interface.ips,
        )
    )
    if len(whole) <= LONGEST and whole.isprintable():
        return SourceRow(
            interface.vm, interface.mac, interface.ips, interface.port_group, interface.namespace, interface.note, interface.problems,
            interface.refused,
        )  # fmt: skip
    return SourceRow(
        clean(interface.vm),
        clean(interface.mac),
        tuple(map(clean, interface.ips)),
        clean(interface.port_group),
        clean(interface.namespace),
        clean(interface.note, _LONGEST_NOTE),
        interface.problems,
        interface.refused,
    )


def _resolved(row: ResolvedRow) -> tuple[object, ...]:
    reasons = _json(row.reasons) if row.reasons else "[]"
    return (
        row.network_id, row.vm, row.namespace, row.mac, _array(row.ips), row.claim_name, row.usable,
        reasons, "new" if row.usable else "refused", reasons,
    )  # fmt: skip


def clean(text: str, longest: int = LONGEST) -> str:
    """As it may be stored and shown: no control characters, and not endless."""
    if text.isprintable() and len(text) <= longest:
        return text.strip()
    plain = "".join(char if char.isprintable() else " " for char in text[: 4 * longest])
    return " ".join(plain.split())[:longest]


def _array(texts: tuple[str, ...]) -> str:
    """A PostgreSQL array; a list would be written an element at a time."""
    if not texts:
        return "{}"
    if len(texts) == 1 and texts[0].isascii() and _PLAIN.fullmatch(texts[0]):
        return f"{{{texts[0]}}}"
    return (
        "{"
        + ",".join('"' + text.replace("\\", r"\\").replace('"', r"\"") + '"' for text in texts)
        + "}"
    )


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


# --- again ----------------------------------------------------------------------------------------


def source_of(row: ImportRow) -> SourceRow:
    """The row in the words of its file, or of whoever corrected it."""
    return SourceRow(
        row.source_vm,
        row.source_mac,
        tuple(row.source_ips),
        row.port_group,
        row.source_namespace,
        row.note,
        tuple(errors.FieldProblem(**problem) for problem in row.found),
        row.found_refused,
    )


def values(row: ResolvedRow) -> dict[str, Any]:
    """What a row gets that was read again."""
    reasons = json.loads(_json(row.reasons)) if row.reasons else []
    return {
        "network_id": row.network_id,
        "vm": row.vm,
        "namespace": row.namespace,
        "mac": row.mac,
        "ips": list(row.ips),
        "claim_name": row.claim_name,
        "usable": row.usable,
        "problems": reasons,
        "verdict": "new" if row.usable else "refused",
        "reasons": reasons,
    }


def read_again(vm_import: VMImport) -> None:
    """Bring all rows to the import's mapping, network and namespace; skipped rows stay skipped.

    Stands in a transaction of the caller.
    """
    destinations, import_plan = Destinations(vm_import), plan(vm_import)
    last = 0
    with connection.cursor() as cursor:
        cursor.execute(_REREAD)
    while rows := _after(vm_import.pk, last):
        last = rows[-1].number
        sources = ((row.number, source_of(row)) for row in rows)
        lines = [
            (
                number,
                *_resolved(
                    resolving.resolve(source, destinations.find(source.port_group), import_plan)
                ),
            )
            for number, source in sources
        ]
        database.copy("claims_reread", _REREAD_COLUMNS, lines)
    database.rows(_TAKE_OVER, [vm_import.pk], prepare=False)
    with connection.cursor() as cursor:
        cursor.execute("DROP TABLE claims_reread")


def _after(import_id: int, number: int) -> list[ImportRow]:
    rows = ImportRow.objects.filter(vm_import=import_id, number__gt=number)
    return list(rows.order_by("number")[:BATCH])


_REREAD_COLUMNS = (
    "number", "network_id", "vm", "namespace", "mac", "ips", "claim_name", "usable", "problems",
    "verdict", "reasons",
)  # fmt: skip
_REREAD = """
    CREATE TEMPORARY TABLE claims_reread (number integer, network_id bigint, vm text,
        namespace text, mac macaddr, ips varchar[], claim_name text, usable boolean,
        problems jsonb, verdict text, reasons jsonb) ON COMMIT DROP
"""
_TAKE_OVER = """
    UPDATE claims_importrow r SET network_id = w.network_id, vm = w.vm, namespace = w.namespace,
        mac = w.mac, ips = w.ips, claim_name = w.claim_name, usable = w.usable,
        problems = w.problems, reasons = w.reasons, entry_id = NULL, claim_id = NULL, before = NULL,
        verdict = CASE WHEN r.skipped THEN 'skipped' ELSE w.verdict END
    FROM claims_reread w WHERE r.vm_import_id = %s AND r.number = w.number RETURNING 1
"""
