"""The parser of MAC entries, for all entry points: a MAC address and its addresses.

Addresses are host addresses with the prefix length of their network (`10.0.0.5/24`; rule
`entry-is-a-host-address`); a network address, as in an example of the enhancement proposal, is refused.
Several addresses of one family, as in that example, are refused, because OVN-Kubernetes accepts at most one of
each family. An object of a cluster that has them is taken in, with a warning (rule `entry-addresses-are-a-list`).
"""

import dataclasses
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from claims.core import macs
from claims.core.networks import udn
from pools.core import addresses, errors, holders, object_reader
from pools.core.addresses import InputSource, Interface, Network

FIELDS = ("mac", "ips", "vm", "namespace", "note")
MAX_ADDRESSES = 16  # of one MAC address
# Networks of this prefix length have no network or broadcast address (RFC 3021, RFC 6164).
_NO_NETWORK_ADDRESS = {4: 31, 6: 127}


@dataclass(frozen=True)
class EntrySpec:
    """The values of a MAC entry; None is a value that is not specified.

    `mac` is in lower case with colons, `ips` are in canonical form with their prefix length.
    """

    mac: str
    ips: tuple[str, ...]
    vm: str | None = None
    namespace: str | None = None
    note: str | None = None


@dataclass(frozen=True)
class Rules:
    """Rules of the parser; without `subnets` the network is unknown.

    For `lenient` entry points (forms, files) it trims blanks, accepts MAC octets of one digit, and adds
    the prefix length of the subnet. Users may enter only `one_per_family`; objects of clusters may have more.
    """

    subnets: tuple[Network, ...] = ()
    lenient: bool = False
    one_per_family: bool = False

    @property
    def source(self) -> InputSource:
        return InputSource.TEXT if self.lenient else InputSource.API

    def subnet_of(self, address: addresses.Address) -> Network | None:
        """Return the subnet that contains the address, or None."""
        return next((net for net in self.subnets if address in net), None)


def rules(subnets: Sequence[str], *, lenient: bool = False, one_per_family: bool = False) -> Rules:
    """Return the rules for a network with these subnets (strings of claims.models.Network).

    Subnets of layer3 networks (`cidr/size of a node's subnet`) are ignored: they do not determine the
    prefix length of an address.
    """
    return Rules(tuple(udn.readable_networks(subnets)), lenient, one_per_family)


def parse(value: object, entry_rules: Rules, *, field: str = "") -> EntrySpec:
    """Parse an entry `{"mac", "ips", "vm", "namespace", "note"}`.

    Raises InvalidInput with every problem: wrong_type, unknown_field, required, the codes of
    macs.parse_mac and parse_ips, k8s_name, too_long, invisible_character.
    """
    if not isinstance(value, dict):
        raise errors.InvalidInput.for_field(field, "wrong_type", "an object is expected", value)
    body = object_reader.Fields(value, field, object_reader.ProblemReport())
    body.allow_only(*FIELDS)
    mac = body.parse("mac", lambda raw_mac, path: parse_mac(raw_mac, entry_rules, path))
    ips = body.parse("ips", lambda raw_ips, path: parse_ips(raw_ips, entry_rules, path))
    vm, namespace, note = (optional(body, name) for name in ("vm", "namespace", "note"))
    body.report.raise_any()
    return EntrySpec(mac or "", ips or (), vm, namespace, note)


def optional(body: object_reader.Fields, name: str) -> str | None:
    """Parse the `vm`, `namespace` or `note` of an entry; None if it is absent."""
    if not body.has(name):
        return None
    return body.parse(name, _PARSERS[name])


def parse_vm(value: object, path: str) -> str:
    """Parse the name of a VM, which may be empty. Raises InvalidInput k8s_name."""
    return "" if value == "" else holders.parse_name(value, path)


def parse_namespace(value: object, path: str) -> str:
    """Parse the name of a namespace, which may be empty. Raises InvalidInput k8s_name."""
    return "" if value == "" else holders.parse_label(value, path)


