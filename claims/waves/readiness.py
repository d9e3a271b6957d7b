"""Readiness of a migration wave: registration, conflicts and networks of each VM, and the settings of MTV (Forklift).

Source of the settings: kubev2v/forklift (pkg/controller/plan, pkg/settings/features.go), for `preserveStaticIPs`,
primary user defined networks, and the settings of the controller.
"""

import csv
import io
import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

from claims.core.ipamclaims import dialects
from claims.core.ipamclaims.dialects import ClaimOutcome
from claims.core.networks import kept_addresses, static_vms, udn
from claims.models import NAD, Network, Wave
from claims.networks import networks
from pools.core import spreadsheet_cells
from pools.platform import database
from pools.register import usage
from pools.sql import statements

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
    primary = [target for target in targets if target.role == udn.PRIMARY]
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


READY, WARNING, NOT_READY = "ready", "warning", "not-ready"
_HARD = {
    "not_registered",
    "duplicate_mac",
    "duplicate_ip",
    "network_unfit",
    "no_nad",
    "several_primary_interfaces",
    "claim_refused",
    "no_address",
    "too_many_addresses",
    "family_missing",
    "outside_subnet",
    "unusable_address",
}
Reason = tuple[str, str]  # code, message


@dataclass(frozen=True)
class WaveInterface:
    """The registration of a VM on one network; `vm_status` is one of claims.imports.manifests."""

    network_id: int
    network: str
    source: str  # ippool, ipamclaim
    mac: str | None
    ips: tuple[str, ...]
    vm_status: str


@dataclass
class WaveMachine:
    """A VM of the wave; reasons in _HARD make it not ready, other reasons are warnings."""

    id: int
    namespace: str
    vm: str
    source_vm: str
    interfaces: list[WaveInterface] = field(default_factory=list)
    reasons: list[Reason] = field(default_factory=list)

    @property
    def status(self) -> str:
        if any(code in _HARD for code, _ in self.reasons):
            return NOT_READY
        return WARNING if self.reasons else READY


@dataclass(frozen=True)
class NetworkReadiness:
    """A target network of the wave; `free` has the free addresses by family, `vms` the number of VMs."""

    network: Network
    reasons: tuple[Reason, ...]
    notes: tuple[Reason, ...]
    free: dict[int, int]
    vms: int

    @property
    def fit(self) -> bool:
        return not self.reasons


@dataclass(frozen=True)
class WaveReadiness:
    """The readiness report of a wave."""

    wave: Wave
    machines: list[WaveMachine]
    networks: list[NetworkReadiness]
    settings: list[Setting]

    @property
    def counts(self) -> dict[str, int]:
        statuses = [machine.status for machine in self.machines]
        return {name: statuses.count(name) for name in (READY, WARNING, NOT_READY)}

    @property
    def ready(self) -> bool:
        return bool(self.machines) and not self.counts[NOT_READY]


def wave_readiness(wave: Wave) -> WaveReadiness:
    """Return the readiness report of a wave, with few statements for any number of VMs."""
    machines = _machines(wave)
    network_readiness = _network_readiness(machines)
    _check_networks(machines, network_readiness)
    namespaces = sorted({machine.namespace for machine in machines.values() if machine.namespace})
    target_networks = [
        TargetNetwork(fit.network.name, fit.network.role, fit.network.subnets)
        for fit in network_readiness.values()
    ]
    settings = list(required_settings(target_networks, namespaces))
    return WaveReadiness(wave, list(machines.values()), list(network_readiness.values()), settings)


def _machines(wave: Wave) -> dict[int, WaveMachine]:
    machines: dict[int, WaveMachine] = {}
    for row in database.fetch(_ROWS, {"wave": wave.pk, "cluster": wave.cluster_id}):
        machine = machines.get(row["id"])
        if machine is None:
            machine = WaveMachine(row["id"], row["namespace"], row["vm"], row["source_vm"])
            machines[machine.id] = machine
            if row["network_id"] is None:
                message = "No entry and no IPAMClaim is registered."
                machine.reasons.append(("not_registered", message))
            if not machine.namespace:
                machine.reasons.append(("no_namespace", "No target namespace is set."))
        if row["network_id"] is not None:
            _add(machine, row)
    return machines


def _add(machine: WaveMachine, row: Any) -> None:
    machine.interfaces.append(
        WaveInterface(
            row["network_id"],
            row["network"],
            row["source"],
            row["mac"],
            tuple(row["ips"]),
            row["status"],
        )
    )
    for code, value in (("duplicate_mac", row["bad_mac"]), ("duplicate_ip", row["bad_ip"])):
        if value:
            kind = "MAC address" if code == "duplicate_mac" else "address"
            reason = (code, f"The {kind} {value} is a duplicate on {row['network']}.")
            if reason not in machine.reasons:
                machine.reasons.append(reason)
    if not row["ips"] and row["source"] == "ippool":
        machine.reasons.append(("no_address", "Its MAC entry has no address."))
    if row["status"] == "differing":
        message = f"It runs on {row['network']} with other values than registered."
        machine.reasons.append(("differing", message))
    condition = dialects.allocation_condition(json.loads(row["conditions"] or "[]"))
    if condition and not row["granted"]:
        outcome = dialects.outcome_of(condition)
        if outcome is not None and outcome != ClaimOutcome.ALLOCATED:
            machine.reasons.append(("claim_refused", condition.get("message") or str(outcome)))


