"""What runs on which network: a VM from its instance and its launcher pods together, or a plain pod.

A live migration has two launcher pods and is one VM. The network knows the MAC and the addresses of
a pod's annotation; what the guest reports besides counts when it lies in the network's subnets.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from claims.core.workloads.attachments import Attachment, Instance, Nic, Pod
from pools.core.addresses import Interface, Network

VMI, POD = "vmi", "pod"


@dataclass(frozen=True)
class Net:
    """A logical network of the register."""

    id: int
    subnets: tuple[Network, ...] = ()

    def has(self, one: Interface) -> bool:
        """Whether it may be an address of the network; without subnets any may be."""
        return not self.subnets or any(one.ip in subnet for subnet in self.subnets)

    def text(self, one: Interface) -> str:
        """`10.0.0.5/24`: an address that was told alone gets the prefix length of its subnet."""
        alone = one.network.prefixlen == one.max_prefixlen
        subnet = next((net for net in self.subnets if one.ip in net), None)
        return f"{one.ip}/{subnet.prefixlen}" if alone and subnet else str(one)


@dataclass(frozen=True)
class Known:
    """The networks of one cluster by NAD (`namespace/name`), and each namespace's primary NAD."""

    nads: Mapping[str, Net] = field(default_factory=dict)
    primary: Mapping[str, str] = field(default_factory=dict)

    def lacks(self, pod: Pod) -> bool:
        """Whether OVN-Kubernetes names a NAD of which nothing is known yet."""
        return any(one.by_ovn and one.nad not in self.nads for one in pod.attachments)


@dataclass(frozen=True)
class Running:
    """One attachment to a network, as claims.models.Workload has it."""

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


def of_pod(pod: Pod, known: Known) -> Iterator[Running]:
    """The attachments of a pod that runs no VM; none once it is over."""
    for one in () if pod.over else pod.attachments:
        net = known.nads.get(one.nad)
        if net is not None:
            yield Running(
                net.id,
                POD,
                pod.namespace,
                pod.name,
                pod.uid,
                one.key,
                mac=one.mac,
                ips=_texts(net, one.ips),
                node=pod.node,
                phase=pod.phase,
                pods=(pod.name,),
                since=pod.since,
            )


def of_vm(instance: Instance | None, pods: Iterable[Pod], known: Known) -> Iterator[Running]:
    """The attachments of a VM; `pods` are its launcher pods, `instance` is None until it is seen.

    Nothing runs before a pod is attached, the status tells of the interface, or the phase is Running.
    """
    live = sorted((one for one in pods if not one.over), key=lambda one: _order(one, instance))
    if (instance is None and not live) or (instance is not None and instance.over):
        return
    vm = _of_instance(instance, live) if instance else _of_launcher(live)
    left: dict[str, list[Attachment]] = {}
    for pod in live:
        for one in pod.attachments:
            left.setdefault(one.key, []).append(one)
    for nic in instance.nics if instance else ():
        nad = nic.nad or _primary(vm.namespace, left, known)
        key = next((key for key, found in left.items() if found[0].nad == nad), "")
        found = left.pop(key, [])
        net = known.nads.get(nad)
        if net is not None and (found or _runs(nic, vm, live)):
            yield _on(net, nic.name, nic, found, vm)
    for key, found in left.items():
        net = known.nads.get(found[0].nad)
        if net is not None:
            yield _on(net, key, None, found, vm)


def _order(pod: Pod, instance: Instance | None) -> tuple[bool, str]:
    """First the pod on the node where the VM runs."""
    return instance is not None and pod.node != instance.node, pod.name


def _of_instance(instance: Instance, live: Sequence[Pod]) -> Running:
    """What all attachments of a VM have in common."""
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


def _of_launcher(live: Sequence[Pod]) -> Running:
    """The same as far as pods tell it."""
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


def _primary(namespace: str, left: Mapping[str, Sequence[Attachment]], known: Known) -> str:
    """The NAD of the pod network: as the pods say, else as the namespace has it."""
    told = next((found[0].nad for found in left.values() if found[0].primary), "")
    return told or known.primary.get(namespace, "")


def _runs(nic: Nic, vm: Running, live: Sequence[Pod]) -> bool:
    """Whether it is attached although no pod says so, because none was told of yet."""
    if any(pod.annotated for pod in live):
        return False
    return nic.reported or vm.phase == "Running"


def _on(
    net: Net, interface: str, nic: Nic | None, found: Sequence[Attachment], vm: Running
) -> Running:
    macs = [*(one.mac for one in found), nic.mac if nic else None]
    told = {ip.ip: ip for one in found for ip in one.ips}
    for ip in nic.ips if nic else ():
        if net.has(ip):
            told.setdefault(ip.ip, ip)
    return dataclasses.replace(
        vm,
        network_id=net.id,
        interface=interface,
        mac=next(filter(None, macs), None),
        ips=_texts(net, told.values()),
    )


def _texts(net: Net, told: Iterable[Interface]) -> tuple[str, ...]:
    """Each address once, in order of its number, IPv4 first."""
    found = {one.ip: net.text(one) for one in told}
    return tuple(found[ip] for ip in sorted(found, key=lambda ip: (ip.version, int(ip))))
