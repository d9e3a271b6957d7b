"""Parsers of the network attachments of VMs and pods (KubeVirt, Multus, OVN-Kubernetes).

A pod's attachments are in two annotations. `k8s.ovn.org/pod-networks` of OVN-Kubernetes is an object by
NAD (`namespace/name`, `namespace/name/1` for a second attachment to the same NAD, and `default`) and
includes the NAD of a primary network. `k8s.v1.cni.cncf.io/network-status` of Multus is a list; it is
used for NADs that the first annotation does not have (other CNIs).

Users and other controllers write annotations too: parts that are not valid become `problems`, and the
rest of the object is used.
"""

import json
import re
from collections.abc import Iterator
from dataclasses import dataclass
from ipaddress import ip_interface
from typing import Any

from claims.core import macs
from claims.core.workloads import vm_objects
from pools.core import errors, object_reader
from pools.core.addresses import Interface
from pools.core.kubernetes.resources import Manifest

POD_NETWORKS = "k8s.ovn.org/pod-networks"
NETWORK_STATUS = "k8s.v1.cni.cncf.io/network-status"
ADDRESSES = "network.kubevirt.io/addresses"
_OVER = {"Succeeded", "Failed"}
_KEY = re.compile(r"([^/]+/[^/]+)(/[0-9]+)?")


@dataclass(frozen=True)
class Attachment:
    """An interface of a pod on the network of a NAD; `key` distinguishes two of the same NAD."""

    nad: str  # namespace/name
    key: str
    mac: str | None
    ips: tuple[Interface, ...]
    primary: bool = False
    by_ovn: bool = False


@dataclass(frozen=True)
class Pod:
    """A pod; `vm` and `vmi_uid` are set for launcher pods. A pod that is `over` holds no address."""

    namespace: str
    name: str
    uid: str
    node: str
    phase: str
    since: str  # RFC 3339, as the API server wrote it
    over: bool
    vm: str
    vmi_uid: str
    annotated: bool  # OVN-Kubernetes has written its attachments
    attachments: tuple[Attachment, ...]
    problems: tuple[errors.FieldProblem, ...]


@dataclass(frozen=True)
class Nic:
    """An interface of a VM, from its specification and its status.

    `nad` is "" for the pod network. `ips` are the addresses that the guest or the pod reports, without
    link-local ones; `reported` is True if the status has the interface.
    """

    name: str
    nad: str
    mac: str | None
    ips: tuple[Interface, ...] = ()
    reported: bool = False


@dataclass(frozen=True)
class Instance:
    """A VirtualMachineInstance; `vm_uid` is "" if no VirtualMachine owns it."""

    namespace: str
    name: str
    uid: str
    vm_uid: str
    node: str
    phase: str
    since: str
    nics: tuple[Nic, ...]
    problems: tuple[errors.FieldProblem, ...]

    @property
    def over(self) -> bool:
        return self.phase in _OVER


@dataclass(frozen=True)
class Machine:
    """A VirtualMachine; `addresses` are the addresses that its annotation requests, by interface."""

    namespace: str
    name: str
    uid: str
    status: str  # printableStatus: Running, Stopped, Starting, …
    nics: tuple[Nic, ...]
    addresses: dict[str, tuple[str, ...]]
    problems: tuple[errors.FieldProblem, ...]


def is_attached(manifest: Manifest) -> bool:
    """Return True if a pod runs a VM, or may be attached to more than the cluster's default network."""
    if vm_objects.is_launcher(manifest):
        return True
    annotations = _section(manifest, "metadata", "annotations")
    networks = _quietly(annotations.get(POD_NETWORKS))
    if isinstance(networks, dict) and any(key != "default" for key in networks):
        return True
    status = _quietly(annotations.get(NETWORK_STATUS))
    return isinstance(status, list) and any(
        isinstance(attachment, dict) and "/" in str(attachment.get("name", ""))
        for attachment in status
    )


