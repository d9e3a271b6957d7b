"""Parser and writer of (Cluster)UserDefinedNetworks (k8s.ovn.org/v1), which define logical networks.

RouteAdvertisements select them: OVN-Kubernetes announces their routes by BGP.
"""

import contextlib
import ipaddress
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

from claims.core import resources
from pools.core import addresses, errors, object_reader
from pools.core.kubernetes import label_selector

CUDN, UDN_KIND, NAD_KIND = "cudn", "udn", "nad"
LAYER2, LAYER3, LOCALNET = "layer2", "layer3", "localnet"
PRIMARY, SECONDARY = "primary", "secondary"
ENABLED, DISABLED = "Enabled", "Disabled"
PERSISTENT = "Persistent"
CLUSTER_PREFIX = "cluster_udn_"
# This label of a namespace, set when it is created, makes a UDN the primary network of its pods.
PRIMARY_LABEL = "k8s.ovn.org/primary-user-defined-network"
_KINDS = {"ClusterUserDefinedNetwork": CUDN, "UserDefinedNetwork": UDN_KIND}


@dataclass(frozen=True)
class UDN:
    """A logical network. Addresses are strings in canonical form; other values are as in a NAD's config.

    `name` is the logical name; `object_name` (and `namespace`) identify the object that defines the
    network. A layer3 subnet is stored without the size of a node's subnet. `conditions` are those of
    the object's status, unchanged.
    """

    name: str
    kind: str
    object_name: str
    namespace: str = ""
    topology: str = ""
    role: str = ""
    ipam_mode: str = ""
    lifecycle: str = ""
    mtu: int | None = None
    subnets: tuple[str, ...] = ()
    default_gateways: tuple[str, ...] = ()
    reserved_subnets: tuple[str, ...] = ()
    infrastructure_subnets: tuple[str, ...] = ()
    exclude_subnets: tuple[str, ...] = ()
    join_subnets: tuple[str, ...] = ()
    namespace_selector: object_reader.Json | None = None
    conditions: tuple[object_reader.Json, ...] = field(default=(), compare=False)


class NetworkLike(Protocol):
    """A network with subnets and what is kept of them: a UDN, or a row of the register."""

    @property
    def topology(self) -> str: ...
    @property
    def role(self) -> str: ...
    @property
    def subnets(self) -> Sequence[str]: ...
    @property
    def default_gateways(self) -> Sequence[str]: ...
    @property
    def reserved_subnets(self) -> Sequence[str]: ...
    @property
    def infrastructure_subnets(self) -> Sequence[str]: ...
    @property
    def exclude_subnets(self) -> Sequence[str]: ...
    @property
    def join_subnets(self) -> Sequence[str]: ...


def logical_name(kind: str, object_name: str, namespace: str = "") -> str:
    """Return the network name in the NADs of an object (ovn-kubernetes, go-controller/pkg/util)."""
    return f"{CLUSTER_PREFIX}{object_name}" if kind == CUDN else f"{namespace}_{object_name}"


def object_name(kind: str, name: str, namespace: str = "") -> str:
    """Return the name of the object that defines a network of this name, or "" if there can be none."""
    prefix = logical_name(kind, "", namespace)
    return name.removeprefix(prefix) if name.startswith(prefix) else ""


def gateways(network: NetworkLike) -> list[str]:
    """Return the default gateway of each subnet.

    It is the configured one, else the first free address of the infrastructure subnets, else the first
    address of the subnet. Networks that OVN-Kubernetes does not route have none: secondary and localnet
    networks. Layer3 networks have none either, because each node's subnet has its own gateway.
    """
    return [str(gateway) for gateway, _ in _router_addresses(network) if gateway is not None]


def management_addresses(network: NetworkLike) -> list[str]:
    """Return the address of the management port, which every node has, in each subnet with a gateway.

    It is the next free address of the infrastructure subnets, else the second address of the subnet,
    or its first one where the gateway has the second.
    """
    return [str(address) for _, address in _router_addresses(network) if address is not None]


def _router_addresses(
    network: NetworkLike,
) -> Iterator[tuple[addresses.Address | None, addresses.Address | None]]:
    """Yield gateway and management address of each subnet; None for one that a tiny subnet lacks."""
    if network.topology not in {LAYER2, ""} or network.role == SECONDARY:
        return
    configured = _readable_addresses(network.default_gateways)
    infrastructure = readable_networks(network.infrastructure_subnets)
    for subnet in readable_networks(network.subnets):
        gateway = next((host for host in configured if host.version == subnet.version), None)
        taken: set[addresses.Address | None] = {subnet.network_address, gateway}
        if subnet.version == 4:
            taken.add(subnet.broadcast_address)
        free = (
            address
            for part in infrastructure
            if part.version == subnet.version
            for address in part
            if address not in taken
        )
        first, second = (
            subnet[number] if number < subnet.num_addresses else None for number in (1, 2)
        )
        gateway = gateway or next(free, None) or first
        yield gateway, next(free, None) or (first if gateway == second else second)


