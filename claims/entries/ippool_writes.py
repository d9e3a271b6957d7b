"""Writes of IPPools: the spec of those that the register decides, and the status of all."""

from __future__ import annotations

import functools
import hashlib
import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from django.db.models import QuerySet

from claims.core import ippool, resources
from claims.entries import ippool_sync, ippools
from claims.models import IPPool
from pools.clusters.reconcile import ingest
from pools.clusters.reconcile.handler import (
    MANAGER,
    STATUS_MANAGER,
    ReconcileFinding,
    SyncContext,
    Write,
)
from pools.core.kubernetes import differences, managed_fields
from pools.core.kubernetes.differences import Structure
from pools.core.kubernetes.resources import Manifest
from pools.models import ObservedObject
from pools.models.observed import Severity

KIND = ippool.KIND
SECOND = "network_has_ippool"  # problem of a second IPPool of a network
STRUCTURE = Structure(lists={("status", "conditions"): ("type",)})
_MAX_NAMED = 20  # MAC addresses in a message


def has_register_fields(manifest: Manifest) -> bool:
    """Return True if the object has fields that the register wrote."""
    return any(owner.manager == MANAGER for owner in managed_fields.parse(manifest))


@dataclass(frozen=True)
class Pair:
    """An IPPool and its object (`row`, without its manifest), which may differ.

    `nads` are the NADs of its network.
    """

    ippool: IPPool
    row: ObservedObject | None
    nads: Sequence[dict[str, str]]

    @property
    def agreement(self) -> str:
        """Return the value of `IPPool.agreed` if IPPool, object and network are in sync."""
        ippool_row = self.ippool
        content = json.dumps(
            [ippool_row.network.subnets, self.nads, ippool_row.conditions], sort_keys=True
        )
        digest = hashlib.sha256(content.encode()).hexdigest()[:16]
        row = f"{self.row.uid} {self.row.resource_version}" if self.row else ""
        return f"{row} {ippool_row.version} {digest}"


def list_outdated(context: SyncContext) -> list[Pair]:
    """Return the IPPools that may differ from their object or have none."""
    rows = ObservedObject.objects.filter(cluster=context.cluster, kind=KIND, missed_at=None)
    objects = {row.name: row for row in rows.defer("manifest")}
    ippools_ = IPPool.objects.filter(cluster=context.cluster).select_related("network")
    ippool_rows = list(ippools_.defer("problems").order_by("name"))
    nads = ippools.associated_nads(ippool_rows)
    pairs = [
        Pair(ippool_row, objects.get(ippool_row.name), nads[ippool_row.pk])
        for ippool_row in ippool_rows
    ]
    return [pair for pair in pairs if pair.ippool.agreed != pair.agreement]


def manifest_of(row: ObservedObject) -> Manifest:
    """Return the manifest, which `list_outdated` does not load."""
    manifest: Manifest = ObservedObject.objects.values_list("manifest", flat=True).get(pk=row.pk)
    return manifest


def mark_in_sync(pair: Pair) -> None:
    """Record that the IPPool and its object are equal, in the transaction of the caller."""
    unchanged = IPPool.objects.filter(pk=pair.ippool.pk, version=pair.ippool.version)
    unchanged.update(agreed=pair.agreement)


def writes(context: SyncContext, notes: list[ReconcileFinding]) -> Iterator[Write]:
    """Yield the due writes of spec and status, and mark pairs without differences as in sync."""
    for pair in list_outdated(context):
        with ingest.isolate_object(context, KIND, pair.ippool.name):
            ippool_row, row = pair.ippool, pair.row
            if ippool_row.follows_cluster if row is None else row.problem_code:
                continue  # the object was deleted, or has a problem
            manifest = None if row is None else manifest_of(row)
            desired_writes = [
                *_spec(ippool_row, notes),
                _status(ippool_row.name, ippool_row.conditions, pair.nads),
            ]
            due = (
                desired_writes
                if manifest is None
                else [write for write in desired_writes if _is_due(write, manifest)]
            )
            foreign_entries = (
                []
                if manifest is None or ippool_row.follows_cluster
                else [*_foreign_entries(ippool_row, manifest)]
            )
            notes += foreign_entries
            yield from due
            if not (due or foreign_entries):
                with context.transaction():
                    mark_in_sync(pair)
    for row in second_ippools(context):
        with ingest.isolate_object(context, KIND, row.name):
            condition = ippool.refusal("NetworkHasIPPool", row.problem, now=ippools.now_text())
            write = _status(row.name, [condition], [])
            if _is_due(write, row.manifest):
                yield write


