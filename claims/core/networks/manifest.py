"""Renders the manifest that defines a network."""

from __future__ import annotations

from claims.core import resources
from claims.core.networks import udn
from claims.core.networks.udn import UDN
from pools.core import object_reader

_NAME_LABEL = "kubernetes.io/metadata.name"
_WORDS = {udn.LAYER2: "Layer2", udn.LAYER3: "Layer3", udn.LOCALNET: "Localnet"}


def render(network: UDN) -> object_reader.Json:
    """Return the ClusterUserDefinedNetwork or UserDefinedNetwork, the inverse of `udn.parse`.

    A ClusterUserDefinedNetwork without a namespace selector gets one for the namespace of its own name,
    because an empty selector selects all namespaces.
    """
    is_cluster = network.kind == udn.CUDN
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
    if network.topology == udn.LAYER3:
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
    if network.ipam_mode == udn.DISABLED:
        return {"mode": udn.DISABLED}
    return {"lifecycle": network.lifecycle} if network.lifecycle else {}
