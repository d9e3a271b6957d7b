"""A network as the manifest that makes it."""

from __future__ import annotations

from claims.core import networks, resources
from claims.core.networks import UDN
from pools.core import reading

_NAME_LABEL = "kubernetes.io/metadata.name"
_WORDS = {networks.LAYER2: "Layer2", networks.LAYER3: "Layer3", networks.LOCALNET: "Localnet"}


def render(network: UDN) -> reading.Json:
    """The ClusterUserDefinedNetwork or UserDefinedNetwork; claims.core.networks.parse reads it back.

    Without a namespace selector a ClusterUserDefinedNetwork is for the namespace of its own name: an
    empty one would be for all.
    """
    is_cluster = network.kind == networks.CUDN
    resource = resources.CLUSTER_UDN if is_cluster else resources.UDN
    metadata: reading.Json = {"name": network.object_name}
    if not is_cluster:
        metadata["namespace"] = network.namespace
    part = _part(network)
    topology = {"topology": _WORDS[network.topology], network.topology: part}
    own = {"matchLabels": {_NAME_LABEL: network.object_name}}
    spec: reading.Json = topology
    if is_cluster:
        spec = {"namespaceSelector": network.namespace_selector or own, "network": topology}
    return {
        "apiVersion": resource.api_version,
        "kind": resource.kind,
        "metadata": metadata,
        "spec": spec,
    }


def _part(network: UDN) -> reading.Json:
    subnets: list[object] = list(network.subnets)
    if network.topology == networks.LAYER3:
        subnets = [{"cidr": one} for one in network.subnets]
    found: reading.Json = {"role": network.role.capitalize()}
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
            found[key] = value
    return found


def _ipam(network: UDN) -> reading.Json:
    if network.ipam_mode == networks.DISABLED:
        return {"mode": networks.DISABLED}
    return {"lifecycle": network.lifecycle} if network.lifecycle else {}