def parse_pod(manifest: Manifest) -> Pod:
    """Parse a pod. Raises InvalidInput required if it has no name or uid."""
    report = object_reader.ProblemReport(strict=False)
    namespace, name, uid = _identity(manifest)
    metadata, status = _section(manifest, "metadata"), _section(manifest, "status")
    annotations, spec = _section(metadata, "annotations"), _section(manifest, "spec")
    vmi_name, vmi_uid = _owner(metadata, "VirtualMachineInstance")
    labels = _section(metadata, "labels")
    launcher = vm_objects.is_launcher(manifest)
    vm = (
        vm_objects.text(annotations, vm_objects.DOMAIN)
        or vmi_name
        or vm_objects.text(labels, vm_objects.NAME)
    )
    vmi_uid = vmi_uid or vm_objects.text(labels, "kubevirt.io/created-by")
    attachments_by_key: dict[str, Attachment] = {}
    if spec.get("hostNetwork") is not True:
        for attachment in _of_ovn(annotations.get(POD_NETWORKS), report):
            attachments_by_key[attachment.key] = attachment
        for attachment in _of_multus(annotations.get(NETWORK_STATUS), report):
            attachments_by_key.setdefault(attachment.key, attachment)
    phase = vm_objects.text(status, "phase")
    return Pod(
        namespace,
        name,
        uid,
        vm_objects.text(spec, "nodeName"),
        phase,
        vm_objects.text(metadata, "creationTimestamp"),
        phase in _OVER,
        vm if launcher and vmi_uid else "",
        vmi_uid if launcher and vm else "",
        POD_NETWORKS in annotations,
        tuple(attachments_by_key.values()),
        tuple(report.problems),
    )


def parse_instance(manifest: Manifest) -> Instance:
    """Parse a VirtualMachineInstance. Raises InvalidInput required if it has no name or uid."""
    report = object_reader.ProblemReport(strict=False)
    namespace, name, uid = _identity(manifest)
    metadata, status = _section(manifest, "metadata"), _section(manifest, "status")
    statuses_by_name = {
        vm_objects.text(interface, "name"): interface
        for interface in vm_objects.objects(status.get("interfaces"))
    }
    nics = []
    for nic in _nics(_section(manifest, "spec"), namespace, report, "spec"):
        interface_status = statuses_by_name.get(nic.name)
        if interface_status is None:
            nics.append(nic)
            continue
        path = f"status.interfaces.{nic.name}"
        mac = _mac(interface_status.get("mac"), f"{path}.mac", report) or nic.mac
        listed = interface_status.get("ipAddresses") or [interface_status.get("ipAddress")]
        ips = _hosts(listed, f"{path}.ipAddresses", report)
        nics.append(Nic(nic.name, nic.nad, mac, ips, reported=True))
    return Instance(
        namespace,
        name,
        uid,
        _owner(metadata, "VirtualMachine")[1],
        vm_objects.text(status, "nodeName"),
        vm_objects.text(status, "phase"),
        vm_objects.text(metadata, "creationTimestamp"),
        tuple(nics),
        tuple(report.problems),
    )


def parse_machine(manifest: Manifest) -> Machine:
    """Parse a VirtualMachine. Raises InvalidInput required if it has no name or uid."""
    report = object_reader.ProblemReport(strict=False)
    namespace, name, uid = _identity(manifest)
    template = _section(manifest, "spec", "template")
    nics = _nics(_section(template, "spec"), namespace, report, "spec.template.spec")
    annotations = _section(template, "metadata", "annotations")
    requested = _requested(annotations.get(ADDRESSES), report)
    status = vm_objects.text(_section(manifest, "status"), "printableStatus")
    return Machine(namespace, name, uid, status, tuple(nics), requested, tuple(report.problems))


# --- annotations ----------------------------------------------------------------------------------


def _of_ovn(text: object, report: object_reader.ProblemReport) -> Iterator[Attachment]:
    for key, value in _load(text, POD_NETWORKS, dict, report).items():
        if key == "default":
            continue
        path, key_match = f"{POD_NETWORKS}.{errors.display_value(key)}", _KEY.fullmatch(key)
        if key_match is None or not isinstance(value, dict):
            report.add(path, "attachment", "an object under namespace/name is expected", value)
            continue
        listed = value.get("ip_addresses") or [value.get("ip_address")]
        yield Attachment(
            key_match[1],
            key,
            _mac(value.get("mac_address"), f"{path}.mac_address", report),
            _hosts(listed, f"{path}.ip_addresses", report),
            primary=value.get("role") == "primary",
            by_ovn=True,
        )


def _of_multus(text: object, report: object_reader.ProblemReport) -> Iterator[Attachment]:
    numbers_by_nad: dict[str, int] = {}
    for index, value in enumerate(_load(text, NETWORK_STATUS, list, report)):
        path = f"{NETWORK_STATUS}.{index}"
        if not isinstance(value, dict):
            report.add(path, "wrong_type", "an object is expected", value)
            continue
        nad = vm_objects.text(value, "name")
        if not _KEY.fullmatch(nad):
            continue  # the default network, with the name of its CNI
        number = numbers_by_nad[nad] = numbers_by_nad.get(nad, -1) + 1
        yield Attachment(
            nad,
            f"{nad}/{number}" if number else nad,
            _mac(value.get("mac"), f"{path}.mac", report),
            _hosts(value.get("ips") or [], f"{path}.ips", report),
        )


