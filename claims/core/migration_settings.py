"""The MTV (Forklift) settings that VMs of a migration wave need to keep their MAC and their addresses.

Source: kubev2v/forklift (pkg/controller/plan, pkg/settings/features.go), for `preserveStaticIPs`,
primary user defined networks, and the settings of the controller.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

PRIMARY = "primary"
NAMESPACE_LABEL = "k8s.ovn.org/primary-user-defined-network"
NAD_LABEL = "k8s.ovn.org/user-defined-network"


@dataclass(frozen=True)
class Setting:
    """A setting that a user has to make; the register cannot check that it is made."""

    code: str
    where: str  # plan, network map, controller, cluster, namespace
    setting: str
    why: str


@dataclass(frozen=True)
class TargetNetwork:
    """A network to which VMs of the wave are migrated."""

    name: str
    role: str
    subnets: Sequence[str]


def required_settings(
    targets: Sequence[TargetNetwork], namespaces: Sequence[str]
) -> Iterator[Setting]:
    """Yield the settings that a plan for these networks and namespaces needs."""
    if not targets:
        return
    yield Setting(
        "preserve_static_ips",
        "plan",
        "spec.preserveStaticIPs: true",
        "MTV then writes the addresses of the source into the configuration of the guest.",
    )
    yield Setting(
        "network_map",
        "network map",
        "map each port group to the network attachment definition of "
        + ", ".join(sorted({target.name for target in targets})),
        "VMs of a port group without a mapping are attached to the pod network.",
    )
    primary = [target for target in targets if target.role == PRIMARY]
    if not primary:
        return
    yield Setting(
        "udn_supports_mac",
        "cluster",
        "OpenShift 4.20 or later",
        "Only there MTV copies the MAC to a primary user defined network (UdnSupportsMac), and the MAC"
        " identifies the MAC entry of a VM.",
    )
    yield Setting(
        "static_udn_ip_addresses",
        "controller",
        'spec.controller_static_udn_ip_addresses: "true" of the ForkliftController',
        "MTV then writes network.kubevirt.io/addresses itself, for IPv4 only. The default depends on the"
        " version of MTV. Cadastre's webhook does not need it.",
    )
    if namespaces:
        yield Setting(
            "namespace_label",
            "namespace",
            f"label {NAMESPACE_LABEL} on {', '.join(sorted(namespaces))}",
            "OVN-Kubernetes reads the label only when the namespace is created.",
        )
    yield Setting(
        "nad_label",
        "namespace",
        f"label {NAD_LABEL} on the network attachment definition",
        "MTV recognises a primary target network by this label.",
    )
    if any(len(target.subnets) > 1 for target in primary):
        yield Setting(
            "dual_stack_validation",
            "plan",
            "expect the warning UdnStaticIPs",
            "The check of MTV parses the subnets of both families as one CIDR, and fails.",
        )
