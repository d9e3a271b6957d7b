"""Running workloads: one row for each attachment of a VM or a pod to a known network.

A VM consists of its instance and its launcher pods (two during a live migration), which arrive in any order; missing
parts are read from the observed objects. The MAC and the addresses of a workload come from the pod's annotation;
further addresses that the guest reports count if they are in the network's subnets. A row is deleted with its objects. The interfaces of a VM's template that name a MAC
address have rows as well, so that a stopped VM with the MAC of another one is found.
"""

import json
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from ipaddress import ip_network
from typing import Any, TypeVar

from claims.address_index import block_sync, index
from claims.core import resources
from claims.core.workloads import attachments
from claims.core.workloads.attachments import Attachment, Instance, Machine, Nic, Pod
from claims.models import NAD, Workload
from claims.models.workloads import WorkloadKind
from pools.core import errors
from pools.core.addresses import Interface, Network
from pools.models import ObservedObject
from pools.models.fields import Now
from pools.platform import database
from pools.sql import statements

T = TypeVar("T")
ObjectName = tuple[str, str]  # namespace and name
Key = tuple[int, str, str, str]

_UNIQUE = ("network", "kind", "uid", "interface")
_CHANGING = ("namespace", "name", "vm_uid", "mac", "ips", "node", "phase", "pods", "since")


@dataclass(frozen=True)
class Net:
    """A logical network of the register."""

    id: int
    subnets: tuple[Network, ...] = ()

    def has(self, address: Interface) -> bool:
        """Return True if the address can belong to the network; without subnets every address can."""
        return not self.subnets or any(address.ip in subnet for subnet in self.subnets)

    def text(self, address: Interface) -> str:
        """Return `10.0.0.5/24`; an address without prefix length gets that of its subnet."""
        alone = address.network.prefixlen == address.max_prefixlen
        subnet = next((net for net in self.subnets if address.ip in net), None)
        return f"{address.ip}/{subnet.prefixlen}" if alone and subnet else str(address)


@dataclass(frozen=True)
class ClusterNetworks:
    """The networks of one cluster by NAD (`namespace/name`), and each namespace's primary NAD."""

    nads: Mapping[str, Net] = field(default_factory=dict)
    primary: Mapping[str, str] = field(default_factory=dict)

    def lacks(self, pod: Pod) -> bool:
        """Return True if OVN-Kubernetes names a NAD that is not known yet."""
        return any(
            attachment.by_ovn and attachment.nad not in self.nads for attachment in pod.attachments
        )


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
    _write_rows(before, {_key(row): row for row in _running_attachments(scene, networks)})
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
    return {_key(row): row for row in rows}


def _key(row: Workload) -> Key:
    return row.network_id, row.kind, row.uid, row.interface


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


def _running_attachments(scene: _AffectedObjects, networks: ClusterNetworks) -> Iterator[Workload]:
    launchers: dict[str, list[Pod]] = {}
    for pod in scene.pods.values():
        if pod.vm:
            launchers.setdefault(pod.vmi_uid, []).append(pod)
        else:
            yield from pod_attachments(pod, networks)
    for machine in scene.machines.values():
        yield from template_attachments(machine, networks)
    for uid in scene.vms:
        yield from vm_attachments(scene.instances.get(uid), launchers.get(uid, ()), networks)


def _write_rows(before: Mapping[Key, Workload], rows: Mapping[Key, Workload]) -> None:
    """Write new and changed rows in one statement, then delete the rows that no longer run."""
    new_rows = [row for key, row in rows.items() if key not in before or _differs(row, before[key])]
    ended_rows = [row for key, row in before.items() if key not in rows]
    block_sync.lock_pools(row.network_id for row in (*new_rows, *ended_rows))
    if new_rows:
        saved_rows = Workload.objects.bulk_create(
            new_rows, update_conflicts=True, unique_fields=_UNIQUE, update_fields=_CHANGING
        )
        index.write(workloads=saved_rows)
    if ended_ids := [row.pk for row in ended_rows]:
        index.remove(workloads=ended_ids)
        Workload.objects.filter(pk__in=ended_ids).delete()


def _differs(row: Workload, before: Workload) -> bool:
    timeless = _CHANGING[:-1]
    return any(getattr(row, name) != getattr(before, name) for name in timeless)


def summarize_problems(field_problems: Iterable[errors.FieldProblem]) -> tuple[str, str]:
    """Return the code of the first problem of an object and the text of all; ("", "") without any."""
    problems = list(field_problems)
    text = "; ".join(f"{problem.field}: {problem.message}" for problem in problems)
    printable = "".join(char if char.isprintable() else " " for char in text)
    return (problems[0].code[:63], printable[:1000]) if problems else ("", "")


# --- what runs, by objects ------------------------------------------------------------------------


def pod_attachments(pod: Pod, networks: ClusterNetworks) -> Iterator[Workload]:
    """Yield the attachments of a pod without a VM; none for a terminated pod."""
    for attachment in () if pod.over else pod.attachments:
        net = networks.nads.get(attachment.nad)
        if net is not None:
            yield Workload(
                network_id=net.id,
                kind=WorkloadKind.POD,
                namespace=pod.namespace,
                name=pod.name,
                uid=pod.uid,
                interface=attachment.key,
                mac=attachment.mac,
                ips=_texts(net, attachment.ips),
                node=pod.node,
                phase=pod.phase,
                pods=[pod.name],
                since=_since(pod.since),
            )


