"""Validation of a new network: all rules of the CRD (CEL) and of OVN-Kubernetes at once, those of its lists first.

An API server reports only the first violated rule, and before Kubernetes 1.25 none. Most fields of a
network are immutable, so an error is expensive.
"""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

from claims.core.networks import kept_addresses, udn
from claims.core.networks.udn import UDN
from pools.core import addresses, errors, holders, object_reader
from pools.core.kubernetes import label_selector

MAX_RESERVED, MAX_INFRASTRUCTURE, MAX_LAYER3 = 25, 4, 400


@dataclass(frozen=True)
class Lists:
    """Networks and addresses of a request body, each with its path, and the rules between them."""

    body: object_reader.Fields
    subnets: list[tuple[str, addresses.Network]]
    gateways: list[tuple[str, addresses.Address]]
    reserved: list[tuple[str, addresses.Network]]
    infrastructure: list[tuple[str, addresses.Network]]
    join: list[tuple[str, addresses.Network]]

    def check(self, network: UDN) -> None:
        self._check_subnets(network)
        self._check_gateways()
        for name, listed, most in (
            ("reserved_subnets", self.reserved, MAX_RESERVED),
            ("infrastructure_subnets", self.infrastructure, MAX_INFRASTRUCTURE),
        ):
            _check_number(self.body, name, most)
            for path, cidr in listed:
                self._check_inside(path, cidr)
        _check_apart(self.body.report, [*self.reserved, *self.infrastructure])
        _check_number(self.body, "join_subnets", 2)
        _check_families(self.body.report, self.join)
        _check_apart(self.body.report, [*self.subnets, *self.join])

    def _check_subnets(self, network: UDN) -> None:
        if network.topology == udn.LAYER3:
            _check_number(self.body, "subnets", MAX_LAYER3)
            return
        _check_number(self.body, "subnets", 2)
        _check_families(self.body.report, self.subnets)
        for path, subnet in self.subnets:
            if network.role == udn.PRIMARY and subnet.num_addresses < 4:
                message = f"{subnet} has no room for a gateway and a VM"
                self.body.report.add(path, "subnet_too_small", message, str(subnet))

    def _check_gateways(self) -> None:
        report = self.body.report
        _check_number(self.body, "default_gateways", 2)
        _check_families(report, self.gateways, code="gateway_conflict")
        for path, gateway in self.gateways:
            for code, message in self._gateway_problems(gateway):
                report.add(path, code, message, str(gateway))
        missing = {subnet.version for _, subnet in self.subnets} - {
            gateway.version for _, gateway in self.gateways
        }
        if self.gateways and missing:
            message = (
                f"one gateway for each family is required; that of IPv{min(missing)} is missing"
            )
            report.add("default_gateways", "gateway_conflict", message)

    def _gateway_problems(self, gateway: addresses.Address) -> Iterator[tuple[str, str]]:
        """Yield (code, message) of the first rule that the gateway violates."""
        holding = [subnet for _, subnet in self.subnets if gateway in subnet]
        if not self.subnets:
            return  # the missing subnets are reported elsewhere
        if all(subnet.version != gateway.version for _, subnet in self.subnets):
            yield (
                "mixed_family",
                f"{gateway} is an IPv{gateway.version} address, and no subnet is IPv{gateway.version}",
            )
        elif not holding:
            message = f"{gateway} is in none of the subnets"
            yield "gateway_conflict", message
        elif _is_edge(gateway, holding[0]):
            message = (
                f"{gateway} is the first or last address of {holding[0]}, which no host can have"
            )
            yield "gateway_conflict", message
        elif self.infrastructure and not any(
            gateway in infrastructure_subnet for _, infrastructure_subnet in self.infrastructure
        ):
            yield "gateway_conflict", f"{gateway} must be in one of the infrastructure subnets"

    def _check_inside(self, path: str, cidr: addresses.Network) -> None:
        same = [subnet for _, subnet in self.subnets if subnet.version == cidr.version]
        report = self.body.report
        if self.subnets and not same:
            message = f"{cidr} is an IPv{cidr.version} network, and no subnet is IPv{cidr.version}"
            report.add(path, "mixed_family", message, str(cidr))
        elif not any(kept_addresses.holds(subnet, cidr) for subnet in same):
            message = f"{cidr} is in none of the subnets"
            report.add(path, "range_outside_cidr", message, str(cidr))


