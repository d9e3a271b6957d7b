"""Stored rows of an import: read from the upload once, and resolved again when the mapping changes.

A row is resolved for its target network: VM, MAC and addresses as the register stores them, parsed leniently with the
rules of all entry points (claims/core/entries.py). Blanks are trimmed, and a missing prefix length is that of the
network's subnet, with a remark.
"""

import dataclasses
import re
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from ipaddress import IPv4Address, IPv6Address, ip_address
from itertools import islice
from typing import Any

from claims.access import namespaces
from claims.core import entries
from claims.core.ipamclaims import ipamclaim
from claims.core.networks import static_vms, udn
from claims.core.vm_import import vm_interface
from claims.core.vm_import.vm_interface import VMInterface
from claims.ipamclaims import ipamclaims
from claims.models import Network, PortGroup, VMImport, VMRow
from claims.models.imports import ImportTarget
from claims.models.networks import NetworkKind
from pools.core import addresses, errors, holders
from pools.core.register_import import parsing
from pools.models.imports import RowStatus
from pools.platform.imports import rows as stored_rows

BATCH = 5000
# What a row of a file says; a correction may change it.
TEXTS = ("vm", "mac", "ips", "port_group", "namespace", "note")
LONGEST = 300
_MOST_OF_RANGE = 255  # of a range in a cell
_LONGEST_NOTE = 500
# Formats of VMs that MTV migrates; MTV changes their names, even valid ones.
_SOURCES_OF_MTV = ("rvtools", "forklift", "vsphere", "ovirt", "powercli")
# Formats whose "port groups" are names of cluster networks.
_MANIFESTS = ("ippool-yaml", "ipamclaim-yaml")
UNMAPPED, NO_ADDRESS = "unmapped_port_group", "no_address"
# For an existing entry these, and NO_ADDRESS, are remarks; a new entry with them is not written.
DECLINED = {
    static_vms.TOO_MANY: "Keep one of them.",
    static_vms.MISSING: "Enter an address, or take the next free one.",
}
_HARMLESS = frozenset({"prefix_added", "vm_name_changed"})  # do not make a row unusable
_LABEL = "[a-z0-9](?:[-a-z0-9]{0,61}[a-z0-9])?"
_PLAIN_VM = re.compile(rf"{_LABEL}(?:\.{_LABEL})*")

_Reasons = list[tuple[str, str]]  # code, message


@dataclass(frozen=True)
class Destination:
    """The target network of a port group's rows; `namespace` is for rows that name none.

    `vm_networks` are the names that existing VMs (namespace, name) give to the network.
    """

    network: Network
    namespace: str
    vm_networks: Mapping[tuple[str, str], str]
    rules: entries.Rules


class Destinations:
    """Destinations of the rows of an import by port group, and the options by which all are resolved.

    The import's mapping comes first, then its network. Without one, the network named like the port group
    is used, or the port group's last mapping. `namespaces` are those that its user may write, None for all.
    """

    def __init__(self, vm_import: VMImport) -> None:
        cluster_id, scope = vm_import.cluster_id, namespaces.import_scope(vm_import)
        rows = namespaces.visible(Network.objects.filter(cluster=cluster_id), scope)
        self._networks: dict[int, Network] = {row.pk: row for row in rows}
        self.subnets = [net for row in rows for net in udn.readable_networks(row.subnets)]
        self.are_claims = vm_import.target == ImportTarget.IPAMCLAIMS
        self.are_moved = vm_import.format.startswith(_SOURCES_OF_MTV)
        self.are_manifests = vm_import.format in _MANIFESTS
        names = scope.namespaces.get(cluster_id, frozenset())
        self.namespaces = names if vm_import.limited else None
        self._default = vm_import.network_id
        self._namespace = vm_import.namespace
        self._mapped: dict[str, tuple[int | None, str]] = {}
        if vm_import.network_id is None:
            for port_group in PortGroup.objects.filter(cluster=cluster_id):
                if vm_import.limited and not scope.has(cluster_id, port_group.namespace):
                    port_group.namespace = ""
                self._mapped[_key(port_group.name)] = (port_group.network_id, port_group.namespace)
            self._mapped |= {_key(row.name): (row.pk, "") for row in self._networks.values()}
        for name, destination in vm_import.mapping.items():
            self._mapped[_key(name)] = (
                destination.get("network"),
                destination.get("namespace", ""),
            )
        self._destinations: dict[str, Destination | None] = {}
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
        if self.are_claims and network.pk not in self._vm_networks:
            self._vm_networks[network.pk] = ipamclaims.vm_networks(network)
        # A UserDefinedNetwork serves its own namespace only.
        only = network.namespace if network.kind == NetworkKind.UDN else ""
        return Destination(
            network,
            namespace or self._namespace or only,
            self._vm_networks.get(network.pk, {}),
            entries.rules(network.subnets, lenient=True),
        )


