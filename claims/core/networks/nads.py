"""Parser of NetworkAttachmentDefinitions, through which namespaces use logical networks."""

import json
from collections.abc import Callable
from dataclasses import dataclass

from claims.core.networks import udn
from claims.core.networks.udn import UDN
from pools.core import addresses, errors, object_reader

TYPE = "ovn-k8s-cni-overlay"
_MAX_LENGTH = 1 << 18  # characters of a config; no network needs more


@dataclass(frozen=True)
class Attachment:
    """The contents of a NAD; `network` is None for NADs of other plugins and for the cluster's default network."""

    namespace: str
    name: str
    network: UDN | None = None
    allow_persistent_ips: bool = False
    config: object_reader.Json | None = None


def parse(manifest: object_reader.Json) -> Attachment:
    """Parse a NAD of a cluster; one of another plugin or without a config has no network.

    Raises InvalidInput with all problems: config_syntax (the config is no JSON object), required (no
    network name), wrong_type, not_a_cidr, not_an_address.
    """
    report = object_reader.ProblemReport(strict=False)
    doc = object_reader.Fields(manifest, "", report)
    metadata = doc.section("metadata")
    namespace, name = (metadata.parse(key, udn.text) for key in ("namespace", "name"))
    report.raise_any()
    foreign = Attachment(namespace or "", name or "")
    spec = doc.section("spec")
    if not spec.has("config") or not str(spec.data["config"]).strip():
        return foreign  # the nodes have the config, as a file
    data = _only_plugin(_config(spec.data["config"]))
    # The NAD `ovn-kubernetes/default` stands for the cluster's pod network.
    is_default = data.get("name") in {"ovn-kubernetes", "default"} and not data.get("topology")
    if data.get("type") != TYPE or is_default:
        return foreign
    return Attachment(
        namespace=foreign.namespace,
        name=foreign.name,
        network=network_of(data, namespace=foreign.namespace, name=foreign.name),
        allow_persistent_ips=data.get("allowPersistentIPs") is True,
        config=data,
    )


def _config(value: object) -> object_reader.Json:
    config_text = udn.text(value, "spec.config")
    if len(config_text) > _MAX_LENGTH:
        raise errors.InvalidInput.for_field("spec.config", "config_syntax", "is too long")
    try:
        data = json.loads(config_text)
    except (ValueError, RecursionError) as error:
        message = f"is not valid JSON: {error}"
        raise errors.InvalidInput.for_field(
            "spec.config", "config_syntax", message, config_text
        ) from None
    if not isinstance(data, dict):
        raise errors.InvalidInput.for_field(
            "spec.config", "config_syntax", "is not a JSON object", config_text
        )
    return data


def _only_plugin(config: object_reader.Json) -> object_reader.Json:
    """Return the plugin of a list that has one, under the list's name, as OVN-Kubernetes reads it.

    It runs in no chain: of a list of several plugins no network comes (parseNetConfList, go-controller/pkg/config).
    """
    plugins = config.get("plugins")
    if not (isinstance(plugins, list) and len(plugins) == 1 and isinstance(plugins[0], dict)):
        return config
    return plugins[0] | {"name": config.get("name")}


def network_of(config: object_reader.Json, *, namespace: str, name: str) -> UDN:
    """Return the network that a NAD's config describes. Raises InvalidInput as `parse` does."""
    report = object_reader.ProblemReport(strict=False)
    part = object_reader.Fields(config, "spec.config", report)
    topology = udn.optional_text(part, "topology").lower()
    subnets = _listed(part, "subnets")
    if topology == udn.LAYER3:  # `10.0.0.0/16/24` has the size of a node's subnet, too
        subnets = ["/".join(subnet.split("/")[:2]) for subnet in subnets]
    persistent = part.data.get("allowPersistentIPs") is True
    network = UDN(
        name=part.parse("name", udn.text) or "",
        kind=udn.NAD_KIND,
        object_name=name,
        namespace=namespace,
        topology=topology,
        role=udn.optional_text(part, "role").lower() or udn.SECONDARY,
        ipam_mode=udn.ENABLED if subnets else udn.DISABLED,
        lifecycle=udn.PERSISTENT if persistent else "",
        mtu=_mtu(part),
        subnets=_parsed(part, "subnets", udn.network_text, subnets),
        default_gateways=_parsed(part, "defaultGatewayIPs", udn.address),
        reserved_subnets=_parsed(part, "reservedSubnets", udn.network_text),
        infrastructure_subnets=_parsed(part, "infrastructureSubnets", udn.network_text),
        exclude_subnets=_parsed(part, "excludeSubnets", udn.network_text),
        join_subnets=_parsed(part, "joinSubnet", udn.network_text),
    )
    report.raise_any()
    return network


def _mtu(part: object_reader.Fields) -> int | None:
    value = part.data.get("mtu")
    if not isinstance(value, int) or isinstance(value, bool):
        return None
    return value if 0 < value < 1 << 31 else None


def _listed(part: object_reader.Fields, key: str) -> list[str]:
    """Return the members of a comma-separated string, which OVN-Kubernetes uses instead of a list."""
    if not part.has(key):
        return []
    joined_text = part.parse(key, udn.text) or ""
    return [
        member.strip(addresses.BLANKS)
        for member in joined_text.split(",")
        if member.strip(addresses.BLANKS)
    ]


def _parsed(
    part: object_reader.Fields,
    key: str,
    parse: Callable[[object, str], str],
    members: list[str] | None = None,
) -> tuple[str, ...]:
    texts = []
    for member in _listed(part, key) if members is None else members:
        with part.report.collect():
            texts.append(parse(member, part.path(key)))
    return tuple(texts)


# Fields of a NAD's config that repeat those of its (Cluster)UserDefinedNetwork.
_REPEATED = (
    "topology", "role", "subnets", "default_gateways", "reserved_subnets", "infrastructure_subnets",
    "exclude_subnets", "lifecycle",
)  # fmt: skip


def disagreements(nad: UDN, network: udn.NetworkLike) -> list[tuple[str, object, object]]:
    """Return (field, value of the NAD, value of the network) of each field that differs."""
    differences = []
    for name in _REPEATED:
        nad_value, network_value = getattr(nad, name), getattr(network, name)
        if isinstance(nad_value, str):
            differs = nad_value != network_value
        else:
            nad_value, network_value = list(nad_value), list(network_value)
            differs = sorted(nad_value) != sorted(network_value)
        if differs:
            differences.append((name, nad_value, network_value))
    return differences
