"""What is written of IPPools: the register's own entries, and the status of all."""

from __future__ import annotations

import functools
import hashlib
import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from claims.core import ippool, resources
from claims.entries import ippool_sync, ippools
from claims.models import IPPool
from pools.clusters.client.api_client import Manifest
from pools.clusters.reconcile.handler import (
    MANAGER,
    STATUS_MANAGER,
    ReconcileFinding,
    SyncContext,
    Write,
)
from pools.core.kubernetes import differences, managed_fields
from pools.core.kubernetes.differences import Structure
from pools.models import ObservedObject
from pools.models.observed import Severity

KIND = ippool.KIND
STRUCTURE = Structure(lists={("status", "conditions"): ("type",)})
_FIRST = 20  # MAC addresses in a message


def ours(manifest: Manifest) -> bool:
    """Whether the object has fields that the register wrote."""
    return any(owner.manager == MANAGER for owner in managed_fields.parse(manifest))


@dataclass(frozen=True)
class Pair:
    """An IPPool and its object (`row`, without its manifest), which may not say the same.

    `nads` are those of its network.
    """

    ippool: IPPool
    row: ObservedObject | None
    nads: Sequence[dict[str, str]]

    @property
    def agreement(self) -> str:
        """What `IPPool.agreed` is when they say the same; the network decides that, too."""
        ippool_row = self.ippool
        content = json.dumps(
            [ippool_row.network.subnets, self.nads, ippool_row.conditions], sort_keys=True
        )
        digest = hashlib.sha256(content.encode()).hexdigest()[:16]
        row = f"{self.row.uid} {self.row.resource_version}" if self.row else ""
        return f"{row} {ippool_row.version} {digest}"


def different(context: SyncContext) -> list[Pair]:
    """IPPools that may not agree with their object, or have none."""
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
    """The object, which `different` leaves in the database."""
    manifest: Manifest = ObservedObject.objects.values_list("manifest", flat=True).get(pk=row.pk)
    return manifest


def agree(pair: Pair) -> None:
    """Remember that they say the same. Stands in a transaction of the pass."""
    version = IPPool.objects.filter(pk=pair.ippool.pk, version=pair.ippool.version)
    version.update(agreed=pair.agreement)


def writes(context: SyncContext, notes: list[ReconcileFinding]) -> Iterator[Write]:
    """Spec and status of what does not agree; what turns out to be well agrees from now on."""
    for pair in different(context):
        ippool_row, row = pair.ippool, pair.row
        if ippool_row.follows_cluster if row is None else row.problem_code:
            continue  # its object is gone, or is of no use
        manifest = None if row is None else manifest_of(row)
        desired_writes = [*_spec(ippool_row, notes), _status(pair)]
        due = (
            desired_writes
            if manifest is None
            else [write for write in desired_writes if _is_due(write, manifest)]
        )
        more = (
            [] if manifest is None or ippool_row.follows_cluster else [*_more(ippool_row, manifest)]
        )
        notes += more
        yield from due
        if not (due or more):
            with context.holding():
                agree(pair)


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
    if ippool.too_large(desired_manifest):
        message = (
            f"The IPPool {ippool_row.name} is not written: with {len(desired_manifest['spec']['entries'])} MAC"
            " addresses it is larger than what API servers store."
        )
        notes.append(ReconcileFinding("ippool_too_large", ippool_row.name, message, Severity.ERROR))
        return
    make = functools.partial(_written, desired_manifest=desired_manifest)
    yield Write(resources.IPPOOL, ippool_row.name, make, structure=STRUCTURE)


def _written(current: Manifest | None, desired_manifest: Manifest) -> Manifest:
    """In the words of the object, where these say the same."""
    there = (current or {}).get("spec", {}).get("entries") or {}
    keys = ippool_sync.keys_of(there)
    entries = {}
    for mac, ips in desired_manifest["spec"]["entries"].items():
        key = keys.get(mac, mac)
        current_ips = there.get(key)
        entries[key] = (
            current_ips if current_ips != ips and ippool_sync.same_ips(current_ips, ips) else ips
        )
    spec = {"network-name": desired_manifest["spec"]["network-name"]}
    # An empty object would not be kept: an API server makes null of it when the last entry goes.
    return desired_manifest | {"spec": spec | ({"entries": entries} if entries else {})}


def _status(pair: Pair) -> Write:
    conditions, name = pair.ippool.conditions, pair.ippool.name
    make = functools.partial(_status_manifest, name=name, conditions=conditions, nads=pair.nads)
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
        return None  # there is nothing yet that could have a status
    there = (current.get("status") or {}).get("conditions") or ()
    generation = current["metadata"].get("generation")
    return {
        "apiVersion": ippool.API_VERSION,
        "kind": KIND,
        "metadata": {"name": name},
        "status": {
            "conditions": ippool.status_conditions(conditions, generation, there),
            "associated-nads": list(nads),
        },
    }


def _more(ippool_row: IPPool, manifest: Manifest) -> Iterator[ReconcileFinding]:
    """MAC addresses that others have in the object, and the register has not."""
    there = (manifest.get("spec") or {}).get("entries") or {}
    registered_macs = set(ippool_row.entries.values_list("mac", flat=True))
    owners = managed_fields.parse(manifest)
    more = sorted(mac for mac in ippool_sync.keys_of(there) if mac not in registered_macs)
    theirs = [
        mac
        for mac in more
        if not any(
            owner.manager == MANAGER and owner.owns(("spec", "entries", mac)) for owner in owners
        )
    ]
    if theirs:
        shown_macs = ", ".join(theirs[:_FIRST])
        remainder = f" and {len(theirs) - _FIRST} more" if len(theirs) > _FIRST else ""
        message = (
            f"The object {ippool_row.name} has entries that the register has not: {shown_macs}{remainder}. Others own"
            " them; adopt the object, or remove them there."
        )
        details = {"macs": theirs[:1000], "count": len(theirs)}
        yield ReconcileFinding("more_in_cluster", ippool_row.name, message, details=details)