def _network_readiness(machines: dict[int, WaveMachine]) -> dict[int, NetworkReadiness]:
    machines_by_network: dict[int, set[int]] = {}
    for machine in machines.values():
        for interface in machine.interfaces:
            machines_by_network.setdefault(interface.network_id, set()).add(machine.id)
    rows = Network.objects.filter(pk__in=machines_by_network).select_related("cluster", "pool")
    wave_networks = list(rows.prefetch_related("nads").order_by("name"))
    usage_by_pool = usage.usage_by_pool([network.pool for network in wave_networks if network.pool])
    readiness_by_network = {}
    for network in wave_networks:
        check = networks.static_vm_check(network)
        usage_by_family = usage_by_pool.get(network.pool_id or 0, {})
        readiness_by_network[network.pk] = NetworkReadiness(
            network,
            tuple((reason.code, reason.message) for reason in check.reasons),
            tuple((note.code, note.message) for note in check.notes),
            {family: family_usage.free for family, family_usage in usage_by_family.items()},
            len(machines_by_network[network.pk]),
        )
    return readiness_by_network


def _check_networks(
    machines: dict[int, WaveMachine], network_readiness: dict[int, NetworkReadiness]
) -> None:
    nads = NAD.objects.filter(network__in=network_readiness).values_list("network_id", "namespace")
    served = set(nads)
    fatal = {
        network_id: [
            contradiction.message
            for contradiction in kept_addresses.contradictions(fit.network)
            if contradiction.fatal
        ]
        for network_id, fit in network_readiness.items()
    }
    for machine in machines.values():
        _check_primary(machine, network_readiness)
        for network_id in dict.fromkeys(interface.network_id for interface in machine.interfaces):
            fit = network_readiness[network_id]
            if fit.reasons:
                message = (
                    f"The network {fit.network.name} cannot hold static VMs: {fit.reasons[0][1]}"
                )
                machine.reasons.append(("network_unfit", message))
            machine.reasons += [("network_unfit", message) for message in fatal[network_id]]
            for interface in machine.interfaces:
                if interface.network_id == network_id and (
                    problem := _address_problem(interface, fit.network)
                ):
                    machine.reasons.append(problem)
            if machine.namespace and (network_id, machine.namespace) not in served:
                message = f"The namespace {machine.namespace} has no network attachment definition of {fit.network.name}."
                machine.reasons.append(("no_nad", message))


def _check_primary(machine: WaveMachine, network_readiness: dict[int, NetworkReadiness]) -> None:
    """Add a reason if the VM has several interfaces on primary networks, of which a pod has one."""
    primary = [
        interface
        for interface in machine.interfaces
        if network_readiness[interface.network_id].network.role == udn.PRIMARY
    ]
    macs = {interface.mac for interface in primary if interface.mac}
    if len(macs) > 1 or len({interface.network_id for interface in primary}) > 1:
        names = ", ".join(dict.fromkeys(interface.network for interface in primary))
        message = f"It has several interfaces on primary networks ({names}), and a VM has one."
        machine.reasons.append(("several_primary_interfaces", message))


def _address_problem(interface: WaveInterface, network: Network) -> Reason | None:
    """Return the reason why OVN-Kubernetes would refuse the addresses, or None."""
    source = "Its entry" if interface.source == "ippool" else "Its IPAMClaim"
    try:
        static_vms.fit(interface.ips, network, source)
    except static_vms.DeclinedError as declined:
        return declined.code, f"{declined.message}."
    return None


# One row for each entry and claim of each VM; one row for a VM without any.
_ROWS = statements.read("claims/wave_vms")

_HEADER = (
    "namespace",
    "vm",
    "source_vm",
    "status",
    "network",
    "source",
    "mac",
    "ips",
    "vm_status",
    "reasons",
)


def as_csv(report: WaveReadiness) -> str:
    """Return the report as CSV: a line for each interface, or one for a VM without any.

    Cells are escaped for spreadsheets.
    """
    stream = io.StringIO(newline="")
    writer = csv.writer(stream)
    writer.writerow(_HEADER)
    for machine in report.machines:
        writer.writerows(
            [spreadsheet_cells.escape(text) for text in line] for line in _lines(machine)
        )
    return stream.getvalue()


def _lines(machine: WaveMachine) -> Iterator[Sequence[str]]:
    vm_columns = (machine.namespace, machine.vm, machine.source_vm, machine.status)
    reasons = "; ".join(message for _, message in machine.reasons)
    if not machine.interfaces:
        yield (*vm_columns, "", "", "", "", "", reasons)
    for interface in machine.interfaces:
        yield (
            *vm_columns,
            interface.network,
            interface.source,
            interface.mac or "",
            ", ".join(interface.ips),
            interface.vm_status,
            reasons,
        )
