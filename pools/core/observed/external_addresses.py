"""Parsers of addresses that a cluster uses outside of it: load balancers and egress.

Kubernetes: the addresses of a `Service` outside of its Service CIDR; Cilium: `CiliumLoadBalancerIPPool` (`spec.blocks`, before 1.15 `spec.cidrs`) and
`CiliumEgressGatewayPolicy`; MetalLB: `IPAddressPool`, before 0.14 `AddressPool`; OVN-Kubernetes: `EgressIP`.
"""

from __future__ import annotations

from pools.core import addresses
from pools.core.object_reader import Fields
from pools.core.observed.uses import Json, ObservedUses, Role, UseReader, texts

_IDENTITY = ("name", "namespace", "uid", "resourceVersion", "creationTimestamp")


def has_addresses(manifest: Json) -> bool:
    """Return True for a Service that has an address of a load balancer, or external IPs."""
    observed = parse_service(manifest)
    return bool(observed.uses or observed.problems)


def parse_service(manifest: Json) -> ObservedUses:
    """Return the addresses that a load balancer has given to a Service, and its external IPs."""
    reader = UseReader(manifest)
    for path, address in texts(reader.fields.section("spec"), "externalIPs"):
        reader.add_network(Role.LOAD_BALANCER, address, path, "externalIPs")
    status = reader.fields.section("status").section("loadBalancer")
    for entry in status.objects("ingress"):
        if entry.data.get("ip"):  # a load balancer may have a host name instead
            reader.add_network(Role.LOAD_BALANCER, entry.data["ip"], entry.path("ip"), "ingress")
    return reader.result()


def project_service(manifest: Json) -> Json:
    """Return the part of a Service that is parsed."""
    metadata, spec, status = (
        value if isinstance(value, dict) else {}
        for value in (manifest.get(name) for name in ("metadata", "spec", "status"))
    )
    return {
        "metadata": {key: metadata[key] for key in _IDENTITY if key in metadata},
        "spec": {key: spec[key] for key in ("externalIPs",) if key in spec},
        "status": {key: status[key] for key in ("loadBalancer",) if key in status},
    }


def parse_cilium_load_balancer_pool(manifest: Json) -> ObservedUses:
    """Return the blocks of a CiliumLoadBalancerIPPool: a CIDR, a first and last address, or one address."""
    reader = UseReader(manifest)
    spec = reader.fields.section("spec")
    detail = "disabled" if spec.data.get("disabled") is True else ""
    for key in ("blocks", "cidrs"):
        for block in spec.objects(key):
            if block.data.get("cidr"):  # Go clients write "" beside `start`
                reader.add_network(
                    Role.LOAD_BALANCER, block.data["cidr"], block.path("cidr"), detail
                )
            else:
                _add_span(reader, block)
    return reader.result()


def _add_span(reader: UseReader, block: Fields) -> None:
    """Add the range of `start` and `stop`; without the latter it is one address."""
    first = block.parse("start", addresses.parse_address)
    last = block.parse("stop", addresses.parse_address) if block.data.get("stop") else first
    if first is not None and last is not None:
        with reader.report.collect(block.base_path):
            reader.add_range(Role.LOAD_BALANCER, addresses.AddressRange(first, last))


def parse_metallb_pool(manifest: Json) -> ObservedUses:
    """Return the addresses of an IPAddressPool or AddressPool: CIDRs, and ranges `first-last`."""
    reader = UseReader(manifest)
    for path, text in texts(reader.fields.section("spec"), "addresses"):
        if isinstance(text, str) and "-" in text:
            with reader.report.collect():
                span = addresses.parse_range(text, field=path, source=addresses.InputSource.TEXT)
                reader.add_range(Role.LOAD_BALANCER, span)
        else:
            reader.add_network(Role.LOAD_BALANCER, text, path)
    return reader.result()


def parse_egress_ip(manifest: Json) -> ObservedUses:
    """Return the addresses of an EgressIP; its status says which node has each."""
    reader = UseReader(manifest)
    for path, text in texts(reader.fields.section("spec"), "egressIPs"):
        reader.add_network(Role.EGRESS, text, path)
    for item in reader.fields.section("status").objects("items"):
        if item.has("egressIP"):
            detail = f"on {item.data['node']}" if isinstance(item.data.get("node"), str) else ""
            reader.add_network(Role.EGRESS, item.data["egressIP"], item.path("egressIP"), detail)
    return reader.result()


def parse_egress_gateway_policy(manifest: Json) -> ObservedUses:
    """Return the egress addresses of a CiliumEgressGatewayPolicy, of one gateway or of several."""
    reader = UseReader(manifest)
    spec = reader.fields.section("spec")
    for gateway in (spec.section("egressGateway"), *spec.objects("egressGateways")):
        if gateway.has("egressIP"):
            reader.add_network(Role.EGRESS, gateway.data["egressIP"], gateway.path("egressIP"))
    return reader.result()
