"""Logical networks of OVN-Kubernetes as (Cluster)UserDefinedNetworks say them (k8s.ovn.org/v1)."""

from __future__ import annotations

import ipaddress
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Protocol

from claims.core import macs
from pools.core import addresses, errors, object_reader

CUDN, UDN_KIND, NAD_KIND = "cudn", "udn", "nad"
LAYER2, LAYER3, LOCALNET = "layer2", "layer3", "localnet"
PRIMARY, SECONDARY = "primary", "secondary"
ENABLED, DISABLED = "Enabled", "Disabled"
PERSISTENT = "Persistent"
CLUSTER_PREFIX = "cluster_udn_"
# A namespace says with this label, when it is made, that its pods' primary network is a UDN.
PRIMARY_LABEL = "k8s.ovn.org/primary-user-defined-network"
_KINDS = {"ClusterUserDefinedNetwork": CUDN, "UserDefinedNetwork": UDN_KIND}


@dataclass(frozen=True)
class UDN:
    """One logical network. Addresses are texts in canonical form, words those of a NAD's config.

    `name` is the logical name, `object_name` that of the object (with `namespace`) that makes the
    network. Of layer3 subnets only the CIDR is kept, not the size of a node's part. `conditions` are
    those of the object's status, as they stand there.
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
    """What has subnets and gateways: a UDN, a row of the register."""

    topology: str
    role: str

    @property
    def subnets(self) -> Sequence[str]: ...
    @property
    def default_gateways(self) -> Sequence[str]: ...


def logical_name(kind: str, object_name: str, namespace: str = "") -> str:
    """What the NADs of such an object call their network (ovn-kubernetes, go-controller/pkg/util)."""
    return f"{CLUSTER_PREFIX}{object_name}" if kind == CUDN else f"{namespace}_{object_name}"


def object_name(kind: str, name: str, namespace: str = "") -> str:
    """The name of the object that makes a network of this name; "" when no object of the kind does."""
    prefix = logical_name(kind, "", namespace)
    return name.removeprefix(prefix) if name.startswith(prefix) else ""


def gateways(network: NetworkLike) -> list[str]:
    """The default gateway of each subnet: the one that was configured, else its first address.

    None of a network that OVN-Kubernetes does not route for its VMs: secondary and localnet ones,
    and layer3 ones, where each node's part has its own.
    """
    if network.topology not in {LAYER2, ""} or network.role == SECONDARY:
        return []
    configured = [ipaddress.ip_address(text) for text in network.default_gateways]
    default_gateways = []
    for subnet in map(ipaddress.ip_network, network.subnets):
        family_gateways = [gateway for gateway in configured if gateway.version == subnet.version]
        if family_gateways:
            default_gateways.append(str(family_gateways[0]))
        elif subnet.num_addresses > 1:
            default_gateways.append(str(subnet.network_address + 1))
    return default_gateways


def gateway_macs(network: NetworkLike) -> dict[str, str]:
    """The MAC addresses of the network's gateway, each with its address; of two families the IPv4 one."""
    gateway_addresses = [ipaddress.ip_address(text) for text in gateways(network)]
    first = min((gateway.version for gateway in gateway_addresses), default=0)
    return {
        macs.of_address(gateway): str(gateway)
        for gateway in gateway_addresses
        if gateway.version == first
    }


def parse(manifest: object_reader.Json) -> UDN:
    """A ClusterUserDefinedNetwork or UserDefinedNetwork as the cluster shows it.

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
        default_gateways=_parse_each(part, "defaultGatewayIPs", address),
        reserved_subnets=_parse_each(part, "reservedSubnets", network_text),
        infrastructure_subnets=_parse_each(part, "infrastructureSubnets", network_text),
        exclude_subnets=_parse_each(part, "excludeSubnets", network_text),
        join_subnets=_parse_each(part, "joinSubnets", network_text),
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
        return _parse_each(part, "subnets", network_text)
    cidrs = (subnet.parse("cidr", network_text) for subnet in part.objects("subnets"))
    return tuple(cidr for cidr in cidrs if cidr)


def _parse_each(
    part: object_reader.Fields, key: str, parser: Callable[[object, str], str]
) -> tuple[str, ...]:
    values = []
    for path, raw_value in part.items(key):
        with part.report.collecting():
            values.append(parser(raw_value, path))
    return tuple(values)


def text(value: object, path: str) -> str:
    if not isinstance(value, str):
        raise errors.InvalidInput.for_field(path, "wrong_type", "must be a text", value)
    return value


def optional_text(part: object_reader.Fields, key: str) -> str:
    return (part.parse(key, text) or "") if part.has(key) else ""


def _whole(value: object, path: str) -> int:
    if not isinstance(value, int) or isinstance(value, bool):
        raise errors.InvalidInput.for_field(path, "wrong_type", "must be a whole number", value)
    return value


def network_text(value: object, path: str) -> str:
    """A CIDR as a cluster has accepted it: host bits, which OVN-Kubernetes passes over, are too."""
    cidr = text(value, path).strip(addresses.BLANKS)
    try:
        return str(ipaddress.ip_network(cidr if "/" in cidr else "", strict=False))
    except ValueError:
        message = "must be a CIDR such as 10.0.0.0/16"
        raise errors.InvalidInput.for_field(path, "not_a_cidr", message, value) from None


def address(value: object, path: str) -> str:
    """An address in canonical form, without a prefix length."""
    return str(addresses.parse_address(value, field=path, source=addresses.InputSource.TEXT))