def _key(name: str) -> str:
    return name.strip().casefold()


def store(
    vm_import: VMImport, interfaces: Iterable[VMInterface], step: Callable[[int], None]
) -> int:
    """Store the rows of an upload in batches, and return their number.

    `step` is called after each batch with the number of rows done. Errors of reading are raised.
    """
    destinations = Destinations(vm_import)
    numbered = enumerate(interfaces, start=1)
    rows_done = 0
    while batch := list(islice(numbered, BATCH)):
        rows = [
            VMRow(
                source_import_id=vm_import.pk,
                number=number,
                file=clean(interface.sheet, 64),
                line=interface.row,
                texts=_texts(interface),
            )
            for number, interface in batch
        ]
        save_resolved(rows, destinations)
        rows_done += len(rows)
        step(rows_done)
    return rows_done


def _texts(interface: VMInterface) -> dict[str, Any]:
    """Return what a row of a file says, with the problems of the file itself and whether they refuse the row."""
    texts = clean_texts({name: getattr(interface, name) for name in (*TEXTS, "vm_id")})
    if interface.problems:
        problems = [
            {key: clean(value, 500) for key, value in dataclasses.asdict(problem).items()}
            for problem in interface.problems
        ]
        texts |= {"problems": problems, "refused": interface.refused}
    return texts


def clean_texts(values: Mapping[str, Any]) -> dict[str, Any]:
    """Return values of a row's TEXTS as they are stored."""
    return {
        name: [clean(text) for text in value if text.strip()]
        if name == "ips"
        else clean(value, _LONGEST_NOTE if name == "note" else LONGEST)
        for name, value in values.items()
    }


def clean(text: str, longest: int = LONGEST) -> str:
    """Return the text without control characters and surrounding blanks, at most `longest` characters."""
    if text.isprintable() and len(text) <= longest:
        return text.strip()
    printable = "".join(char if char.isprintable() else " " for char in text[: 4 * longest])
    return " ".join(printable.split())[:longest]


def reread_rows(vm_import: VMImport) -> int:
    """Resolve all rows again by the import's mapping, network and namespace, and return how many go elsewhere now.

    The caller opens the transaction.
    """
    destinations = Destinations(vm_import)
    batches = stored_rows.in_batches(vm_import.rows, BATCH)
    return sum(save_resolved(batch, destinations) for batch in batches)


def save_resolved(rows: Sequence[VMRow], destinations: Destinations) -> int:
    """Resolve rows by the texts that their file, or a correction, has, and store those that this changes.

    Returns the number of rows that go to another network or namespace than before.
    """
    before = [None if row.pk is None else stored_rows.state(row) for row in rows]
    places = [(row.network_id, row.namespace) for row in rows]
    for row in rows:
        _resolve(row, destinations)
    stored_rows.save(
        row for row, state in zip(rows, before, strict=True) if stored_rows.state(row) != state
    )
    return sum(
        bool(row.network_id) and place != (row.network_id, row.namespace)
        for row, place in zip(rows, places, strict=True)
    )


def addresses_in_use(row: VMRow) -> Iterator[addresses.Address]:
    """Yield what a row says is in use: also where it cannot be parsed, and the address that its file has of the VM only."""
    told = [p["value"] for p in row.file_problems if p["code"] == NO_ADDRESS]
    text = " ".join(row.ips or [*row.source_ips, *told])
    for version, first, last in parsing.find_spans("address", {"address": text}):
        kind = IPv4Address if version == 4 else IPv6Address
        yield from map(kind, range(first, min(last, first + _MOST_OF_RANGE) + 1))


