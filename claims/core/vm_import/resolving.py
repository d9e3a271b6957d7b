"""What becomes of a row for the network that it goes to: its VM, MAC and addresses as the register has them.

A file is read leniently, with the rules of every other door (claims/core/entries.py): blanks trimmed, a
missing prefix length taken from the network's subnet and said. Plain addresses inside a subnet, nearly
all of a file, are recognised by numbers alone.
"""

from __future__ import annotations

import re
import socket
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache

from claims.core import address_requests, entries
from claims.core.ipamclaims import names
from claims.core.vm_import import vm_names
from pools.core import errors, holders

Reason = tuple[str, str]  # code, message

IPPOOL, IPAMCLAIMS = "ippool", "ipamclaims"
_PLAIN_MAC = re.compile("[0-9a-f][02468ace](:[0-9a-f]{2}){5}")
_ZERO = "00:00:00:00:00:00"
_LABEL = "[a-z0-9](?:[-a-z0-9]{0,61}[a-z0-9])?"
_PLAIN_VM = re.compile(rf"{_LABEL}(?:\.{_LABEL})*")
UNMAPPED = "unmapped_port_group"
_HARMLESS = frozenset({"prefix_added", "vm_name_changed"})  # and no harm
# Of an entry that is there these are said only; a new one is not written.
DECLINED = {
    address_requests.TOO_MANY: "Keep one of them.",
    address_requests.MISSING: "Write one, or take the next free one.",
}


@dataclass(frozen=True, slots=True)
class SourceRow:
    """A row in the words of its file, or of whoever corrected it."""

    vm: str
    mac: str
    ips: tuple[str, ...]
    port_group: str = ""
    namespace: str = ""
    note: str = ""
    problems: tuple[errors.FieldProblem, ...] = ()
    refused: bool = False


@dataclass(frozen=True, slots=True)
class Resolved:
    """The row as it would be written; one that is not `usable` is refused for the first of `reasons`."""

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
    """Where rows of a port group go; `namespace` is that of rows that name none.

    `vm_networks`: what VMs (namespace, name) that are there call the network.
    """

    network_id: int
    network: str
    subnets: Sequence[str]
    namespace: str = ""
    vm_networks: Mapping[tuple[str, str], str] = field(default_factory=dict)
    rules: entries.Rules = field(init=False)
    families: frozenset[int] = field(init=False)
    _spans: tuple[tuple[int, int, int, str], ...] = field(init=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "rules", entries.rules(self.subnets, lenient=True))
        families = frozenset(subnet.version for subnet in self.rules.subnets)
        object.__setattr__(self, "families", families)
        spans = []
        for subnet in self.rules.subnets:
            few = subnet.num_addresses <= 2  # RFC 3021, RFC 6164
            first = int(subnet.network_address) + (not few)
            last = int(subnet.broadcast_address) - (not few and subnet.version == 4)
            spans.append((subnet.version, first, last, str(subnet.prefixlen)))
        object.__setattr__(self, "_spans", tuple(spans))

    def quick(self, text: str) -> tuple[str, str] | None:
        """A plain host address of a subnet with its prefix length, and that length if it was missing.

        None: it takes the parser to tell what this is.
        """
        bare, slash, size = text.partition("/")
        version = 6 if ":" in bare else 4
        try:
            packed = socket.inet_pton(socket.AF_INET6 if version == 6 else socket.AF_INET, bare)
        except (OSError, ValueError):
            return None
        number = int.from_bytes(packed)
        for family, first, last, prefix_length in self._spans:
            if family == version and first <= number <= last:
                if slash and size != prefix_length:
                    return None
                if version == 6:
                    if number < 1 << 48:  # may be written as an IPv4 address
                        return None
                    bare = socket.inet_ntop(socket.AF_INET6, packed)
                return f"{bare}/{prefix_length}", "" if slash else prefix_length
        return None


@dataclass(frozen=True)
class Plan:
    """How all rows of an import are read.

    `namespaces` are those whose rows may be written, None for all. `moved`: VMs get the name in the
    cluster that MTV gives them, also one that could stay. `manifests`: what stands in place of a port
    group is the name of a logical network.
    """

    target: str
    namespaces: frozenset[str] | None = None
    moved: bool = False
    manifests: bool = False


def resolve(row: SourceRow, to: Destination | None, plan: Plan) -> Resolved:
    """Never raises: what is wrong is said in the reasons."""
    reasons: list[Reason] = [
        (row_problem.code, _sentence(row_problem)) for row_problem in row.problems
    ]
    if to is None:
        return Resolved(None, usable=False, reasons=(_unmapped(row.port_group), *reasons))
    if plan.manifests and row.port_group not in {"", to.network}:
        message = (
            f"The manifest is one of the network {errors.shown(row.port_group)}; the row goes to"
        )
        reasons.append(("another_network", f"{message} {to.network}."))
    usable = not row.refused
    vm, vm_reason = _vm(row.vm, moved=plan.moved)
    if vm_reason:
        reasons.append(vm_reason)
        usable = usable and vm_reason[0] == "vm_name_changed"
    namespace = row.namespace or to.namespace
    if namespace and (problem := _namespace_problem(namespace)):
        reasons.append(problem)
        usable, namespace = False, ""
    mac, ips = _mac(row, reasons), _ips(row, to, reasons)
    usable = usable and bool(mac or not row.mac) and bool(ips or not row.ips)
    lacking = [*_lacking(row, plan, namespace), *_foreign(vm, namespace, plan)]
    if lacking:
        existing_codes = {code for code, _ in reasons}
        reasons += [reason for reason in lacking if reason[0] not in existing_codes]
        usable = False
    called = to.vm_networks.get((namespace, vm), to.network)
    name = _claim_name(vm, called) if plan.target == IPAMCLAIMS and vm else ""
    if name is None:
        reasons.append(("name_impossible", f"No IPAMClaim can be called {vm}.{called}."))
        usable, name = False, ""
    if not usable:
        reasons.sort(key=lambda reason: reason[0] in _HARMLESS)
    return Resolved(to.network_id, vm, namespace, mac, ips, name, usable, tuple(reasons))