_PARSERS: dict[str, Callable[[object, str], str]] = {
    "vm": parse_vm,
    "namespace": parse_namespace,
    "note": holders.parse_description,
}


def parse_mac(value: object, entry_rules: Rules, field: str = "mac") -> str:
    """Parse a MAC address with the leniency of the rules, as macs.parse_mac does."""
    return macs.parse_mac(value, field=field, lenient=entry_rules.lenient)


def parse_ips(value: object, entry_rules: Rules, field: str = "ips") -> tuple[str, ...]:
    """Parse the addresses of one MAC address; the result is like `("10.0.0.5/24",)`.

    Raises InvalidInput with every problem: wrong_type, empty_list, too_many, repeated_address,
    one_per_family and the codes of parse_ip.
    """
    if isinstance(value, str) or not isinstance(value, list | tuple):
        message = 'a list of addresses is expected, such as ["10.0.0.5/24"]'
        raise errors.InvalidInput.for_field(field, "wrong_type", message, value)
    if not value:
        message = "at least one address is required"
        raise errors.InvalidInput.for_field(field, "empty_list", message, "[]")
    if len(value) > MAX_ADDRESSES:
        message = f"a MAC address has at most {MAX_ADDRESSES} addresses"
        raise errors.InvalidInput.for_field(field, "too_many", message)
    report = object_reader.ProblemReport()
    text_by_address: dict[addresses.Address, str] = {}
    for index, raw_ip in enumerate(value):
        path = f"{field}.{index}" if field else str(index)
        with report.collect():
            interface = parse_ip(raw_ip, entry_rules, path)
            if interface.ip in text_by_address:
                message = f"{interface.ip} occurs twice, first as {text_by_address[interface.ip]}"
                report.add(path, "repeated_address", message, str(interface))
            text_by_address.setdefault(interface.ip, str(interface))
    if entry_rules.one_per_family:
        report.problems += warnings(list(text_by_address.values()), field=field)
    report.raise_any()
    return tuple(text_by_address.values())


def parse_ip(value: object, entry_rules: Rules, field: str = "") -> Interface:
    """Parse a host address with the prefix length of its subnet.

    Raises InvalidInput: the codes of addresses.parse_interface, network_address_not_host,
    broadcast_address_not_host, outside_subnet, prefix_mismatch.
    """
    interface = _interface(value, entry_rules, field)
    _check_host(interface.ip, interface.network, field, value)
    if not entry_rules.subnets:
        return interface
    subnet = entry_rules.subnet_of(interface.ip)
    if subnet is None:
        message = (
            f"{interface.ip} is in none of the network's subnets ({_listed(entry_rules.subnets)})"
        )
        raise errors.InvalidInput.for_field(field, "outside_subnet", message, value)
    _check_host(interface.ip, subnet, field, value)
    if interface.network.prefixlen != subnet.prefixlen:
        message = f"the subnet is {subnet}; did you mean {interface.ip}/{subnet.prefixlen}?"
        raise errors.InvalidInput.for_field(field, "prefix_mismatch", message, value)
    return interface


def _interface(value: object, entry_rules: Rules, field: str) -> Interface:
    if entry_rules.lenient and isinstance(value, str) and "/" not in value:
        address = addresses.parse_address(value, field=field, source=entry_rules.source)
        subnet = entry_rules.subnet_of(address)
        if subnet is not None:
            value = f"{address}/{subnet.prefixlen}"
        elif entry_rules.subnets:
            value = f"{address}/{address.max_prefixlen}"  # `parse_ip` reports it
    return addresses.parse_interface(value, field=field, source=entry_rules.source)


