"""Parsers of what a cluster says about itself (Service CIDRs, nodes, kubeadm, the control plane, k3s, OpenShift), of
pools of Calico, and of addresses that it uses outside of it: load balancers and egress.

Kubernetes: `ServiceCIDR` of networking.k8s.io (`spec.cidrs`), `Node` (`spec.podCIDRs`,
`status.addresses`), the arguments `--service-cluster-ip-range` and `--cluster-cidr` of kube-apiserver,
kube-controller-manager and kube-proxy, `clusterCIDR` of KubeProxyConfiguration (of kubeadm and of EKS); kubeadm: `networking` of its
ClusterConfiguration, and `extraArgs` that override it (a map until v1beta3, a list from v1beta4 on:
cmd/kubeadm/app/apis/kubeadm); k3s and RKE2: the arguments of a server in an annotation of its node
(pkg/nodeconfig, pkg/cli/server of k3s); OpenShift: `Network` of config.openshift.io, whose status is in use and
whose spec is intended; Calico: crd.projectcalico.org/v1 and projectcalico.org/v3.

Outside of it: Kubernetes: the addresses of a `Service` outside of its Service CIDR; Cilium:
`CiliumLoadBalancerIPPool` (`spec.blocks`, before 1.15 `spec.cidrs`) and `CiliumEgressGatewayPolicy`; MetalLB:
`IPAddressPool`, before 0.14 `AddressPool`; OVN-Kubernetes: `EgressIP`.
"""

import itertools
import json
from collections.abc import Container, Iterator, Sequence

from pools.core import addresses
from pools.core.object_reader import Fields
from pools.core.observed.uses import Json, ObservedUses, Role, UseReader, texts

NODE_ADDRESSES = ("InternalIP", "ExternalIP")
_FLAGS = {"--service-cluster-ip-range": Role.SERVICES, "--cluster-cidr": Role.PODS}
_SERVER_FLAGS = {"--service-cidr": Role.SERVICES, "--cluster-cidr": Role.PODS}
# Arguments of a server that it hands to a component, where `name=value` overrides its own flag.
_COMPONENT_FLAGS = {
    "--kube-apiserver-arg": ("service-cluster-ip-range", "--service-cidr"),
    "--kube-controller-manager-arg": ("cluster-cidr", "--cluster-cidr"),
    "--kube-controller-arg": ("cluster-cidr", "--cluster-cidr"),
}
_SERVER_ARGUMENTS = ("k3s.io/node-args", "rke2.io/node-args")
# What a server of k3s and RKE2 takes without a flag, by the family of its node's first address.
_SERVER_DEFAULTS = {
    4: {"--service-cidr": "10.43.0.0/16", "--cluster-cidr": "10.42.0.0/16"},
    6: {"--service-cidr": "fd00:43::/112", "--cluster-cidr": "fd00:42::/56"},
}


def parse_service_cidr(manifest: Json) -> ObservedUses:
    reader = UseReader(manifest)
    for path, cidr in texts(reader.fields.section("spec"), "cidrs"):
        reader.add_network(Role.SERVICES, cidr, path)
    return reader.result()


def parse_node(manifest: Json) -> ObservedUses:
    """Return the pod CIDRs, and the internal and external addresses of a node."""
    reader = UseReader(manifest)
    spec = reader.fields.section("spec")
    pod_cidrs = list(texts(spec, "podCIDRs"))
    if not pod_cidrs and spec.has("podCIDR"):
        pod_cidrs = [(spec.path("podCIDR"), spec.data["podCIDR"])]
    for path, cidr in pod_cidrs:
        reader.add_network(Role.PODS, cidr, path)
    for entry in reader.fields.section("status").objects("addresses"):
        kind = entry.data.get("type")
        if kind in NODE_ADDRESSES:
            reader.add_network(Role.NODE, entry.data.get("address"), entry.path("address"), kind)
    return reader.result()


def project_node(manifest: Json) -> Json:
    """Return the part of a node that is parsed; its images are most of it."""
    spec, status = _dict(manifest.get("spec")), _dict(manifest.get("status"))
    return {
        "metadata": manifest.get("metadata"),
        "spec": {key: spec[key] for key in ("podCIDR", "podCIDRs") if key in spec},
        "status": {key: status[key] for key in ("addresses",) if key in status},
    }


