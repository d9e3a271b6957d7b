"""Is everything ready for a wave? What is registered for each VM, what contradicts it, where it goes."""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

from claims.core import address_requests, migration_settings
from claims.core.ipamclaims import dialects
from claims.core.ipamclaims.dialects import ClaimOutcome
from claims.core.migration_settings import Setting
from claims.models import NAD, Network, Wave
from claims.networks import networks
from pools.core import spreadsheet_cells
from pools.platform import database
from pools.register import usage
from pools.sql import statements

READY, WARNING, NOT_READY = "ready", "warning", "not-ready"
_HARD = {
    "not_registered", "duplicate_mac", "duplicate_ip", "network_unfit", "no_nad", "claim_refused",
    "no_address", "too_many_addresses", "family_missing", "outside_subnet", "unusable_address",
}  # fmt: skip
Reason = tuple[str, str]  # code, message


@dataclass(frozen=True)
class WaveInterface:
    """What the register has for a VM on one network; `standing` as import_standing says it."""

    network_id: int
    network: str
    source: str  # ippool, ipamclaim
    mac: str | None
    ips: tuple[str, ...]
    standing: str


@dataclass
class WaveMachine:
    """A VM of the wave; not ready for the reasons that are hard, ready with warnings for others."""

    id: int
    namespace: str
    vm: str
    source_vm: str
    interfaces: list[WaveInterface] = field(default_factory=list)
    reasons: list[Reason] = field(default_factory=list)

    @property
    def verdict(self) -> str:
        if any(code in _HARD for code, _ in self.reasons):
            return NOT_READY
        return WARNING if self.reasons else READY


@dataclass(frozen=True)
class Fit:
    """A network that VMs of the wave go to; `free` addresses by family."""

    network: Network
    reasons: tuple[Reason, ...]
    notes: tuple[Reason, ...]
    free: dict[int, int]
    vms: int


@dataclass(frozen=True)
class WaveReadiness:
    """The report of a wave."""

    wave: Wave
    machines: list[WaveMachine]
    networks: list[Fit]
    settings: list[Setting]

    @property
    def counts(self) -> dict[str, int]:
        verdicts = [machine.verdict for machine in self.machines]
        return {name: verdicts.count(name) for name in (READY, WARNING, NOT_READY)}

    @property
    def ready(self) -> bool:
        return bool(self.machines) and not self.counts[NOT_READY]


def for_wave(wave: Wave) -> WaveReadiness:
    """Few statements, whatever the number of VMs."""
    machines = _machines(wave)
    fits = _fits(machines)
    _check_networks(machines, fits)
    namespaces = sorted({machine.namespace for machine in machines.values() if machine.namespace})
    targets = [
        migration_settings.TargetNetwork(fit.network.name, fit.network.role, fit.network.subnets)
        for fit in fits.values()
    ]
    settings = list(migration_settings.required_settings(targets, namespaces))
    return WaveReadiness(wave, list(machines.values()), list(fits.values()), settings)


def _machines(wave: Wave) -> dict[int, WaveMachine]:
    machines: dict[int, WaveMachine] = {}
    for row in database.fetch(_ROWS, {"wave": wave.pk, "cluster": wave.cluster_id}):
        machine = machines.get(row["id"])
        if machine is None:
            machine = WaveMachine(row["id"], row["namespace"], row["vm"], row["source_vm"])
            machines[machine.id] = machine
            _check_name(machine, row)
        if row["network_id"] is not None:
            _add(machine, row)
    return machines


def _check_name(machine: WaveMachine, row: Any) -> None:
    if row["network_id"] is None:
        machine.reasons.append(("not_registered", "Neither an entry nor a claim is registered."))
    if not machine.namespace:
        machine.reasons.append(("no_namespace", "Nobody has said in which namespace it will be."))