def _is_edge(address: addresses.Address, network: addresses.Network) -> bool:
    edges = {network.network_address}
    if network.version == 4:
        edges.add(network.broadcast_address)
    return network.num_addresses > 2 and address in edges


def _check_number(body: object_reader.Fields, name: str, most: int) -> None:
    listed = body.data.get(name)
    if isinstance(listed, list) and len(listed) > most:
        message = f"{len(listed)} values; at most {most} are allowed"
        body.report.add(body.path(name), "too_many", message)


def _check_families(
    report: object_reader.ProblemReport,
    listed: list[tuple[str, Any]],
    *,
    code: str = "one_per_family",
) -> None:
    first_by_family: dict[int, Any] = {}
    for path, member in listed:
        if member.version in first_by_family:
            message = f"only one of each family is allowed: {first_by_family[member.version]} is IPv{member.version} too"
            report.add(path, code, message, str(member))
        first_by_family.setdefault(member.version, member)


def _check_apart(
    report: object_reader.ProblemReport, listed: list[tuple[str, addresses.Network]]
) -> None:
    """Report overlaps; in order of addresses, a network comes before those that it contains."""
    outer: addresses.Network | None = None
    for path, cidr in sorted(listed, key=lambda e: (e[1].version, int(e[1][0]), e[1].prefixlen)):
        if outer is not None and outer.version == cidr.version and cidr[0] in outer:
            report.add(path, "cidr_overlap", f"{cidr} overlaps {outer}", str(cidr))
        else:
            outer = cidr


# Fields of a new network in a request body or a form.
FIELDS = (
    "name", "kind", "namespace", "topology", "role", "lifecycle", "ipam_mode", "mtu", "subnets",
    "default_gateways", "reserved_subnets", "infrastructure_subnets", "join_subnets",
    "namespace_selector", "namespaces",
)  # fmt: skip
MAX_LENGTH = 253  # characters of a logical name
_MTU = {4: 576, 6: 1280}
_LARGEST_MTU = 65536
_NAME_LABEL = "kubernetes.io/metadata.name"

# Immutable fields of a network, each with its description.
IMMUTABLE = (
    ("topology", "The topology."),
    ("role", "The role, primary or secondary."),
    ("subnets", "The subnets: none can be added, enlarged or removed."),
    ("default_gateways", "The default gateways, configured or derived."),
    ("reserved_subnets", "The reserved subnets: to correct them, create a new network."),
    ("infrastructure_subnets", "The infrastructure subnets."),
    ("lifecycle", "The IPAM mode and lifecycle."),
    ("mtu", "The MTU."),
    ("join_subnets", "The join subnets."),
    ("name", "The name, from which the logical network name is derived."),
)
MUTABLE = "Only the namespace selector and the description can be changed later."