def _requested(text: object, report: object_reader.ProblemReport) -> dict[str, tuple[str, ...]]:
    ips_by_interface = {}
    for interface, listed in _load(text, ADDRESSES, dict, report).items():
        path = f"{ADDRESSES}.{errors.display_value(interface)}"
        if isinstance(listed, list):
            ips_by_interface[interface] = tuple(
                str(address.ip) for address in _hosts(listed, path, report)
            )
        else:
            report.add(path, "wrong_type", "a list of addresses is expected", listed)
    return ips_by_interface


def _load(text: object, path: str, kind: type, report: object_reader.ProblemReport) -> Any:
    """Return the JSON value of an annotation; if it has another type, report it and return an empty one."""
    if text is None or text == "":
        return kind()
    try:
        content = json.loads(str(text))
    except (ValueError, RecursionError):
        report.add(path, "json_syntax", "is not valid JSON", text)
        return kind()
    if isinstance(content, kind):
        return content
    expected = "an object" if kind is dict else "a list"
    report.add(path, "wrong_type", f"{expected} is expected", text)
    return kind()


def _quietly(text: object) -> object:
    if not isinstance(text, str):
        return None
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        return None


# --- parts of objects -----------------------------------------------------------------------------


def _identity(manifest: Manifest) -> tuple[str, str, str]:
    metadata = _section(manifest, "metadata")
    namespace, name, uid = (vm_objects.text(metadata, key) for key in ("namespace", "name", "uid"))
    if not (name and uid):
        raise errors.InvalidInput.for_field("metadata", "required", "name and uid are required")
    return namespace, name, uid


def _nics(
    spec: Manifest, namespace: str, report: object_reader.ProblemReport, spec_path: str
) -> Iterator[Nic]:
    devices = _section(spec, "domain", "devices")
    interfaces = {
        vm_objects.text(interface_spec, "name"): interface_spec
        for interface_spec in vm_objects.objects(devices.get("interfaces"))
    }
    for network in vm_objects.objects(spec.get("networks")):
        name = vm_objects.text(network, "name")
        interface = interfaces.get(name, {})
        if interface.get("state") == "absent":
            continue
        path = f"{spec_path}.domain.devices.interfaces.{name}.macAddress"
        mac = _mac(interface.get("macAddress"), path, report)
        if isinstance(network.get("multus"), dict):
            nad = vm_objects.text(network["multus"], "networkName")
            yield Nic(name, nad if "/" in nad else f"{namespace}/{nad}", mac)
        elif isinstance(network.get("pod"), dict):
            yield Nic(name, "", mac)


def _owner(metadata: Manifest, kind: str) -> tuple[str, str]:
    """Return name and uid of the owner of a kind, or ("", "")."""
    for owner in vm_objects.objects(metadata.get("ownerReferences")):
        if owner.get("kind") == kind and vm_objects.text(owner, "apiVersion").startswith(
            "kubevirt.io/"
        ):
            return vm_objects.text(owner, "name"), vm_objects.text(owner, "uid")
    return "", ""


def _mac(value: object, path: str, report: object_reader.ProblemReport) -> str | None:
    if value is None or value == "":
        return None
    with report.collect():
        return macs.parse_mac(value, field=path, lenient=True)
    return None


def _hosts(listed: object, path: str, report: object_reader.ProblemReport) -> tuple[Interface, ...]:
    """Parse addresses with or without prefix length; leave out link-local, loopback and multicast ones."""
    if not isinstance(listed, list):
        report.add(path, "wrong_type", "a list of addresses is expected", listed)
        return ()
    hosts: dict[Interface, None] = {}
    for text in listed:
        if text is None or text == "":
            continue
        try:
            # A zone ("fe80::1%eth0") has a meaning only in the guest.
            address = ip_interface(text.partition("%")[0] if isinstance(text, str) else "")
        except ValueError:
            report.add(path, "not_an_address", "is not an IP address", text)
            continue
        if not (address.ip.is_link_local or address.ip.is_loopback or address.ip.is_multicast):
            hosts[address] = None
    return tuple(hosts)


def _section(manifest: Manifest, *keys: str) -> Manifest:
    section = vm_objects.member(manifest, *keys)
    return section if isinstance(section, dict) else {}