def parse_kubeadm(configuration: Json) -> ObservedUses:
    """Return the subnets of kubeadm's ClusterConfiguration; an extra argument of the control plane overrides them."""
    reader = UseReader(configuration)
    networking = reader.fields.section("networking")
    for key, component, flag in (
        ("serviceSubnet", "apiServer", "--service-cluster-ip-range"),
        ("podSubnet", "controllerManager", "--cluster-cidr"),
    ):
        values = [*_extra_arguments(reader.fields.section(component), flag)]
        if networking.has(key):
            values.insert(0, (networking.path(key), networking.data[key], key))
        for path, value, detail in values[-1:]:
            reader.add_networks(_FLAGS[flag], value, path, detail)
    return reader.result()


def _extra_arguments(component: Fields, flag: str) -> Iterator[tuple[str, object, str]]:
    """Yield (path, value, detail) of each such argument; the last one counts."""
    arguments, name = component.data.get("extraArgs"), flag.removeprefix("--")
    detail = f"{flag} in {component.base_path}.extraArgs"
    if isinstance(arguments, dict) and name in arguments:
        yield f"{component.path('extraArgs')}.{name}", arguments[name], detail
    elif isinstance(arguments, list):
        for argument in component.objects("extraArgs"):
            if argument.data.get("name") == name:
                yield argument.path("value"), argument.data.get("value"), detail


def parse_kube_proxy(configuration: Json) -> ObservedUses:
    """Return the pod CIDRs of a KubeProxyConfiguration, which has one for each family, or none."""
    reader = UseReader(configuration)
    if reader.fields.data.get("clusterCIDR"):
        reader.add_networks(
            Role.PODS, reader.fields.data["clusterCIDR"], "clusterCIDR", "clusterCIDR"
        )
    return reader.result()


def has_server_arguments(manifest: Json) -> bool:
    """Return True for the node of a server of k3s or RKE2."""
    return _server_arguments(manifest)[:1] == ["server"]


def parse_server_node(manifest: Json) -> ObservedUses:
    """Return the CIDRs that the arguments of a server of k3s or RKE2 name, else those that it takes without."""
    reader = UseReader(manifest)
    values: dict[str, list[tuple[str, str]]] = {}  # of each flag, with where they are written
    overrides: dict[str, list[tuple[str, str]]] = {}
    for flag, value in _server_flags(manifest):
        if flag in _SERVER_FLAGS:
            values.setdefault(flag, []).append((value, flag))
        else:
            name, server_flag = _COMPONENT_FLAGS[flag]
            overrides[server_flag] = [(value.partition("=")[2], f"{name} in {flag}")]
    for flag, role in _SERVER_FLAGS.items():
        default = _server_default(manifest, flag)
        found = overrides.get(flag) or values.get(flag) or [(default, f"default of {flag}")]
        for value, detail in found:
            reader.add_networks(role, value, "metadata.annotations", detail)
    return reader.result()


def _server_flags(manifest: Json) -> Iterator[tuple[str, str]]:
    """Yield the arguments of a server that name CIDRs, as (flag, value)."""
    flags = {*_SERVER_FLAGS, *_COMPONENT_FLAGS}
    for flag, value in _flags_of(_server_arguments(manifest), flags):
        name = _COMPONENT_FLAGS.get(flag, ("", ""))[0]
        if not name or value.removeprefix("--").startswith(f"{name}="):
            yield flag, value


def _server_default(manifest: Json, flag: str) -> str:
    addresses = _dict(manifest.get("status")).get("addresses")
    internal = [
        str(_dict(entry).get("address"))
        for entry in (addresses if isinstance(addresses, list) else ())
        if _dict(entry).get("type") == "InternalIP"
    ]
    return _SERVER_DEFAULTS[6 if ":" in internal[0] else 4][flag] if internal else ""


