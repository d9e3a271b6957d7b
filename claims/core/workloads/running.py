"""Running workloads of networks: VMs, from their VMI and launcher pods together, and other pods.

A VM has two launcher pods during a live migration. The MAC and the addresses of a workload come from the
pod's annotation; further addresses that the guest reports count if they are in the network's subnets.

A workload is compared with its entry or claim; claims/sql/workload_comparison.sql finds these.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from claims.core.workloads.attachments import Attachment, Instance, Machine, Nic, Pod
from pools.core.addresses import Interface, Network

VMI, POD, TEMPLATE = "vmi", "pod", "vm"


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


@dataclass(frozen=True)
class Running:
    """One attachment to a network, with the fields of claims.models.Workload."""

    network_id: int
    kind: str
    namespace: str
    name: str
    uid: str
    interface: str
    vm_uid: str = ""
    mac: str | None = None
    ips: tuple[str, ...] = ()
    node: str = ""
    phase: str = ""
    pods: tuple[str, ...] = ()
    since: str = ""

    @property
    def key(self) -> tuple[int, str, str, str]:
        return self.network_id, self.kind, self.uid, self.interface


def pod_attachments(pod: Pod, networks: ClusterNetworks) -> Iterator[Running]:
    """Yield the attachments of a pod without a VM; none for a terminated pod."""
    for attachment in () if pod.over else pod.attachments:
        net = networks.nads.get(attachment.nad)
        if net is not None:
            yield Running(
                net.id,
                POD,
                pod.namespace,
                pod.name,
                pod.uid,
                attachment.key,
                mac=attachment.mac,
                ips=_texts(net, attachment.ips),
                node=pod.node,
                phase=pod.phase,
                pods=(pod.name,),
                since=pod.since,
            )


def template_attachments(machine: Machine, networks: ClusterNetworks) -> Iterator[Running]:
    """Yield the interfaces of a VM's template that name a MAC address, each with its network."""
    for nic in machine.nics:
        net = networks.nads.get(nic.nad or networks.primary.get(machine.namespace, ""))
        if net is not None and nic.mac:
            yield Running(
                net.id,
                TEMPLATE,
                machine.namespace,
                machine.name,
                machine.uid,
                nic.name,
                vm_uid=machine.uid,
                mac=nic.mac,
                phase=machine.status[:32],
            )


def vm_attachments(
    instance: Instance | None, pods: Iterable[Pod], networks: ClusterNetworks
) -> Iterator[Running]:
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
    vm = _instance_values(instance, live) if instance else _launcher_values(live)
    unmatched_attachments: dict[str, list[Attachment]] = {}
    for pod in live:
        for attachment in pod.attachments:
            unmatched_attachments.setdefault(attachment.key, []).append(attachment)
    for nic in instance.nics if instance else ():
        nad = nic.nad or _primary(vm.namespace, unmatched_attachments, networks)
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
        if net is not None and (attachments or _is_attached(nic, vm, live)):
            yield _attachment(net, nic.name, nic, attachments, vm)
    for key, attachments in unmatched_attachments.items():
        net = networks.nads.get(attachments[0].nad)
        if net is not None:
            yield _attachment(net, key, None, attachments, vm)


def _order(pod: Pod, instance: Instance | None) -> tuple[bool, str]:
    """Return the sort key of launcher pods: first the pod on the node of the VMI."""
    return instance is not None and pod.node != instance.node, pod.name


def _instance_values(instance: Instance, live: Sequence[Pod]) -> Running:
    """Return the values that all attachments of a VM have in common."""
    return Running(
        0,
        VMI,
        instance.namespace,
        instance.name,
        instance.uid,
        "",
        vm_uid=instance.vm_uid,
        node=instance.node or next((pod.node for pod in live), ""),
        phase=instance.phase,
        pods=tuple(sorted(pod.name for pod in live)),
        since=instance.since,
    )


def _launcher_values(live: Sequence[Pod]) -> Running:
    """Return the common values of a VM's attachments from its launcher pods alone."""
    first = live[0]
    return Running(
        0,
        VMI,
        first.namespace,
        first.vm,
        first.vmi_uid,
        "",
        node=first.node,
        phase=first.phase,
        pods=tuple(sorted(pod.name for pod in live)),
        since=first.since,
    )


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