def second_ippools(context: SyncContext) -> QuerySet[ObservedObject]:
    """Return the objects that are left out because their network has another IPPool."""
    rows = ObservedObject.objects.filter(cluster=context.cluster, kind=KIND, missed_at=None)
    return rows.filter(problem_code=SECOND).order_by("name")


def _is_due(write: Write, manifest: Manifest) -> bool:
    desired_manifest = write.make(manifest)
    manager = "" if write.subresource else write.manager
    changes = desired_manifest and differences.find_differences(
        desired_manifest, manifest, structure=STRUCTURE, manager=manager
    )
    return bool(changes)


def _spec(ippool_row: IPPool, notes: list[ReconcileFinding]) -> Iterator[Write]:
    if ippool_row.follows_cluster:
        return
    desired_manifest = ippools.manifest(ippool_row, status=False)
    if ippool.is_too_large(desired_manifest):
        message = (
            f"The IPPool {ippool_row.name} is not written: with {len(desired_manifest['spec']['entries'])} MAC"
            " addresses it is larger than API servers accept."
        )
        notes.append(ReconcileFinding("ippool_too_large", ippool_row.name, message, Severity.ERROR))
        return
    make = functools.partial(_spec_manifest, desired_manifest=desired_manifest)
    yield Write(resources.IPPOOL, ippool_row.name, make, structure=STRUCTURE)


def _spec_manifest(current: Manifest | None, desired_manifest: Manifest) -> Manifest:
    """Return the desired manifest, with the object's spelling of keys and addresses that are equal."""
    current_entries = (current or {}).get("spec", {}).get("entries") or {}
    keys = ippool_sync.keys_by_mac(current_entries)
    entries = {}
    for mac, ips in desired_manifest["spec"]["entries"].items():
        key = keys.get(mac, mac)
        current_ips = current_entries.get(key)
        entries[key] = (
            current_ips if current_ips != ips and ippool_sync.same_ips(current_ips, ips) else ips
        )
    spec = {"network-name": desired_manifest["spec"]["network-name"]}
    # An empty map is left out, because an API server turns it into null.
    return desired_manifest | {"spec": spec | ({"entries": entries} if entries else {})}


def _status(name: str, conditions: Sequence[dict[str, Any]], nads: Sequence[Any]) -> Write:
    make = functools.partial(_status_manifest, name=name, conditions=conditions, nads=nads)
    return Write(
        resources.IPPOOL,
        name,
        make,
        subresource="status",
        manager=STATUS_MANAGER,
        structure=STRUCTURE,
    )


def _status_manifest(
    current: Manifest | None, name: str, conditions: Sequence[dict[str, Any]], nads: Sequence[Any]
) -> Manifest | None:
    if current is None:
        return None  # the object does not exist yet
    current_conditions = (current.get("status") or {}).get("conditions") or ()
    generation = current["metadata"].get("generation")
    return {
        "apiVersion": ippool.API_VERSION,
        "kind": KIND,
        "metadata": {"name": name},
        "status": {
            "conditions": ippool.status_conditions(conditions, generation, current_conditions),
            "associated-nads": list(nads),
        },
    }


def _foreign_entries(ippool_row: IPPool, manifest: Manifest) -> Iterator[ReconcileFinding]:
    """Report MAC addresses of the object that are not in the register and belong to other managers."""
    current_entries = (manifest.get("spec") or {}).get("entries") or {}
    registered_macs = set(ippool_row.entries.values_list("mac", flat=True))
    owners = managed_fields.parse(manifest)
    foreign_macs = [
        mac
        for mac in sorted(ippool_sync.keys_by_mac(current_entries).keys() - registered_macs)
        if not any(
            owner.manager == MANAGER and owner.owns(("spec", "entries", mac)) for owner in owners
        )
    ]
    if foreign_macs:
        named_macs = ", ".join(foreign_macs[:_MAX_NAMED])
        rest = len(foreign_macs) - _MAX_NAMED
        remainder = f" and {rest} more" if rest > 0 else ""
        message = (
            f"The object {ippool_row.name} has entries that are not in the register: {named_macs}{remainder}. Other"
            " field managers own them: adopt the object, or remove the entries in the cluster."
        )
        details = {"macs": foreign_macs[:1000], "count": len(foreign_macs)}
        yield ReconcileFinding("more_in_cluster", ippool_row.name, message, details=details)