def project_server_node(manifest: Json) -> Json:
    """Return a node with no arguments but those that are parsed, and its addresses."""
    metadata = _dict(manifest.get("metadata"))
    arguments = json.dumps(["server", *itertools.chain.from_iterable(_server_flags(manifest))])
    return {
        **project_node(manifest),
        "metadata": {**metadata, "annotations": {_SERVER_ARGUMENTS[0]: arguments}},
        "spec": {},
    }


def _server_arguments(manifest: Json) -> list[object]:
    annotations = _dict(_dict(manifest.get("metadata")).get("annotations"))
    text = next((annotations[name] for name in _SERVER_ARGUMENTS if name in annotations), "")
    try:
        arguments = json.loads(text)
    except (TypeError, ValueError, RecursionError):
        return []
    return arguments if isinstance(arguments, list) else []


def has_flags(manifest: Json) -> bool:
    """Return True for a pod of which an argument names a CIDR of the cluster."""
    return any(True for _ in _flags(manifest))


def parse_control_plane(manifest: Json) -> ObservedUses:
    """Return the CIDRs that the arguments of a pod of the control plane name."""
    reader = UseReader(manifest)
    for path, flag, value in _flags(manifest):
        reader.add_networks(_FLAGS[flag], value, path, flag)
    return reader.result()


def project_control_plane(manifest: Json) -> Json:
    """Return a pod with no arguments but those that are parsed: others may be secret."""
    arguments = [f"{flag}={value}" for _, flag, value in _flags(manifest)]
    return {
        "metadata": manifest.get("metadata"),
        "spec": {"containers": [{"args": arguments}]},
    }


def _flags(manifest: Json) -> Iterator[tuple[str, str, str]]:
    """Yield (path, flag, value); a value follows `=`, or is the next word, also of a shell's command."""
    containers = _dict(manifest.get("spec")).get("containers")
    for number, container in enumerate(containers if isinstance(containers, list) else ()):
        for key in ("command", "args"):
            arguments = _dict(container).get(key)
            words = arguments if isinstance(arguments, list) else ()
            for flag, value in _flags_of(words, _FLAGS):
                yield f"spec.containers.{number}.{key}", flag, value


def _flags_of(arguments: Sequence[object], flags: Container[str]) -> Iterator[tuple[str, str]]:
    words = [word for text in arguments if isinstance(text, str) for word in text.split()]
    for word, following in itertools.pairwise([*words, ""]):
        flag, equals, value = word.partition("=")
        if flag in flags:
            yield flag, (value if equals else following).strip("'\"")


def parse_openshift(manifest: Json) -> ObservedUses:
    """Return the cluster networks and Service networks of OpenShift, and what it assigns as external IPs."""
    reader = UseReader(manifest)
    for section in (reader.fields.section("spec"), reader.fields.section("status")):
        for entry in section.objects("clusterNetwork"):
            reader.add_network(Role.PODS, entry.data.get("cidr"), entry.path("cidr"))
        for path, cidr in texts(section, "serviceNetwork"):
            reader.add_network(Role.SERVICES, cidr, path)
        for path, cidr in texts(section.section("externalIP"), "autoAssignCIDRs"):
            reader.add_network(Role.LOAD_BALANCER, cidr, path, "autoAssignCIDRs")
    return reader.result()


def _dict(value: object) -> Json:
    return value if isinstance(value, dict) else {}


def parse(manifest: Json) -> ObservedUses:
    """Return the CIDR of an IPPool; one that only serves load balancers has that role."""
    reader = UseReader(manifest)
    spec = reader.fields.section("spec")
    role = Role.LOAD_BALANCER if spec.data.get("allowedUses") == ["LoadBalancer"] else Role.POD_POOL
    details = [f"blocks of /{spec.data['blockSize']}"] if spec.has("blockSize") else []
    details += ["disabled"] if spec.data.get("disabled") is True else []
    reader.add_network(role, spec.data.get("cidr"), spec.path("cidr"), ", ".join(details))
    return reader.result()


def parse_reservation(manifest: Json) -> ObservedUses:
    """Return the CIDRs of an IPReservation, out of which Calico hands out nothing."""
    reader = UseReader(manifest)
    for path, cidr in texts(reader.fields.section("spec"), "reservedCIDRs"):
        reader.add_network(Role.POD_POOL, cidr, path, "reserved")
    return reader.result()


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
