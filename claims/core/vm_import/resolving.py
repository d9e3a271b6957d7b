"""Resolves import rows for their target network: VM, MAC and addresses as the register stores them.

Rows are parsed leniently, with the rules of all entry points (claims/core/entries.py): blanks are
trimmed, and a missing prefix length is taken from the network's subnet, with a remark.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import lru_cache
from ipaddress import ip_address

from claims.core import entries
from claims.core.ipamclaims import ipamclaim
from claims.core.networks import static_vms
from claims.core.vm_import import vm_interface
from claims.core.vm_import.vm_interface import VMInterface
from pools.core import errors, holders
from pools.core.addresses import Network

Reason = tuple[str, str]  # code, message

IPPOOL, IPAMCLAIMS = "ippool", "ipamclaims"
_PLAIN_MAC = re.compile("[0-9a-f][02468ace](:[0-9a-f]{2}){5}")
_ZERO = "00:00:00:00:00:00"
_LABEL = "[a-z0-9](?:[-a-z0-9]{0,61}[a-z0-9])?"
_PLAIN_VM = re.compile(rf"{_LABEL}(?:\.{_LABEL})*")
UNMAPPED, NO_ADDRESS = "unmapped_port_group", "no_address"
_HARMLESS = frozenset({"prefix_added", "vm_name_changed"})  # do not make a row unusable
# For an existing entry these, and NO_ADDRESS, are remarks; a new entry with them is not written.
DECLINED = {
    static_vms.TOO_MANY: "Keep one of them.",
    static_vms.MISSING: "Enter an address, or take the next free one.",
}


@dataclass(frozen=True, slots=True)
class ResolvedRow:
    """The row as it would be written; if it is not `usable`, the first of `reasons` refuses it."""

    network_id: int | None
    vm: str = ""
    namespace: str = ""
    mac: str | None = None
    ips: tuple[str, ...] = ()
    claim_name: str = ""
    usable: bool = True
    reasons: tuple[Reason, ...] = ()


@dataclass(frozen=True)
class Destination:
    """The target network of a port group's rows; `namespace` is for rows that name none.

    `vm_networks` are the names that existing VMs (namespace, name) give to the network, `others` the subnets of all
    networks that the user may see.
    """

    network_id: int
    network: str
    subnets: Sequence[str]
    namespace: str = ""
    vm_networks: Mapping[tuple[str, str], str] = field(default_factory=dict)
    others: Sequence[Network] = ()
    rules: entries.Rules = field(init=False)
    families: frozenset[int] = field(init=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "rules", entries.rules(self.subnets, lenient=True))
        families = frozenset(subnet.version for subnet in self.rules.subnets)
        object.__setattr__(self, "families", families)


@dataclass(frozen=True)
class Plan:
    """Options for all rows of an import.

    `namespaces` are those that the user may write, None for all. `moved`: MTV migrates the VMs and
    changes their names, even valid ones. `manifests`: the port group of a row is the name of a logical
    network.
    """

    target: str
    namespaces: frozenset[str] | None = None
    moved: bool = False
    manifests: bool = False


def resolve(row: VMInterface, to: Destination | None, plan: Plan) -> ResolvedRow:
    """Resolve a row. Never raises: problems are in the reasons of the result."""
    reasons: list[Reason] = [
        (row_problem.code, _sentence(row_problem)) for row_problem in row.problems
    ]
    if to is None:
        return ResolvedRow(None, usable=False, reasons=(_unmapped(row.port_group), *reasons))
    if plan.manifests and row.port_group not in {"", to.network}:
        message = (
            f"The manifest is of the network {errors.display_value(row.port_group)}, but the target network of"
            f" the row is {to.network}."
        )
        reasons.append(("another_network", message))
    usable = not row.refused
    vm, vm_reason = _vm(row.vm, moved=plan.moved)
    if vm_reason:
        reasons.append(vm_reason)
        usable = usable and vm_reason[0] == "vm_name_changed"
    namespace = row.namespace or to.namespace
    if namespace and (problem := _namespace_problem(namespace)):
        reasons.append(problem)
        usable, namespace = False, ""
    row = _set_aside(row, to, reasons) if plan.moved else row
    mac, ips = _mac(row, reasons), _ips(row, to, reasons)
    usable = usable and bool(mac or not row.mac) and bool(ips or not row.ips)
    lacking = [*_lacking(row, plan, namespace), *_foreign(vm, namespace, plan)]
    if lacking:
        existing_codes = {code for code, _ in reasons}
        reasons += [reason for reason in lacking if reason[0] not in existing_codes]
        usable = usable and all(code == NO_ADDRESS for code, _ in lacking)
    vm_network = to.vm_networks.get((namespace, vm), to.network)
    name = _claim_name(vm, vm_network) if plan.target == IPAMCLAIMS and vm else ""
    if name is None:
        reasons.append(
            ("name_impossible", f"{vm}.{vm_network} is not valid as the name of an IPAMClaim.")
        )
        usable, name = False, ""
    if not usable:
        reasons.sort(key=lambda reason: reason[0] in _HARMLESS)
    return ResolvedRow(to.network_id, vm, namespace, mac, ips, name, usable, tuple(reasons))


def _claim_name(vm: str, network: str) -> str | None:
    name = ipamclaim.compose_key(vm, network)
    return name if name and name[-1] not in ".-" else None


def _unmapped(port_group: str) -> Reason:
    if not port_group:
        return UNMAPPED, "Select the target network: the source names none."
    return (
        UNMAPPED,
        f"Select the target network of the port group {errors.display_value(port_group)}.",
    )


def _sentence(problem: errors.FieldProblem) -> str:
    message = problem.message
    if problem.value and problem.value not in message:
        return f"{problem.value}: {message}"
    return message


def _vm(name: str, *, moved: bool) -> tuple[str, Reason | None]:
    if not name:
        return "", None
    if _PLAIN_VM.fullmatch(name) and len(name) <= (vm_interface.MAX_LENGTH if moved else 253):
        return name, None
    cluster_name = vm_interface.sanitize(name)
    if not cluster_name:
        message = (
            f"{errors.display_value(name)} cannot be converted to a valid VM name: enter a name."
        )
        return "", ("vm_name", message)
    return cluster_name, ("vm_name_changed", f"In the cluster the VM is named {cluster_name}.")


@lru_cache(1024)
def _namespace_problem(name: str) -> Reason | None:
    try:
        holders.parse_label(name, field="namespace")
    except errors.InvalidInput as error:
        return error.code, f"Namespace {errors.display_value(name)}: {error.message}"
    return None


def _is_refused(row: VMInterface, name: str) -> bool:
    """Return True if the reader has said why it refuses the row, and that of this field."""
    return row.refused and any(problem.field == name for problem in row.problems)


def _mac(row: VMInterface, reasons: list[Reason]) -> str | None:
    text = row.mac
    if not text or _is_refused(row, "mac"):
        return None
    if _PLAIN_MAC.fullmatch(text) and text != _ZERO:
        return text
    try:
        return entries.parse_mac(text, _LENIENT)
    except errors.InvalidInput as error:
        reasons.append((error.code, f"MAC {errors.display_value(text)}: {error.message}"))
    return None


_LENIENT = entries.Rules(lenient=True)


def _set_aside(row: VMInterface, to: Destination, reasons: list[Reason]) -> VMInterface:
    """Return the row without addresses that the guest reports beside its own and no known network has."""
    if len(row.ips) < 2:
        return row
    try:
        found = {text: ip_address(text.partition("/")[0]) for text in row.ips}
    except ValueError:
        return row
    if not any(ip in subnet for ip in found.values() for subnet in to.rules.subnets):
        return row
    kept = [
        text
        for text, ip in found.items()
        if any(ip in subnet for subnet in (*to.rules.subnets, *to.others))
    ]
    left_out = [text for text in found if text not in kept]
    reasons += [
        ("unknown_set_aside", f"{text} was left out: no known network has it") for text in left_out
    ]
    return replace(row, ips=tuple(kept)) if left_out else row


def _ips(row: VMInterface, to: Destination, reasons: list[Reason]) -> tuple[str, ...]:
    if not row.ips or _is_refused(row, "ips"):
        return ()
    try:
        parsed = entries.parse_ips(row.ips, to.rules)
    except errors.InvalidInput as error:
        reasons += [_address_reason(problem, row) for problem in error.problems]
        return ()
    lengths = {
        parsed_ip.partition("/")[2]
        for parsed_ip, raw_ip in zip(parsed, row.ips, strict=True)
        if "/" not in raw_ip
    }
    reasons += [_prefix_added(size, to.network) for size in sorted(lengths)]
    return _declined(parsed, to, reasons)


def _address_reason(problem: errors.FieldProblem, row: VMInterface) -> Reason:
    is_host = problem.value.endswith(("/32", "/128"))
    if problem.code == "prefix_mismatch" and is_host and len(row.ips) > 1:
        message = (
            f"{problem.value} is a virtual address beside the interface's own: keep that one here, and reserve the"
            " virtual one in the network's pool."
        )
        return "virtual_address", message
    return problem.code, _sentence(problem)


@lru_cache(1024)
def _prefix_added(size: str, network: str) -> Reason:
    return "prefix_added", f"The prefix length /{size} is that of the network {network}."


def _declined(ips: tuple[str, ...], to: Destination, reasons: list[Reason]) -> tuple[str, ...]:
    if len(ips) == len(to.families) == 1:  # the most frequent case
        return ips
    try:
        static_vms.check_families(ips, to.families, "The row")
    except static_vms.DeclinedError as declined:
        reasons.append((declined.code, f"{declined.message}. {DECLINED[declined.code]}"))
    return ips


def _lacking(row: VMInterface, plan: Plan, namespace: str) -> Iterator[Reason]:
    """Yield a reason for each required value of the target that is missing."""
    if plan.target == IPPOOL:
        if not row.mac:
            yield "mac_missing", "An entry needs a MAC address."
        if not row.ips:
            yield NO_ADDRESS, "An entry needs an address: enter one, or take the next free one."
        return
    if not row.vm:
        yield "vm_missing", "An IPAMClaim needs the name of its VM."
    if not namespace:
        yield "namespace_missing", "An IPAMClaim needs the namespace of its VM."


def _foreign(vm: str, namespace: str, plan: Plan) -> Iterator[Reason]:
    """Yield the reasons against a row of a user who may write only for VMs of some namespaces."""
    if plan.namespaces is None:
        return
    if not vm:
        yield "vm_missing", "Select one of your VMs."
    if namespace not in plan.namespaces:
        yield "permission_denied", "You can do this only in namespaces that you own."