def _is_attached(nic: Nic, vm: Running, live: Sequence[Pod]) -> bool:
    """Return True if an interface is attached although no pod was observed yet."""
    if any(pod.annotated for pod in live):
        return False
    return nic.reported or vm.phase == "Running"


def _attachment(
    net: Net, interface: str, nic: Nic | None, attachments: Sequence[Attachment], vm: Running
) -> Running:
    macs = [*(attachment.mac for attachment in attachments), nic.mac if nic else None]
    addresses_by_ip = {ip.ip: ip for attachment in attachments for ip in attachment.ips}
    for ip in nic.ips if nic else ():
        if net.has(ip):
            addresses_by_ip.setdefault(ip.ip, ip)
    return dataclasses.replace(
        vm,
        network_id=net.id,
        interface=interface,
        mac=next(filter(None, macs), None),
        ips=_texts(net, addresses_by_ip.values()),
    )


def _texts(net: Net, addresses: Iterable[Interface]) -> tuple[str, ...]:
    """Return the distinct addresses as sorted strings, IPv4 first."""
    texts_by_ip = {address.ip: net.text(address) for address in addresses}
    return tuple(
        texts_by_ip[ip] for ip in sorted(texts_by_ip, key=lambda ip: (ip.version, int(ip)))
    )


Reason = tuple[str, str]  # code, message


@dataclass(frozen=True)
class Side:
    """One side of the comparison; `vm` is "" if the side names none. Addresses are strings."""

    mac: str | None
    ips: Sequence[str]
    vm: str = ""
    namespace: str = ""
    pod: str = ""  # of a workload without a VM

    @property
    def who(self) -> str:
        name = self.vm or self.pod
        return f"{self.namespace}/{name}" if self.namespace else name


def differences(registered: Side, running: Side) -> Iterator[Reason]:
    """Yield other_mac, other_vm, address_not_running, address_not_registered; nothing if both match.

    A value that the workload does not report counts as equal; see `unobserved_values`.
    """
    if registered.mac and running.mac and registered.mac != running.mac:
        yield "other_mac", f"It runs with {running.mac}; {registered.mac} is registered."
    if registered.vm and not _same_vm(registered, running):
        yield "other_vm", f"It belongs to {running.who}; {registered.who} is registered."
    if registered.ips and running.ips:
        registered_hosts, running_hosts = _hosts(registered.ips), _hosts(running.ips)
        if not_running := [host for host in registered_hosts if host not in running_hosts]:
            yield "address_not_running", f"It does not run with {', '.join(not_running)}."
        if not_registered := [host for host in running_hosts if host not in registered_hosts]:
            yield "address_not_registered", f"It runs with {', '.join(not_registered)}."


def unobserved_values(running: Side) -> Iterator[Reason]:
    """Yield no_mac_seen, no_address_seen for values that could not be compared."""
    if running.mac is None:
        yield "no_mac_seen", "The cluster does not report its MAC address."
    if not running.ips:
        yield "no_address_seen", "The cluster does not report its addresses."


def absence_reason(registered: Side, vm_status: str | None) -> Reason:
    """Return why there is no workload: vm_not_named, vm_unknown, vm_stopped, vm_not_attached.

    `vm_status` is the printableStatus of the VirtualMachine, None if there is no such VM.
    """
    if not registered.vm:
        return "vm_not_named", "No VM is registered, and no workload has this MAC or IP address."
    if vm_status is None:
        return "vm_unknown", f"The VM {registered.who} does not exist in the cluster."
    if vm_status == "Running":
        return (
            "vm_not_attached",
            f"The VM {registered.who} is running, but is not attached to this network.",
        )
    status = f" ({vm_status})" if vm_status else ""
    return "vm_stopped", f"The VM {registered.who} is not running{status}."


def _same_vm(registered: Side, running: Side) -> bool:
    return registered.vm == running.vm and registered.namespace in {"", running.namespace}


def _hosts(ips: Iterable[str]) -> list[str]:
    return [text.partition("/")[0] for text in ips]