# --- what a row means on its network --------------------------------------------------------------


def _resolve(row: VMRow, destinations: Destinations) -> None:
    """Set the values that the row would be written with, and their problems; the first one of an unusable row refuses it."""
    reasons = [(p["code"], _sentence(p["value"], p["message"])) for p in row.file_problems]
    to = destinations.find(row.port_group)
    if to is None:
        row.values, usable = {"network": None, "ips": []}, False
        group = errors.display_value(row.port_group)
        what = f" of the port group {group}" if row.port_group else ": the source names none"
        reasons.insert(0, (UNMAPPED, f"Select the target network{what}."))
    else:
        row.values, usable = _resolve_on(to, row, destinations, reasons)
    row.problems = [{"code": code, "message": clean(message, 500)} for code, message in reasons]
    row.verdict = "" if usable else RowStatus.INVALID.value


def _resolve_on(
    to: Destination, row: VMRow, destinations: Destinations, reasons: _Reasons
) -> tuple[dict[str, Any], bool]:
    """Return the values of a row on its network, and whether they can be written; add the reasons."""
    network = to.network.name
    if destinations.are_manifests and row.port_group not in {"", network}:
        message = (
            f"The manifest is of the network {errors.display_value(row.port_group)}, but the target network of"
            f" the row is {network}."
        )
        reasons.append(("another_network", message))
    vm = _vm(row.source_vm, reasons, moved=destinations.are_moved)
    namespace = row.source_namespace or to.namespace
    usable = not row.refused and bool(vm or not row.source_vm)
    if namespace and (problem := _namespace_problem(namespace)):
        reasons.append(problem)
        usable, namespace = False, ""
    mac, ips = _mac(row, to, reasons), _ips(row, to, destinations, reasons)
    usable = usable and bool(mac or not row.source_mac) and bool(ips or not row.source_ips)
    codes = {code for code, _ in reasons}
    for code, message in _lacking(row, vm, namespace, destinations):
        usable = usable and code == NO_ADDRESS
        if code not in codes:
            reasons.append((code, message))
    claim_name = ""
    if destinations.are_claims and vm:
        claim_name = _claim_name(vm, to.vm_networks.get((namespace, vm), network), reasons)
        usable = usable and bool(claim_name)
    if not usable:
        reasons.sort(key=lambda reason: reason[0] in _HARMLESS)
    values = {"network": to.network.pk, "vm": vm, "namespace": namespace, "mac": mac, "ips": ips}
    return {**values, "claim_name": claim_name}, usable


def _claim_name(vm: str, network: str, reasons: _Reasons) -> str:
    name = ipamclaim.compose_key(vm, network) or ""
    if not name or name[-1] in ".-":
        message = f"{vm}.{network} is not valid as the name of an IPAMClaim."
        reasons.append(("name_impossible", message))
        return ""
    return name


def _sentence(value: str, message: str) -> str:
    return f"{value}: {message}" if value and value not in message else message


def _vm(name: str, reasons: _Reasons, *, moved: bool) -> str:
    """Return the name of a VM in the cluster; "" for one that cannot be converted."""
    longest = vm_interface.MAX_LENGTH if moved else 253
    if not name or (_PLAIN_VM.fullmatch(name) and len(name) <= longest):
        return name
    cluster_name = vm_interface.sanitize(name)
    if cluster_name:
        reasons.append(("vm_name_changed", f"In the cluster the VM is named {cluster_name}."))
    else:
        shown = errors.display_value(name)
        message = f"{shown} cannot be converted to a valid VM name: enter a name."
        reasons.append(("vm_name", message))
    return cluster_name


def _is_refused(row: VMRow, name: str) -> bool:
    """Return True if the reader has said why it refuses the row, and that of this field."""
    return row.refused and any(problem["field"] == name for problem in row.file_problems)


