"""What MTV (Forklift) has to be told so that VMs of a wave keep their MAC and their addresses.

Read in kubev2v/forklift (pkg/controller/plan, pkg/settings/features.go): what it does with
`preserveStaticIPs`, with primary user defined networks, and with the settings of its controller.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

PRIMARY = "primary"
NAMESPACE_LABEL = "k8s.ovn.org/primary-user-defined-network"
NAD_LABEL = "k8s.ovn.org/user-defined-network"


@dataclass(frozen=True)
class Setting:
    """One thing to be set: where, what, and why; the register cannot look whether it is."""

    code: str
    where: str  # plan, network map, controller, cluster, namespace
    setting: str
    why: str


@dataclass(frozen=True)
class TargetNetwork:
    """A network that VMs of the wave go to."""

    name: str
    role: str
    subnets: Sequence[str]


def needed(targets: Sequence[TargetNetwork], namespaces: Sequence[str]) -> Iterator[Setting]:
    """The settings that a plan for these networks and namespaces needs, each once."""
    if not targets:
        return
    yield Setting(
        "preserve_static_ips",
        "plan",
        "spec.preserveStaticIPs: true",
        "MTV then writes the addresses of the source into the guest's own configuration.",
    )
    yield Setting(
        "network_map",
        "network map",
        "map each port group to the network attachment definition of "
        + ", ".join(sorted({target.name for target in targets})),
        "a port group that is not mapped ends on the pod network.",
    )
    primary = [target for target in targets if target.role == PRIMARY]
    if not primary:
        return
    yield Setting(
        "udn_supports_mac",
        "cluster",
        "OpenShift 4.20 or later",
        "MTV copies the MAC to a primary user defined network only there (UdnSupportsMac);"
        " entries are found by it.",
    )
    yield Setting(
        "static_udn_ip_addresses",
        "controller",
        'spec.controller_static_udn_ip_addresses: "true" of the ForkliftController',
        "MTV then writes network.kubevirt.io/addresses itself, of IPv4 only; the default depends on"
        " its version, and the register's webhook does it without.",
    )
    if namespaces:
        yield Setting(
            "namespace_label",
            "namespace",
            f"label {NAMESPACE_LABEL} on {', '.join(sorted(namespaces))}",
            "OVN-Kubernetes takes the label only when the namespace is made.",
        )
    yield Setting(
        "nad_label",
        "namespace",
        f"label {NAD_LABEL} on the network attachment definition",
        "MTV recognises by it that the target is a primary network.",
    )
    if any(len(target.subnets) > 1 for target in primary):
        yield Setting(
            "dual_stack_validation",
            "plan",
            "expect the warning UdnStaticIPs",
            "MTV's check reads the subnets of both families as one CIDR, and fails.",
        )
