"""Running workloads: one row for each attachment of a VM or a pod to a known network.

A VM consists of its instance and its launcher pods, which arrive in any order; missing parts are read from
the observed objects. A row is deleted with its objects. The interfaces of a VM's template that name a MAC
address have rows as well, so that a stopped VM with the MAC of another one is found.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from ipaddress import ip_network
from typing import Any, TypeVar

from claims.address_index import index
from claims.core import resources
from claims.core.workloads import attachments, running
from claims.core.workloads.attachments import Instance, Machine, Pod
from claims.core.workloads.running import ClusterNetworks, Net, Running
from claims.models import NAD, Workload
from pools.core import errors
from pools.models import ObservedObject
from pools.platform import database
from pools.sql import statements

T = TypeVar("T")
ObjectName = tuple[str, str]  # namespace and name
Key = tuple[int, str, str, str]

_UNIQUE = ("network", "kind", "uid", "interface")
_CHANGING = ("namespace", "name", "vm_uid", "mac", "ips", "node", "phase", "pods", "since")


@dataclass
class WorkloadChanges:
    """Current objects by uid, and the rows of deleted objects."""

    instances: Mapping[str, Instance] = field(default_factory=dict)
    pods: Mapping[str, Pod] = field(default_factory=dict)
    machines: Mapping[str, Machine] = field(default_factory=dict)
    deleted: Sequence[ObservedObject] = ()


@dataclass
class _AffectedObjects:
    """Objects whose workloads are updated: VMs by the uid of their instance, and other pods."""

    vms: dict[str, ObjectName] = field(default_factory=dict)
    instances: dict[str, Instance] = field(default_factory=dict)
    pods: dict[str, Pod] = field(default_factory=dict)  # by uid: launchers and other pods
    machines: dict[str, Machine] = field(default_factory=dict)  # VirtualMachines, by uid
    deleted: dict[str, ObjectName] = field(default_factory=dict)

    @property
    def places(self) -> dict[str, ObjectName]:
        """Return the names of all affected workloads by uid."""
        plain = {uid: (pod.namespace, pod.name) for uid, pod in self.pods.items() if not pod.vm}
        templates = {uid: (vm.namespace, vm.name) for uid, vm in self.machines.items()}
        return self.deleted | plain | self.vms | templates


def update_workloads(cluster_id: int, changes: WorkloadChanges) -> ClusterNetworks:
    """Update the rows of all changed VMs and pods, and return the networks of their namespaces.

    The caller opens the transaction.
    """
    scene = _AffectedObjects()
    scene.instances.update(changes.instances)
    scene.pods.update(changes.pods)
    scene.machines.update(changes.machines)
    scene.deleted.update({row.uid: (row.namespace, row.name) for row in changes.deleted})
    for row in changes.deleted:
        _add_gone(scene, row)
    scene.vms |= {pod.vmi_uid: (pod.namespace, pod.vm) for pod in changes.pods.values() if pod.vm}
    scene.vms |= {
        uid: (instance.namespace, instance.name) for uid, instance in changes.instances.items()
    }
    before = _rows(cluster_id, scene.places)
    _add_observed(cluster_id, scene, before)
    networks = cluster_networks(cluster_id, _namespaces(scene))
    _write_rows(
        before, {attachment.key: attachment for attachment in _running_attachments(scene, networks)}
    )
    return networks


def cluster_networks(cluster_id: int, namespaces: Collection[str]) -> ClusterNetworks:
    """Return the networks of the NADs in the given namespaces."""
    rows = NAD.objects.filter(network__cluster_id=cluster_id, namespace__in=namespaces)
    nads: dict[str, Net] = {}
    primary: dict[str, str] = {}
    for row in rows.select_related("network").order_by("pk"):
        name = f"{row.namespace}/{row.name}"
        subnets = tuple(ip_network(text) for text in row.network.subnets)
        nads[name] = Net(row.network_id, subnets)
        if (row.role or row.network.role) == "primary":
            primary.setdefault(row.namespace, name)
    return ClusterNetworks(nads, primary)


def _add_gone(scene: _AffectedObjects, row: ObservedObject) -> None:
    if row.kind == resources.VMI.kind:
        scene.vms[row.uid] = row.namespace, row.name
    if row.kind != resources.POD.kind:
        return
    pod = _parse_or_none(row.manifest, attachments.parse_pod)
    if pod is not None and pod.vm:
        scene.vms[pod.vmi_uid] = pod.namespace, pod.vm


def _rows(cluster_id: int, places_by_uid: Mapping[str, ObjectName]) -> dict[Key, Workload]:
    """Return the existing rows of these uids."""
    values = {
        "cluster": cluster_id,
        "uids": list(places_by_uid),
        "namespaces": [namespace for namespace, _ in places_by_uid.values()],
        "names": [name for _, name in places_by_uid.values()],
    }
    ids = [row["id"] for row in database.fetch(_ROWS, values)]
    rows = Workload.objects.filter(pk__in=ids)
    return {(row.network_id, row.kind, row.uid, row.interface): row for row in rows}


# The statement uses an index for any number of networks.
_ROWS = statements.read("claims/workloads_by_uid")


def _add_observed(cluster_id: int, scene: _AffectedObjects, before: Mapping[Key, Workload]) -> None:
    """Add the observed instances and launcher pods that are not among the changed objects."""
    missing_vms = [
        (namespace, name)
        for uid, (namespace, name) in scene.vms.items()
        if uid not in scene.instances and uid not in scene.deleted
    ]
    for uid, manifest in _observed_manifests(cluster_id, resources.VMI.kind, missing_vms):
        instance = _parse_or_none(manifest, attachments.parse_instance)
        if instance is not None and uid in scene.vms:
            scene.instances.setdefault(uid, instance)
    pod_names = {
        (row.namespace, pod) for row in before.values() if row.uid in scene.vms for pod in row.pods
    }
    for uid, manifest in _observed_manifests(cluster_id, resources.POD.kind, sorted(pod_names)):
        pod = _parse_or_none(manifest, attachments.parse_pod)
        if pod is not None and pod.vmi_uid in scene.vms and uid not in scene.deleted:
            scene.pods.setdefault(uid, pod)


def _observed_manifests(
    cluster_id: int, kind: str, places: Sequence[ObjectName]
) -> Iterator[tuple[str, dict[str, Any]]]:
    """Yield uid and manifest of the observed objects with these names."""
    if not places:
        return
    values = {
        "cluster": cluster_id,
        "kind": kind,
        "namespaces": [namespace for namespace, _ in places],
        "names": [name for _, name in places],
    }
    for row in database.fetch(_OBSERVED, values):
        yield row["uid"], json.loads(row["manifest"])


_OBSERVED = statements.read("claims/observed_manifests")


def _parse_or_none(manifest: dict[str, Any], read: Callable[[dict[str, Any]], T]) -> T | None:
    """Parse a stored manifest; return None for a stub of an object that could not be stored."""
    try:
        return read(manifest)
    except errors.InvalidInput:
        return None


def _namespaces(scene: _AffectedObjects) -> set[str]:
    """Return the namespaces of all referenced NADs, and of all VMs because of their primary network."""
    vms: list[Instance | Machine] = [*scene.instances.values(), *scene.machines.values()]
    nads = [attachment.nad for pod in scene.pods.values() for attachment in pod.attachments]
    nads += [nic.nad for vm in vms for nic in vm.nics]
    namespaces = {nad.partition("/")[0] for nad in nads}
    return namespaces | {vm.namespace for vm in vms}


def _running_attachments(scene: _AffectedObjects, networks: ClusterNetworks) -> Iterator[Running]:
    launchers: dict[str, list[Pod]] = {}
    for pod in scene.pods.values():
        if pod.vm:
            launchers.setdefault(pod.vmi_uid, []).append(pod)
        else:
            yield from running.pod_attachments(pod, networks)
    for machine in scene.machines.values():
        yield from running.template_attachments(machine, networks)
    for uid in scene.vms:
        yield from running.vm_attachments(
            scene.instances.get(uid), launchers.get(uid, ()), networks
        )


def _write_rows(before: Mapping[Key, Workload], attachments_by_key: Mapping[Key, Running]) -> None:
    """Write new and changed rows in one statement, then delete the rows that no longer run."""
    now = database.now()
    rows = {key: _row(attachment, now) for key, attachment in attachments_by_key.items()}
    new_rows = [row for key, row in rows.items() if key not in before or _differs(row, before[key])]
    if new_rows:
        saved_rows = Workload.objects.bulk_create(
            new_rows, update_conflicts=True, unique_fields=_UNIQUE, update_fields=_CHANGING
        )
        index.write(workloads=saved_rows)
    if ended_ids := [row.pk for key, row in before.items() if key not in attachments_by_key]:
        index.remove(workloads=ended_ids)
        Workload.objects.filter(pk__in=ended_ids).delete()


def _row(attachment: Running, now: datetime) -> Workload:
    return Workload(
        network_id=attachment.network_id,
        kind=attachment.kind,
        namespace=attachment.namespace,
        name=attachment.name,
        uid=attachment.uid,
        vm_uid=attachment.vm_uid,
        interface=attachment.interface,
        mac=attachment.mac,
        ips=list(attachment.ips),
        node=attachment.node,
        phase=attachment.phase,
        pods=list(attachment.pods),
        since=_parse_timestamp(attachment.since) or now,
    )


def _differs(row: Workload, before: Workload) -> bool:
    timeless = _CHANGING[:-1]
    return any(getattr(row, name) != getattr(before, name) for name in timeless)


def _parse_timestamp(text: str) -> datetime | None:
    try:
        timestamp = datetime.fromisoformat(text)
    except ValueError:
        return None
    return timestamp if timestamp.tzinfo else None


def summarize_problems(field_problems: Iterable[errors.FieldProblem]) -> tuple[str, str]:
    """Return the code of the first problem of an object and the text of all; ("", "") without any."""
    problems = list(field_problems)
    text = "; ".join(f"{problem.field}: {problem.message}" for problem in problems)
    printable = "".join(char if char.isprintable() else " " for char in text)
    return (problems[0].code[:63], printable[:1000]) if problems else ("", "")