def _claim_name(vm: str, network: str) -> str | None:
    name = names.compose_key(vm, network)
    return name if name and name[-1] not in ".-" else None


def _unmapped(port_group: str) -> Reason:
    if not port_group:
        return UNMAPPED, "Say which network it goes to: the source names none."
    return UNMAPPED, f"Say which network the port group {errors.shown(port_group)} is."


def _sentence(problem: errors.FieldProblem) -> str:
    message = problem.message
    if problem.value and problem.value not in message:
        return f"{problem.value}: {message}"
    return message


def _vm(name: str, *, moved: bool) -> tuple[str, Reason | None]:
    if not name:
        return "", None
    if _PLAIN_VM.fullmatch(name) and len(name) <= (vm_names.LONGEST if moved else 253):
        return name, None
    cluster_name = vm_names.sanitised(name)
    if not cluster_name:
        message = (
            f"Nothing that a VM can be called is left of {errors.shown(name)}: give it a name."
        )
        return "", ("vm_name", message)
    return cluster_name, ("vm_name_changed", f"In the cluster the VM is called {cluster_name}.")


@lru_cache(1024)
def _namespace_problem(name: str) -> Reason | None:
    try:
        holders.parse_name(name, field="namespace", kind="label")
    except errors.InvalidInput as error:
        return error.code, f"Namespace {errors.shown(name)}: {error.message}"
    return None


def _mac(row: SourceRow, reasons: list[Reason]) -> str | None:
    text = row.mac
    if not text:
        return None
    if _PLAIN_MAC.fullmatch(text) and text != _ZERO:
        return text
    try:
        return entries.parse_mac(text, _LENIENT)
    except errors.InvalidInput as error:
        reasons.append((error.code, f"MAC {errors.shown(text)}: {error.message}"))
    return None


_LENIENT = entries.Rules(lenient=True)


def _ips(row: SourceRow, to: Destination, reasons: list[Reason]) -> tuple[str, ...]:
    plain_ips, added = [], dict[str, None]()
    for text in row.ips:
        quick = to.quick(text)
        if quick is None:
            break
        plain_ips.append(quick[0])
        if quick[1]:
            added[quick[1]] = None
    else:
        if len(plain_ips) == 1 or len(set(plain_ips)) == len(plain_ips) <= entries.MOST_ADDRESSES:
            reasons += [_prefix_added(size, to.network) for size in added]
            return _declined(tuple(plain_ips), to, reasons)
    if not row.ips:
        return ()
    try:
        parsed = entries.parse_ips(row.ips, to.rules)
    except errors.InvalidInput as error:
        reasons += [(problem.code, _sentence(problem)) for problem in error.problems]
        return ()
    lengths = {
        parsed_ip.partition("/")[2]
        for parsed_ip, raw_ip in zip(parsed, row.ips, strict=True)
        if "/" not in raw_ip
    }
    reasons += [_prefix_added(size, to.network) for size in sorted(lengths)]
    return _declined(parsed, to, reasons)


@lru_cache(1024)
def _prefix_added(size: str, network: str) -> Reason:
    return "prefix_added", f"The prefix length /{size} is that of the network {network}."


def _declined(ips: tuple[str, ...], to: Destination, reasons: list[Reason]) -> tuple[str, ...]:
    if len(ips) == len(to.families) == 1:  # nearly all: an address of the only family
        return ips
    try:
        address_requests.check_families(ips, to.families, "The row")
    except address_requests.DeclinedError as declined:
        reasons.append((declined.code, f"{declined.message}. {DECLINED[declined.code]}"))
    return ips


def _lacking(row: SourceRow, plan: Plan, namespace: str) -> Iterator[Reason]:
    """What has to be there for the target."""
    if plan.target == IPPOOL:
        if not row.mac:
            yield "mac_missing", "An entry needs a MAC address."
        if not row.ips:
            yield "no_address", "An entry needs an address: write one, or take the next free one."
        return
    if not row.vm:
        yield "vm_missing", "An IPAMClaim needs the name of its VM."
    if not namespace:
        yield "namespace_missing", "An IPAMClaim needs the namespace of its VM."


def _foreign(vm: str, namespace: str, plan: Plan) -> Iterator[Reason]:
    """Who may write for some namespaces only names a VM of one of them."""
    if plan.namespaces is None:
        return
    if not vm:
        yield "vm_missing", "Say for which of your VMs it is."
    if namespace not in plan.namespaces:
        yield "permission_denied", "You may do this in namespaces of your own only."