def template_attachments(machine: Machine, networks: ClusterNetworks) -> Iterator[Workload]:
    """Yield the interfaces of a VM's template that name a MAC address, each with its network."""
    for nic in machine.nics:
        net = networks.nads.get(nic.nad or networks.primary.get(machine.namespace, ""))
        if net is not None and nic.mac:
            yield Workload(
                network_id=net.id,
                kind=WorkloadKind.TEMPLATE,
                namespace=machine.namespace,
                name=machine.name,
                uid=machine.uid,
                interface=nic.name,
                vm_uid=machine.uid,
                mac=nic.mac,
                phase=machine.status[:32],
                since=Now(),
            )


def vm_attachments(
    instance: Instance | None, pods: Iterable[Pod], networks: ClusterNetworks
) -> Iterator[Workload]:
    """Yield the attachments of a VM; `pods` are its launcher pods, `instance` its VMI if observed.

    An attachment exists when a pod is attached, the VMI's status has the interface, or the phase is
    Running.
    """
    live = sorted(
        (launcher for launcher in pods if not launcher.over),
        key=lambda launcher: _order(launcher, instance),
    )
    if (instance is None and not live) or (instance is not None and instance.over):
        return
    vm = _vm_values(instance, live)
    unmatched_attachments: dict[str, list[Attachment]] = {}
    for pod in live:
        for attachment in pod.attachments:
            unmatched_attachments.setdefault(attachment.key, []).append(attachment)
    for nic in instance.nics if instance else ():
        nad = nic.nad or _primary(vm["namespace"], unmatched_attachments, networks)
        key = next(
            (
                key
                for key, attachments in unmatched_attachments.items()
                if attachments[0].nad == nad
            ),
            "",
        )
        attachments = unmatched_attachments.pop(key, [])
        net = networks.nads.get(nad)
        if net is not None and (attachments or _is_attached(nic, instance, live)):
            yield _attachment(net, nic.name, nic, attachments, vm)
    for key, attachments in unmatched_attachments.items():
        net = networks.nads.get(attachments[0].nad)
        if net is not None:
            yield _attachment(net, key, None, attachments, vm)


def _order(pod: Pod, instance: Instance | None) -> tuple[bool, str]:
    """Return the sort key of launcher pods: first the pod on the node of the VMI."""
    return instance is not None and pod.node != instance.node, pod.name


def _vm_values(instance: Instance | None, live: Sequence[Pod]) -> dict[str, Any]:
    """Return the values that all attachments of a VM have in common, by its launcher pods if it has no VMI."""
    values: dict[str, Any] = {
        "kind": WorkloadKind.VMI,
        "node": live[0].node if live else "",
        "pods": sorted(pod.name for pod in live),
    }
    if instance is None:
        first = live[0]
        return values | {
            "namespace": first.namespace,
            "name": first.vm,
            "uid": first.vmi_uid,
            "phase": first.phase,
            "since": _since(first.since),
        }
    return values | {
        "namespace": instance.namespace,
        "name": instance.name,
        "uid": instance.uid,
        "vm_uid": instance.vm_uid,
        "node": instance.node or values["node"],
        "phase": instance.phase,
        "since": _since(instance.since),
    }


def _primary(
    namespace: str,
    unmatched_attachments: Mapping[str, Sequence[Attachment]],
    networks: ClusterNetworks,
) -> str:
    """Return the NAD of the pod network, from the pods, else the primary NAD of the namespace."""
    primary_nad = next(
        (
            attachments[0].nad
            for attachments in unmatched_attachments.values()
            if attachments[0].primary
        ),
        "",
    )
    return primary_nad or networks.primary.get(namespace, "")


def _is_attached(nic: Nic, instance: Instance | None, live: Sequence[Pod]) -> bool:
    """Return True if an interface is attached although no pod was observed yet."""
    if any(pod.annotated for pod in live):
        return False
    return nic.reported or (instance is not None and instance.phase == "Running")


def _attachment(
    net: Net,
    interface: str,
    nic: Nic | None,
    attachments: Sequence[Attachment],
    vm: Mapping[str, Any],
) -> Workload:
    macs = [*(attachment.mac for attachment in attachments), nic.mac if nic else None]
    addresses_by_ip = {ip.ip: ip for attachment in attachments for ip in attachment.ips}
    for ip in nic.ips if nic else ():
        if net.has(ip):
            addresses_by_ip.setdefault(ip.ip, ip)
    return Workload(
        network_id=net.id,
        interface=interface,
        mac=next(filter(None, macs), None),
        ips=_texts(net, addresses_by_ip.values()),
        **vm,
    )


def _texts(net: Net, addresses: Iterable[Interface]) -> list[str]:
    """Return the distinct addresses as sorted strings, IPv4 first."""
    texts_by_ip = {address.ip: net.text(address) for address in addresses}
    return [texts_by_ip[ip] for ip in sorted(texts_by_ip, key=lambda ip: (ip.version, int(ip)))]


def _since(text: str) -> datetime | Now:
    """Return the time that the API server wrote, else the time of the transaction."""
    try:
        timestamp = datetime.fromisoformat(text)
    except ValueError:
        return Now()
    return timestamp if timestamp.tzinfo else Now()