def parse_network(
    body: object_reader.Fields, *, source: addresses.InputSource = addresses.InputSource.API
) -> UDN:
    """Parse the network in a request body; problems are added to the body's report.

    `name` is the logical name; `namespaces` is short for a selector of these namespaces. Codes: required,
    wrong_type, invalid_choice, k8s_name, logical_name, too_long, out_of_range, too_many,
    one_per_family, mixed_family, cidr_overlap, range_outside_cidr, gateway_conflict, kept_twice, subnet_too_small,
    primary_only, primary_needs_ipam, lifecycle_needs_ipam, subnets_without_ipam, not_of_this_kind,
    conflicting_fields, those of label selectors and of the parsers of addresses and CIDRs.
    """
    kind = _word(body, "kind", udn.CUDN, (udn.CUDN, udn.UDN_KIND))
    topology = _word(body, "topology", udn.LAYER2, (udn.LAYER2, udn.LAYER3))
    role = _word(body, "role", udn.PRIMARY, (udn.PRIMARY, udn.SECONDARY))
    mode = _word(body, "ipam_mode", udn.ENABLED, (udn.ENABLED, udn.DISABLED))
    lifecycle = _word(body, "lifecycle", "", (udn.PERSISTENT, ""))
    namespace = _namespace(body, kind)
    name = body.parse("name", _name) or ""
    cidr = partial(addresses.parse_cidr, source=source)
    host = partial(addresses.parse_address, source=source)
    lists = Lists(
        body,
        subnets=body.parse_items("subnets", cidr),
        gateways=body.parse_items("default_gateways", host),
        reserved=body.parse_items("reserved_subnets", cidr),
        infrastructure=body.parse_items("infrastructure_subnets", cidr),
        join=body.parse_items("join_subnets", cidr),
    )
    network = UDN(
        name=name,
        kind=kind,
        object_name=udn.object_name(kind, name, namespace) or name,
        namespace=namespace,
        topology=topology,
        role=role,
        ipam_mode=mode,
        lifecycle=lifecycle,
        mtu=_mtu(body, lists),
        subnets=tuple(str(subnet) for _, subnet in lists.subnets),
        default_gateways=tuple(str(gateway) for _, gateway in lists.gateways),
        reserved_subnets=tuple(str(subnet) for _, subnet in lists.reserved),
        infrastructure_subnets=tuple(str(subnet) for _, subnet in lists.infrastructure),
        join_subnets=tuple(str(subnet) for _, subnet in lists.join),
        namespace_selector=selector(body, kind),
    )
    _check_ipam(body, network)
    _check_topology(body, network)
    _check_role(body, network)
    lists.check(network)
    if not body.report.problems:
        messages: dict[str, list[str]] = {}
        for contradiction in kept_addresses.contradictions(network):
            messages.setdefault(contradiction.field, []).append(contradiction.message)
        for field, texts in messages.items():
            body.report.add(body.path(field), "kept_twice", " ".join(texts))
    return network


def check_applied(body: object_reader.Fields, network: UDN) -> UDN:
    """Check that a network can be written to a cluster, and return it with its object's name.

    The network must be a ClusterUserDefinedNetwork with namespaces, and its logical name must be
    derived from a valid object name.
    """
    if network.kind != udn.CUDN:
        message = "only ClusterUserDefinedNetworks can be written to a cluster"
        body.report.add("kind", "not_of_this_kind", message, network.kind)
        return network
    expected = udn.object_name(network.kind, network.name)
    with body.report.collect():
        if network.name and not expected:
            message = (
                "OVN-Kubernetes names the network of a ClusterUserDefinedNetwork"
                f" {udn.CLUSTER_PREFIX}<its name>; did you mean"
                f" {udn.CLUSTER_PREFIX}{network.name}?"
            )
            raise errors.InvalidInput.for_field("name", "logical_name", message, network.name)
        if expected:
            holders.parse_name(expected, field="name")
    if not (body.has("namespace_selector") or body.has("namespaces")):
        message = "select the namespaces: an empty selector would select all of them"
        body.report.add("namespaces", "required", message)
    return replace(network, object_name=expected)


def _check_ipam(body: object_reader.Fields, network: UDN) -> None:
    if network.ipam_mode == udn.DISABLED:
        _check_without_ipam(body, network)
    elif not body.data.get("subnets"):
        body.report.add(
            "subnets", "required", "at least one subnet is required, one of each family at most"
        )


def _check_without_ipam(body: object_reader.Fields, network: UDN) -> None:
    if network.role == udn.PRIMARY:
        message = "only a secondary network can be without IPAM"
        body.report.add("ipam_mode", "primary_needs_ipam", message)
    if network.lifecycle:
        body.report.add("lifecycle", "lifecycle_needs_ipam", "a lifecycle needs IPAM")
    for name in ("subnets", *_PRIMARY_LAYER2):
        if body.data.get(name):
            message = "have no effect without IPAM: leave them empty"
            body.report.add(name, "subnets_without_ipam", message)


def _check_topology(body: object_reader.Fields, network: UDN) -> None:
    if network.topology == udn.LAYER2:
        return
    for name in ("lifecycle", "ipam_mode", "default_gateways", *_PRIMARY_LAYER2):
        if body.data.get(name) not in (None, "", [], udn.ENABLED):
            body.report.add(name, "not_of_this_kind", "only a layer2 network has this")


_PRIMARY_LAYER2 = ("reserved_subnets", "infrastructure_subnets")