def _namespace_problem(name: str) -> tuple[str, str] | None:
    try:
        holders.parse_label(name, field="namespace")
    except errors.InvalidInput as error:
        return error.code, f"Namespace {errors.display_value(name)}: {error.message}"
    return None


def _mac(row: VMRow, to: Destination, reasons: _Reasons) -> str | None:
    if not row.source_mac or _is_refused(row, "mac"):
        return None
    try:
        return entries.parse_mac(row.source_mac, to.rules)
    except errors.InvalidInput as error:
        shown = errors.display_value(row.source_mac)
        reasons.append((error.code, f"MAC {shown}: {error.message}"))
    return None


def _without_unknown(
    ips: Sequence[str], to: Destination, destinations: Destinations, reasons: _Reasons
) -> Sequence[str]:
    """Return addresses without those that the guest reports beside its own and no known network has."""
    if len(ips) < 2:
        return ips
    try:
        found = {text: ip_address(text.partition("/")[0]) for text in ips}
    except ValueError:
        return ips
    if not any(to.rules.subnet_of(ip) for ip in found.values()):
        return ips
    kept = [
        text
        for text, ip in found.items()
        if to.rules.subnet_of(ip) or any(ip in subnet for subnet in destinations.subnets)
    ]
    reasons += [
        ("unknown_set_aside", f"{text} was left out: no known network has it")
        for text in found
        if text not in kept
    ]
    return kept


def _ips(row: VMRow, to: Destination, destinations: Destinations, reasons: _Reasons) -> list[str]:
    ips: Sequence[str] = row.source_ips
    if destinations.are_moved:
        ips = _without_unknown(ips, to, destinations, reasons)
    if not ips or _is_refused(row, "ips"):
        return []
    try:
        parsed = entries.parse_ips(tuple(ips), to.rules)
    except errors.InvalidInput as error:
        reasons += [_address_reason(problem, ips) for problem in error.problems]
        return []
    lengths = {
        parsed_ip.partition("/")[2]
        for parsed_ip, raw_ip in zip(parsed, ips, strict=True)
        if "/" not in raw_ip
    }
    for size in sorted(lengths):
        message = f"The prefix length /{size} is that of the network {to.network.name}."
        reasons.append(("prefix_added", message))
    reasons += declined_reasons(parsed, {subnet.version for subnet in to.rules.subnets})
    return list(parsed)


def declined_reasons(ips: Iterable[str], families: Collection[int]) -> _Reasons:
    """Return why a VM would not start with these addresses on a network of these IP families, and the way out."""
    try:
        static_vms.check_families(ips, families, "The row")
    except static_vms.DeclinedError as declined:
        return [(declined.code, f"{declined.message}. {DECLINED[declined.code]}")]
    return []


def _address_reason(problem: errors.FieldProblem, ips: Sequence[str]) -> tuple[str, str]:
    is_host = problem.value.endswith(("/32", "/128"))
    if problem.code == "prefix_mismatch" and is_host and len(ips) > 1:
        message = (
            f"{problem.value} is a virtual address beside the interface's own: keep that one here, and reserve the"
            " virtual one in the network's pool."
        )
        return "virtual_address", message
    return problem.code, _sentence(problem.value, problem.message)


def _lacking(
    row: VMRow, vm: str, namespace: str, destinations: Destinations
) -> list[tuple[str, str]]:
    """Return a reason for each required value of the target that is missing, or that its user may not write."""
    if destinations.are_claims:
        required = [
            (row.source_vm, "vm_missing", "An IPAMClaim needs the name of its VM."),
            (namespace, "namespace_missing", "An IPAMClaim needs the namespace of its VM."),
        ]
    else:
        message = "An entry needs an address: enter one, or take the next free one."
        required = [
            (row.source_mac, "mac_missing", "An entry needs a MAC address."),
            (" ".join(row.source_ips), NO_ADDRESS, message),
        ]
    reasons = [(code, message) for value, code, message in required if not value]
    if destinations.namespaces is not None and not vm:
        reasons.append(("vm_missing", "Select one of your VMs."))
    if destinations.namespaces is not None and namespace not in destinations.namespaces:
        message = "You can do this only in namespaces that you own."
        reasons.append(("permission_denied", message))
    return reasons
