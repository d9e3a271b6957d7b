"""What runs, kept as it is seen: one row for each attachment of a VM or a pod to a known network.

A VM is its instance and its launcher pods together, in whatever order a cluster tells of them; what
is not told now is read from what was seen before. Rows go when their objects are gone.
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
from claims.core.workloads.attachments import Instance, Pod
from claims.core.workloads.running import ClusterNetworks, Net, Running
from claims.models import NAD, Workload
from pools.core import errors
from pools.models import ObservedObject
from pools.platform import database
from pools.sql import statements

T = TypeVar("T")
Place = tuple[str, str]  # namespace and name
Key = tuple[int, str, str, str]

_UNIQUE = ("network", "kind", "uid", "interface")
_CHANGING = ("namespace", "name", "vm_uid", "mac", "ips", "node", "phase", "pods", "since")


@dataclass
class WorkloadChanges:
    """Objects as they are now, by uid, and the rows of objects that are gone."""

    instances: Mapping[str, Instance] = field(default_factory=dict)
    pods: Mapping[str, Pod] = field(default_factory=dict)
    gone: Sequence[ObservedObject] = ()


@dataclass
class _Scene:
    """All that has to be looked at again: VMs by the uid of their instance, and other pods."""

    vms: dict[str, Place] = field(default_factory=dict)
    instances: dict[str, Instance] = field(default_factory=dict)
    pods: dict[str, Pod] = field(default_factory=dict)  # by uid, launchers and others
    gone: dict[str, Place] = field(default_factory=dict)

    @property
    def places(self) -> dict[str, Place]:
        """Where the rows of all of them are found."""
        plain = {uid: (pod.namespace, pod.name) for uid, pod in self.pods.items() if not pod.vm}
        return self.gone | plain | self.vms


def update_workloads(cluster_id: int, changes: WorkloadChanges) -> ClusterNetworks:
    """Bring the rows of all VMs and pods that were told of to what they are now.

    Stands in a transaction of the caller. Answers what is known of the networks that they name.
    """
    scene = _Scene()
    scene.instances.update(changes.instances)
    scene.pods.update(changes.pods)
    scene.gone.update({row.uid: (row.namespace, row.name) for row in changes.gone})
    for row in changes.gone:
        _add_gone(scene, row)
    scene.vms |= {pod.vmi_uid: (pod.namespace, pod.vm) for pod in changes.pods.values() if pod.vm}
    scene.vms |= {
        uid: (instance.namespace, instance.name) for uid, instance in changes.instances.items()
    }
    before = _rows(cluster_id, scene.places)
    _add_observed(cluster_id, scene, before)
    networks = known_networks(cluster_id, _namespaces(scene))
    _write_rows(
        before, {attachment.key: attachment for attachment in _running_attachments(scene, networks)}
    )
    return networks


def known_networks(cluster_id: int, namespaces: Collection[str]) -> ClusterNetworks:
    """The networks of the NADs in these namespaces."""
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


def _add_gone(scene: _Scene, row: ObservedObject) -> None:
    if row.kind == resources.VMI.kind:
        scene.vms[row.uid] = row.namespace, row.name
        return
    pod = _read(row.manifest, attachments.parse_pod)
    if pod is not None and pod.vm:
        scene.vms[pod.vmi_uid] = pod.namespace, pod.vm


def _rows(cluster_id: int, places_by_uid: Mapping[str, Place]) -> dict[Key, Workload]:
    """The rows that there are of these uids."""
    values = {
        "cluster": cluster_id,
        "uids": list(places_by_uid),
        "namespaces": [namespace for namespace, _ in places_by_uid.values()],
        "names": [name for _, name in places_by_uid.values()],
    }
    ids = [row["id"] for row in database.fetch(_ROWS, values)]
    rows = Workload.objects.filter(pk__in=ids)
    return {(row.network_id, row.kind, row.uid, row.interface): row for row in rows}


# By an index that there is, whatever the number of networks.
_ROWS = statements.read("claims/workloads_by_uid")


def _add_observed(cluster_id: int, scene: _Scene, before: Mapping[Key, Workload]) -> None:
    """The instances and the launcher pods that were seen before and are not told of now."""
    lacking = [
        (namespace, name)
        for uid, (namespace, name) in scene.vms.items()
        if uid not in scene.instances and uid not in scene.gone
    ]
    for uid, manifest in _observed_manifests(cluster_id, resources.VMI.kind, lacking):
        instance = _read(manifest, attachments.parse_instance)
        if instance is not None and uid in scene.vms:
            scene.instances.setdefault(uid, instance)
    listed = {
        (row.namespace, pod) for row in before.values() if row.uid in scene.vms for pod in row.pods
    }
    for uid, manifest in _observed_manifests(cluster_id, resources.POD.kind, sorted(listed)):
        pod = _read(manifest, attachments.parse_pod)
        if pod is not None and pod.vmi_uid in scene.vms and uid not in scene.gone:
            scene.pods.setdefault(uid, pod)


def _observed_manifests(
    cluster_id: int, kind: str, places: Sequence[Place]
) -> Iterator[tuple[str, dict[str, Any]]]:
    """Uid and manifest of the objects of these names."""
    if not places:
        return
    values = {
        "cluster": cluster_id,
        "kind": kind,
        "namespaces": [namespace for namespace, _ in places],
        "names": [name for _, name in places],
    }
    for row in database.fetch(_SEEN, values):
        yield row["uid"], json.loads(row["manifest"])


_SEEN = """
    SELECT o.uid, o.manifest
    FROM unnest(%(namespaces)s::text[], %(names)s::text[]) AS t(namespace, name)
    CROSS JOIN LATERAL (SELECT uid, manifest FROM pools_observedobject
        WHERE cluster_id = %(cluster)s AND kind = %(kind)s
            AND namespace = t.namespace AND name = t.name) o
