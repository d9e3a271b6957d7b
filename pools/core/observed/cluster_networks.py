"""Parsers of what a cluster says about itself: Service CIDRs, nodes, kubeadm, the control plane, OpenShift.

Kubernetes: `ServiceCIDR` of networking.k8s.io (`spec.cidrs`), `Node` (`spec.podCIDRs`,
`status.addresses`), the arguments `--service-cluster-ip-range` and `--cluster-cidr` of kube-apiserver and
kube-controller-manager; kubeadm: `networking` of its ClusterConfiguration; OpenShift: `Network` of
config.openshift.io, whose status is in use and whose spec is intended.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Sequence

from pools.core.observed.uses import Json, ObservedUses, Role, UseReader, texts

NODE_ADDRESSES = ("InternalIP", "ExternalIP")
_FLAGS = {"--service-cluster-ip-range": Role.SERVICES, "--cluster-cidr": Role.PODS}


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
    """Return the subnets of kubeadm's ClusterConfiguration."""
    reader = UseReader(configuration)
    networking = reader.fields.section("networking")
    for key, role in (("serviceSubnet", Role.SERVICES), ("podSubnet", Role.PODS)):
        if networking.has(key):
            reader.add_networks(role, networking.data[key], networking.path(key), key)
    return reader.result()


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
            for flag, value in _flags_of(arguments if isinstance(arguments, list) else ()):
                yield f"spec.containers.{number}.{key}", flag, value


def _flags_of(arguments: Sequence[object]) -> Iterator[tuple[str, str]]:
    words = [word for text in arguments if isinstance(text, str) for word in text.split()]
    for word, following in itertools.pairwise([*words, ""]):
        flag, equals, value = word.partition("=")
        if flag in _FLAGS:
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