def _check_role(body: object_reader.Fields, network: UDN) -> None:
    if network.role == udn.PRIMARY:
        return
    for name in ("default_gateways", "join_subnets", *_PRIMARY_LAYER2):
        if body.data.get(name):
            body.report.add(name, "primary_only", "only a primary network has these")


def _word(body: object_reader.Fields, key: str, default: str, allowed: tuple[str, ...]) -> str:
    """Parse one of the allowed words in any case: manifests have Layer2, NAD configs have layer2."""

    def parse(value: object, path: str) -> str:
        if not isinstance(value, str):
            raise errors.InvalidInput.for_field(path, "wrong_type", "must be a string", value)
        for word in allowed:
            if value.lower() == word.lower():
                return word
        choices = ", ".join(word or '""' for word in allowed)
        raise errors.InvalidInput.for_field(
            path, "invalid_choice", f"must be one of {choices}", value
        )

    if not body.has(key):
        return default
    chosen_word = body.parse(key, parse)
    return default if chosen_word is None else chosen_word


def _name(value: object, path: str) -> str:
    """Parse a logical name, which must be valid as a network name in a CNI config."""
    name = holders.parse_identifier(value, field=path, max_length=MAX_LENGTH)
    if any(char.isspace() or char in "/," for char in name):
        message = "must not contain blanks, slashes or commas"
        raise errors.InvalidInput.for_field(path, "logical_name", message, value)
    return name


def _namespace(body: object_reader.Fields, kind: str) -> str:
    if kind == udn.CUDN:
        if body.data.get("namespace"):
            message = "a ClusterUserDefinedNetwork has no namespace; use namespaces"
            body.report.add("namespace", "not_of_this_kind", message, body.data["namespace"])
        return ""
    return body.parse("namespace", holders.parse_label) or ""


def _mtu(body: object_reader.Fields, lists: Lists) -> int | None:
    if not body.has("mtu"):
        return None
    least = max((_MTU[subnet.version] for _, subnet in lists.subnets), default=_MTU[4])

    def parse(value: object, path: str) -> int:
        if not isinstance(value, int) or isinstance(value, bool):
            raise errors.InvalidInput.for_field(path, "wrong_type", "must be a whole number", value)
        if not least <= value <= _LARGEST_MTU:
            why = " (IPv6 needs 1280)" if least == _MTU[6] else ""
            message = f"must be {least} to {_LARGEST_MTU}{why}"
            raise errors.InvalidInput.for_field(path, "out_of_range", message, value)
        return value

    return body.parse("mtu", parse)


def selector(body: object_reader.Fields, kind: str) -> object_reader.Json | None:
    """Return `namespace_selector`, or a selector for `namespaces`; None without both."""
    names = [name for name in ("namespace_selector", "namespaces") if body.has(name)]
    if kind != udn.CUDN:
        for name in names:
            message = "a UserDefinedNetwork applies to its own namespace"
            body.report.add(name, "not_of_this_kind", message)
        return None
    if len(names) > 1:
        message = "use either namespaces or a selector"
        body.report.add("namespaces", "conflicting_fields", message)
    if body.has("namespace_selector"):
        body.parse("namespace_selector", label_selector.parse)
        return body.mapping("namespace_selector")
    if body.has("namespaces"):
        return render_selector(sorted(set(body.parse_each("namespaces", holders.parse_label))))
    return None


def render_selector(namespaces: list[str]) -> object_reader.Json:
    """Return a selector of these namespaces."""
    if len(namespaces) == 1:
        return {"matchLabels": {_NAME_LABEL: namespaces[0]}}
    expression = {"key": _NAME_LABEL, "operator": "In", "values": namespaces}
    return {"matchExpressions": [expression]}


def selected_namespaces(selector: object) -> Iterator[str]:
    """Yield the namespaces that a selector selects by name."""
    parts: object_reader.Json = selector if isinstance(selector, dict) else {}
    labels = parts.get("matchLabels")
    if isinstance(labels, dict) and isinstance(labels.get(_NAME_LABEL), str):
        yield labels[_NAME_LABEL]
    for expression in parts.get("matchExpressions") or ():
        if isinstance(expression, dict) and (expression.get("key"), expression.get("operator")) == (
            _NAME_LABEL,
            "In",
        ):
            yield from (value for value in expression.get("values") or () if isinstance(value, str))