def _check_host(address: addresses.Address, network: Network, field: str, value: object) -> None:
    if network.prefixlen >= _NO_NETWORK_ADDRESS[network.version]:
        return
    if address == network.network_address:
        message = f"{address} is the address of the network {network} itself, not of a host in it"
        raise errors.InvalidInput.for_field(field, "network_address_not_host", message, value)
    if network.version == 4 and address == network.broadcast_address:
        message = f"{address} is the broadcast address of {network}, not that of a host"
        raise errors.InvalidInput.for_field(field, "broadcast_address_not_host", message, value)


def _listed(subnets: Sequence[Network]) -> str:
    return ", ".join(map(str, subnets))


def warnings(ips: Sequence[str], *, field: str = "ips") -> list[errors.FieldProblem]:
    """Return the warnings about accepted addresses: `one_per_family`, because OVN-Kubernetes refuses the pod."""
    problems = []
    for family in (4, 6):
        same = [text for text in ips if (":" in text) == (family == 6)]
        if len(same) > 1:
            message = f"{len(same)} IPv{family} addresses: OVN-Kubernetes accepts at most one of each family"
            problems.append(errors.FieldProblem(field, "one_per_family", message, ", ".join(same)))
    return problems


def pairs(entry_map: Mapping[str, object]) -> Iterator[tuple[str, object]]:
    """Yield MAC and addresses from the map of an IPPool; a repeated key is yielded for each occurrence."""
    for mac, ips in entry_map.items():
        if isinstance(ips, object_reader.RepeatedKey):
            yield from ((mac, repeated_ips) for repeated_ips in ips)
        else:
            yield mac, ips


def parse_map(entry_map: object, entry_rules: Rules, *, field: str = "entries") -> list[EntrySpec]:
    """Parse the entries of `{mac: [ips]}`. Raises InvalidInput with all problems, under `field.<mac>`."""
    if not isinstance(entry_map, dict):
        message = "an object of MAC addresses and their addresses is expected"
        raise errors.InvalidInput.for_field(field, "wrong_type", message, entry_map)
    report = object_reader.ProblemReport()
    specs = []
    for mac, ips in pairs(entry_map):
        path = f"{field}.{errors.display_value(mac)}" if field else errors.display_value(mac)
        with report.collect():
            specs.append(parse_pair(mac, ips, entry_rules, field=path))
    _raise_first(report)
    return specs


def parse_pair(mac: str, ips: object, entry_rules: Rules, *, field: str = "") -> EntrySpec:
    """Parse one key and value of the map. Raises InvalidInput with all problems."""
    report = object_reader.ProblemReport()
    parsed_mac = ""
    parsed_ips: tuple[str, ...] = ()
    with report.collect():
        parsed_mac = parse_mac(mac, entry_rules, field)
    with report.collect():
        parsed_ips = parse_ips(ips, entry_rules, field)
    report.raise_any()
    return EntrySpec(parsed_mac, parsed_ips)


def parse_list(items: object, entry_rules: Rules, *, field: str = "entries") -> list[EntrySpec]:
    """Parse a list of entries; absent values are empty. Raises InvalidInput with all problems."""
    if not isinstance(items, list):
        raise errors.InvalidInput.for_field(field, "wrong_type", "a list is expected", items)
    report = object_reader.ProblemReport()
    specs = []
    for index, value in enumerate(items):
        with report.collect():
            path = f"{field}.{index}" if field else str(index)
            spec = parse(value, entry_rules, field=path)
            specs.append(
                dataclasses.replace(
                    spec, vm=spec.vm or "", namespace=spec.namespace or "", note=spec.note or ""
                )
            )
    _raise_first(report)
    return specs


_MAX_PROBLEMS = 100


def _raise_first(report: object_reader.ProblemReport) -> None:
    """Raise the first problems of a report, because there may be a hundred thousand."""
    omitted_count = len(report.problems) - _MAX_PROBLEMS
    if omitted_count > 0:
        report.problems = report.problems[:_MAX_PROBLEMS]
        report.add("", "more_problems", f"and {omitted_count} more")
    report.raise_any()
