"""IPPools and their objects in a cluster: what is taken from an object, and what is written to it.

Written are the spec of IPPools that the register decides, and the status of all.
"""

import functools
import hashlib
import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from django.db.models import QuerySet

from claims.address_index import index
from claims.core import entries as core, ippool, macs, resources
from claims.entries import entries, ippools
from claims.models import Entry, IPPool
from claims.networks import networks
from pools.clusters.reconcile import ingest
from pools.clusters.reconcile.handler import (
    MANAGER,
    STATUS_MANAGER,
    ReconcileFinding,
    SyncContext,
    Write,
)
from pools.core import errors
from pools.core.kubernetes import differences, managed_fields
from pools.core.kubernetes.differences import Structure
from pools.core.kubernetes.resources import Manifest
from pools.models import Cluster, ObservedObject, Severity
from pools.platform import events


def upsert_ippool(
    cluster: Cluster,
    ippool_spec: ippool.ParsedIPPool,
    *,
    uid: str,
    register_decides: bool,
    author: events.Author,
) -> IPPool:
    """Store the contents of an object; if `register_decides`, store only the object's identity.

    Entries that are equal in the object keep fields that an object does not have (their VM). Raises
    AlreadyExists if the network has another IPPool.
    """
    ippool_row = _find(cluster, ippool_spec)
    if register_decides and ippool_row is not None:
        # Problems of the object's entries do not apply to the register's entries.
        return _update_values(
            ippool_row, {"uid": uid, "gone_at": None, "problems": []}, author=author
        )
    if ippool_row is None:
        ippool_row = ippools.create(
            cluster, ippool_spec.name, ippool_spec.network_name, author=author
        )
    elif ippool_row.network.name != ippool_spec.network_name:
        _move(ippool_row, ippool_spec.network_name)
    difference, problems = compare(ippool_row, ippool_spec)
    values = {
        "uid": uid,
        "gone_at": None,
        "problems": problems,
        "name": ippool_spec.name,
        "follows_cluster": True,
    }
    if difference:
        entries.apply_diff(ippool_row, difference, values, author=author)
        return IPPool.objects.select_related("network").get(pk=ippool_row.pk)
    return _update_values(ippool_row, values, author=author)


def _find(cluster: Cluster, ippool_spec: ippool.ParsedIPPool) -> IPPool | None:
    """Find an IPPool by name, else the network's IPPool if it has no object in the cluster."""
    rows = IPPool.objects.select_related("network").filter(cluster=cluster)
    ippool_row = rows.filter(name=ippool_spec.name).first()
    if ippool_row is None:
        ippool_row = rows.filter(
            network__name=ippool_spec.network_name, follows_cluster=True, uid=""
        ).first()
    return ippool_row


def _update_values(ippool_row: IPPool, values: dict[str, Any], *, author: events.Author) -> IPPool:
    if all(getattr(ippool_row, name) == value for name, value in values.items()):
        return ippool_row
    with events.recorded_by(author):
        IPPool.objects.filter(pk=ippool_row.pk).update(**values)
        for name, value in values.items():
            setattr(ippool_row, name, value)
        ippools.update_conditions(ippool_row)
    return ippool_row


def _move(ippool_row: IPPool, network_name: str) -> None:
    """Move an IPPool to another network, and index its entries there."""
    network = networks.get_or_create(ippool_row.cluster_id, network_name)
    ippools.require_no_ippool(network, except_id=ippool_row.pk)
    rows = list(Entry.objects.filter(ippool=ippool_row))
    index.remove(entries=[row.pk for row in rows])
    ippool_row.network = network
    ippool_row.save(update_fields=["network"])
    index.write(entries=rows)


def compare(
    ippool_row: IPPool, ippool_spec: ippool.ParsedIPPool
) -> tuple[entries.EntryDiff, list[dict[str, Any]]]:
    """Return the diff from the register's entries to the object's, and the object's invalid entries.

    Only entries that differ are parsed. The object maps a MAC to all its addresses, so several entries
    of one MAC equal a key with all their addresses.
    """
    present: dict[str, list[entries.EntryRow]] = {}
    for row in entries.entry_rows(ippool_row):
        present.setdefault(row.mac, []).append(row)
    repeated = set(ippool.repeated_macs(ippool_spec.entries))
    unique = {mac: rows for mac, rows in present.items() if mac not in repeated}
    same = {key for key, value in ippool_spec.entries if _equals(unique.get(key, ()), value)}
    different = [(key, value) for key, value in ippool_spec.entries if key not in same]
    specs, problems = ippool.parse_entries(
        different, ippools.rules(ippool_row.network, observed=True)
    )
    # The object may spell an equal entry differently.
    same |= {spec.mac for spec in specs if _equals(unique.get(spec.mac, ()), list(spec.ips))}
    desired_specs = [spec for spec in specs if spec.mac not in same]
    rest = [row for mac, rows in present.items() if mac not in same for row in rows]
    return entries.difference(rest, desired_specs), problems[: ippool.MAX_PROBLEMS]


def _equals(rows: Sequence[entries.EntryRow], value: object) -> bool:
    if not isinstance(value, list) or not all(isinstance(ip, str) for ip in value):
        return False
    registered_ips = {ip for row in rows for ip in row.ips}
    return registered_ips == set(value) and len(value) == len(registered_ips)


def keys_by_mac(object_entries: Mapping[str, object]) -> dict[str, str]:
    """Return the object's key of each MAC address; the canonical spelling if it has several."""
    keys: dict[str, str] = {}
    for key in object_entries:
        try:
            mac = macs.parse_mac(key)
        except errors.InvalidInput:
            continue
        if key == mac or mac not in keys:
            keys[mac] = key
    return keys


def same_ips(value: object, ips: Sequence[str]) -> bool:
    """Return True if an object's addresses equal `ips`, in any spelling and order."""
    try:
        return sorted(core.parse_ips(value, core.Rules())) == sorted(ips)
    except errors.InvalidInput:
        return False


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
    keys = keys_by_mac(current_entries)
    entries = {}
    for mac, ips in desired_manifest["spec"]["entries"].items():
        key = keys.get(mac, mac)
        current_ips = current_entries.get(key)
        entries[key] = current_ips if current_ips != ips and same_ips(current_ips, ips) else ips
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
        for mac in sorted(keys_by_mac(current_entries).keys() - registered_macs)
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