"""


def _read(manifest: dict[str, Any], read: Callable[[dict[str, Any]], T]) -> T | None:
    """What was seen once may be a stub by now, of content that could not be stored."""
    try:
        return read(manifest)
    except errors.InvalidInput:
        return None


def _namespaces(scene: _Scene) -> set[str]:
    """Of all NADs that somebody names, and of all VMs, whose primary network has no name there."""
    nads = [attachment.nad for pod in scene.pods.values() for attachment in pod.attachments]
    nads += [nic.nad for vm in scene.instances.values() for nic in vm.nics]
    namespaces = {nad.partition("/")[0] for nad in nads}
    return namespaces | {vm.namespace for vm in scene.instances.values()}


def _running_attachments(scene: _Scene, networks: ClusterNetworks) -> Iterator[Running]:
    launchers: dict[str, list[Pod]] = {}
    for pod in scene.pods.values():
        if pod.vm:
            launchers.setdefault(pod.vmi_uid, []).append(pod)
        else:
            yield from running.pod_attachments(pod, networks)
    for uid in scene.vms:
        yield from running.vm_attachments(
            scene.instances.get(uid), launchers.get(uid, ()), networks
        )


def _write_rows(before: Mapping[Key, Workload], attachments_by_key: Mapping[Key, Running]) -> None:
    """New and changed rows in one statement, then those that run no more."""
    now = database.now()
    rows = {key: _row(attachment, now) for key, attachment in attachments_by_key.items()}
    news = [row for key, row in rows.items() if key not in before or _differs(row, before[key])]
    if news:
        saved_rows = Workload.objects.bulk_create(
            news, update_conflicts=True, unique_fields=_UNIQUE, update_fields=_CHANGING
        )
        index.write(workloads=saved_rows)
    if ended := [row.pk for key, row in before.items() if key not in attachments_by_key]:
        index.remove(workloads=ended)
        Workload.objects.filter(pk__in=ended).delete()


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
        since=_moment(attachment.since) or now,
    )


def _differs(row: Workload, before: Workload) -> bool:
    timeless = _CHANGING[:-1]
    return any(getattr(row, name) != getattr(before, name) for name in timeless)


def _moment(text: str) -> datetime | None:
    try:
        moment = datetime.fromisoformat(text)
    except ValueError:
        return None
    return moment if moment.tzinfo else None


def problems(field_problems: Iterable[errors.FieldProblem]) -> tuple[str, str]:
    """Code and text of what is wrong with an object that was taken in, ("", "") when nothing is."""
    listed = list(field_problems)
    text = "; ".join(f"{problem.field}: {problem.message}" for problem in listed)
    printable = "".join(char if char.isprintable() else " " for char in text)
    return (listed[0].code[:63], printable[:1000]) if listed else ("", "")