def _add(machine: WaveMachine, row: Any) -> None:
    machine.interfaces.append(
        WaveInterface(
            row["network_id"],
            row["network"],
            row["source"],
            row["mac"],
            tuple(row["ips"]),
            row["standing"],
        )
    )
    for code, value in (("duplicate_mac", row["bad_mac"]), ("duplicate_ip", row["bad_ip"])):
        if value:
            what = "MAC address" if code == "duplicate_mac" else "address"
            machine.reasons.append((code, f"The {what} {value} is used twice on {row['network']}."))
    if not row["ips"] and row["source"] == "ippool":
        machine.reasons.append(("no_address", "Its entry has no address."))
    if row["standing"] == "differing":
        message = f"It runs on {row['network']} with something else than is registered."
        machine.reasons.append(("differing", message))
    condition = dialects.allocation_condition(json.loads(row["conditions"] or "[]"))
    if condition and not row["granted"]:
        outcome = dialects.outcome_of(condition)
        if outcome is not None and outcome != ClaimOutcome.ALLOCATED:
            machine.reasons.append(("claim_refused", condition.get("message") or str(outcome)))


def _fits(machines: dict[int, WaveMachine]) -> dict[int, Fit]:
    counted: dict[int, set[int]] = {}
    for machine in machines.values():
        for interface in machine.interfaces:
            counted.setdefault(interface.network_id, set()).add(machine.id)
    rows = Network.objects.filter(pk__in=counted).select_related("cluster", "pool")
    wave_networks = list(rows.prefetch_related("nads").order_by("name"))
    room = usage.of_pools([network.pool for network in wave_networks if network.pool])
    fits = {}
    for network in wave_networks:
        verdict = networks.static_vm_check(network)
        free = room.get(network.pool_id or 0, {})
        fits[network.pk] = Fit(
            network,
            tuple((reason.code, reason.message) for reason in verdict.reasons),
            tuple((note.code, note.message) for note in verdict.notes),
            {family: family_usage.free for family, family_usage in free.items()},
            len(counted[network.pk]),
        )
    return fits


def _check_networks(machines: dict[int, WaveMachine], fits: dict[int, Fit]) -> None:
    nads = NAD.objects.filter(network__in=fits).values_list("network_id", "namespace")
    used = set(nads)
    for machine in machines.values():
        for network_id in dict.fromkeys(interface.network_id for interface in machine.interfaces):
            fit = fits[network_id]
            if fit.reasons:
                message = f"{fit.network.name} cannot hold static VMs: {fit.reasons[0][1]}"
                machine.reasons.append(("network_unfit", message))
            for interface in machine.interfaces:
                if interface.network_id == network_id and (
                    problem := _unfit(interface, fit.network)
                ):
                    machine.reasons.append(problem)
            if machine.namespace and (network_id, machine.namespace) not in used:
                message = f"{machine.namespace} has no network attachment definition of {fit.network.name}."
                machine.reasons.append(("no_nad", message))


def _unfit(interface: WaveInterface, network: Network) -> Reason | None:
    """Why OVN-Kubernetes would refuse the addresses."""
    source = "Its entry" if interface.source == "ippool" else "Its IPAMClaim"
    try:
        address_requests.fit(interface.ips, network, source)
    except address_requests.DeclinedError as declined:
        return declined.code, f"{declined.message}."
    return None


# One row for each entry and claim of each VM, or one without any.
_ROWS = statements.read("claims/wave_vms")

_HEADER = (
    "namespace", "vm", "source_vm", "verdict", "network", "source", "mac", "ips", "standing",
    "reasons",
)  # fmt: skip


def as_csv(report: WaveReadiness) -> str:
    """One line for each interface, or one for a VM without any; safe for spreadsheets."""
    stream = io.StringIO(newline="")
    writer = csv.writer(stream)
    writer.writerow(_HEADER)
    for machine in report.machines:
        writer.writerows(
            [spreadsheet_cells.escaped(text) for text in line] for line in _lines(machine)
        )
    return stream.getvalue()


def _lines(machine: WaveMachine) -> Iterator[Sequence[str]]:
    who = (machine.namespace, machine.vm, machine.source_vm, machine.verdict)
    why = "; ".join(message for _, message in machine.reasons)
    if not machine.interfaces:
        yield (*who, "", "", "", "", "", why)
    for interface in machine.interfaces:
        yield (
            *who,
            interface.network,
            interface.source,
            interface.mac or "",
            ", ".join(interface.ips),
            interface.standing,
            why,
        )