def _readable_addresses(texts: Iterable[str]) -> list[addresses.Address]:
    hosts = []
    for host in texts:
        with contextlib.suppress(ValueError):
            hosts.append(ipaddress.ip_address(host))
    return hosts


def readable_networks(texts: Iterable[str]) -> list[addresses.Network]:
    """Return the valid CIDRs; others, such as a layer3 subnet with the size of a node's, are left out."""
    networks = []
    for cidr in texts:
        with contextlib.suppress(ValueError):
            networks.append(ipaddress.ip_network(cidr))
    return networks


def parse(manifest: object_reader.Json) -> UDN:
    """Parse a ClusterUserDefinedNetwork or UserDefinedNetwork of a cluster.

    Raises InvalidInput with all problems: unsupported_kind, required, wrong_type,
    invalid_choice, not_a_cidr, not_an_address.
    """
    report = object_reader.ProblemReport(strict=False)
    doc = object_reader.Fields(manifest, "", report)
    kind = _KINDS.get(str(manifest.get("kind")), "")
    if not kind:
        message = f"one of {', '.join(_KINDS)} is expected"
        raise errors.InvalidInput.for_field(
            "kind", "unsupported_kind", message, manifest.get("kind")
        )
    metadata, spec = doc.section("metadata"), doc.section("spec")
    name = metadata.parse("name", text) or ""
    namespace = (metadata.parse("namespace", text) or "") if kind == UDN_KIND else ""
    network = spec.section("network") if kind == CUDN else spec
    topology = network.parse("topology", _topology) or ""
    report.raise_any()
    part = network.section(topology)
    ipam = part.section("ipam")
    network_spec = UDN(
        name=logical_name(kind, name, namespace),
        kind=kind,
        object_name=name,
        namespace=namespace,
        topology=topology,
        role=(part.parse("role", text) or "").lower(),
        ipam_mode=optional_text(ipam, "mode") or ENABLED,
        lifecycle=optional_text(ipam, "lifecycle"),
        mtu=part.parse("mtu", _whole) if part.has("mtu") else None,
        subnets=_subnets(part, topology),
        default_gateways=part.parse_each("defaultGatewayIPs", address),
        reserved_subnets=part.parse_each("reservedSubnets", network_text),
        infrastructure_subnets=part.parse_each("infrastructureSubnets", network_text),
        exclude_subnets=part.parse_each("excludeSubnets", network_text),
        join_subnets=part.parse_each("joinSubnets", network_text),
        namespace_selector=spec.mapping("namespaceSelector") if kind == CUDN else None,
        conditions=tuple(
            condition.data for condition in doc.section("status").objects("conditions")
        ),
    )
    report.raise_any()
    return network_spec


def _topology(value: object, path: str) -> str:
    topology = text(value, path).lower()
    if topology not in {LAYER2, LAYER3, LOCALNET}:
        raise errors.InvalidInput.for_field(
            path, "invalid_choice", "must be Layer2, Layer3 or Localnet", value
        )
    return topology


def _subnets(part: object_reader.Fields, topology: str) -> tuple[str, ...]:
    if topology != LAYER3:
        return part.parse_each("subnets", network_text)
    cidrs = (subnet.parse("cidr", network_text) for subnet in part.objects("subnets"))
    return tuple(cidr for cidr in cidrs if cidr)


def text(value: object, path: str) -> str:
    if not isinstance(value, str):
        raise errors.InvalidInput.for_field(path, "wrong_type", "must be a string", value)
    return value


def optional_text(part: object_reader.Fields, key: str) -> str:
    return (part.parse(key, text) or "") if part.has(key) else ""


def _whole(value: object, path: str) -> int:
    if not isinstance(value, int) or isinstance(value, bool):
        raise errors.InvalidInput.for_field(path, "wrong_type", "must be a whole number", value)
    return value


def network_text(value: object, path: str) -> str:
    """Parse a CIDR that a cluster has accepted; host bits are dropped, as OVN-Kubernetes does."""
    cidr = text(value, path).strip(addresses.BLANKS)
    try:
        return str(ipaddress.ip_network(cidr if "/" in cidr else "", strict=False))
    except ValueError:
        message = "must be a CIDR such as 10.0.0.0/16"
        raise errors.InvalidInput.for_field(path, "not_a_cidr", message, value) from None


def address(value: object, path: str) -> str:
    """Parse an address without a prefix length; return it in canonical form."""
    return str(addresses.parse_address(value, field=path, source=addresses.InputSource.TEXT))


_NAME_LABEL = "kubernetes.io/metadata.name"
_WORDS = {LAYER2: "Layer2", LAYER3: "Layer3", LOCALNET: "Localnet"}


def render(network: UDN) -> object_reader.Json:
    """Return the ClusterUserDefinedNetwork or UserDefinedNetwork, the inverse of `udn.parse`.

    A ClusterUserDefinedNetwork without a namespace selector gets one for the namespace of its own name,
    because an empty selector selects all namespaces.
    """
    is_cluster = network.kind == CUDN
    resource = resources.CLUSTER_UDN if is_cluster else resources.UDN
    metadata: object_reader.Json = {"name": network.object_name}
    if not is_cluster:
        metadata["namespace"] = network.namespace
    part = _part(network)
    topology = {"topology": _WORDS[network.topology], network.topology: part}
    default_selector = {"matchLabels": {_NAME_LABEL: network.object_name}}
    spec: object_reader.Json = topology
    if is_cluster:
        spec = {
            "namespaceSelector": network.namespace_selector or default_selector,
            "network": topology,
        }
    return {
        "apiVersion": resource.api_version,
        "kind": resource.kind,
        "metadata": metadata,
        "spec": spec,
    }


def _part(network: UDN) -> object_reader.Json:
    subnets: list[object] = list(network.subnets)
    if network.topology == LAYER3:
        subnets = [{"cidr": cidr} for cidr in network.subnets]
    fields: object_reader.Json = {"role": network.role.capitalize()}
    for key, value in (
        ("mtu", network.mtu),
        ("subnets", subnets),
        ("defaultGatewayIPs", list(network.default_gateways)),
        ("reservedSubnets", list(network.reserved_subnets)),
        ("infrastructureSubnets", list(network.infrastructure_subnets)),
        ("excludeSubnets", list(network.exclude_subnets)),
        ("joinSubnets", list(network.join_subnets)),
        ("ipam", _ipam(network)),
    ):
        if value:
            fields[key] = value
    return fields


def _ipam(network: UDN) -> object_reader.Json:
    if network.ipam_mode == DISABLED:
        return {"mode": DISABLED}
    return {"lifecycle": network.lifecycle} if network.lifecycle else {}


# They select the cluster's default network and ClusterUserDefinedNetworks by label; UserDefinedNetworks
# and NADs cannot be selected (ovn-kubernetes/docs/features/bgp-integration/route-advertisements.md).
_CUDNS = "ClusterUserDefinedNetworks"
_POD_NETWORK = "PodNetwork"


@dataclass(frozen=True)
class RouteAdvertisements:
    """One object: the labels of the networks that it selects, its advertisements, and its acceptance.

    `accepted` is None until OVN-Kubernetes reports a status.
    """

    name: str
    selectors: tuple[label_selector.Selector, ...]
    pod_network: bool
    accepted: bool | None
    message: str = ""

    def selects(self, labels: Mapping[str, str]) -> bool:
        """Return True if pod routes of a ClusterUserDefinedNetwork with these labels are announced."""
        return self.pod_network and any(selector.matches(labels) for selector in self.selectors)


def parse_route_advertisements(manifest: object_reader.Json) -> RouteAdvertisements:
    """Parse an object of a cluster.

    Raises InvalidInput with all problems: required, wrong_type, and those of label selectors.
    """
    report = object_reader.ProblemReport(strict=False)
    doc = object_reader.Fields(manifest, "", report)
    spec, selectors = doc.section("spec"), []
    for part in spec.objects("networkSelectors"):
        if part.data.get("networkSelectionType") == _CUDNS:
            networks = part.section("clusterUserDefinedNetworkSelector")
            selectors.append(networks.parse("networkSelector", label_selector.parse))
    name = doc.section("metadata").data.get("name")
    accepted, message = _acceptance(doc.section("status"))
    report.raise_any()
    return RouteAdvertisements(
        name=str(name),
        selectors=tuple(selector for selector in selectors if selector is not None),
        pod_network=any(
            advertisement == _POD_NETWORK for _, advertisement in spec.items("advertisements")
        ),
        accepted=accepted,
        message=message,
    )


def _acceptance(status: object_reader.Fields) -> tuple[bool | None, str]:
    for condition in status.objects("conditions"):
        if condition.data.get("type") == "Accepted":
            state: Any = condition.data.get("status")
            accepted = {"True": True, "False": False}.get(str(state))
            return accepted, str(condition.data.get("message") or "")
    return None, ""
