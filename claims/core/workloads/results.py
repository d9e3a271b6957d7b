"""Why what runs is not what the register says, in words; claims/sql/workload_comparison.sql says whether."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

Reason = tuple[str, str]  # code, message


@dataclass(frozen=True)
class Side:
    """One side of the comparison; `vm` is "" when it names none. Addresses are texts."""

    mac: str | None
    ips: Sequence[str]
    vm: str = ""
    namespace: str = ""
    pod: str = ""  # of a workload that is no VM

    @property
    def who(self) -> str:
        name = self.vm or self.pod
        return f"{self.namespace}/{name}" if self.namespace else name


def differences(registered: Side, running: Side) -> Iterator[Reason]:
    """other_mac, other_vm, address_not_running, address_not_registered. None: it matches.

    What a workload does not tell contradicts nothing: see `untold`.
    """
    if registered.mac and running.mac and registered.mac != running.mac:
        yield "other_mac", f"It runs with {running.mac}; registered is {registered.mac}."
    if registered.vm and not _same_vm(registered, running):
        yield "other_vm", f"It is run by {running.who}; registered is {registered.who}."
    if registered.ips and running.ips:
        registered_hosts, running_hosts = _hosts(registered.ips), _hosts(running.ips)
        if lacking := [host for host in registered_hosts if host not in running_hosts]:
            yield "address_not_running", f"It does not run with {', '.join(lacking)}."
        if more := [host for host in running_hosts if host not in registered_hosts]:
            yield "address_not_registered", f"It runs with {', '.join(more)}."


def untold(running: Side) -> Iterator[Reason]:
    """no_mac_seen, no_address_seen: what could not be compared."""
    if running.mac is None:
        yield "no_mac_seen", "The cluster does not tell its MAC address."
    if not running.ips:
        yield "no_address_seen", "The cluster does not tell its addresses."


def absence(registered: Side, vm_status: str | None) -> Reason:
    """vm_not_named, vm_unknown, vm_stopped, vm_not_attached: why nothing runs with it.

    `vm_status` is the printableStatus of the VirtualMachine, None when there is no such VM.
    """
    if not registered.vm:
        return "vm_not_named", "No VM is named, and none runs with this MAC address or address."
    if vm_status is None:
        return "vm_unknown", f"The cluster has no VM {registered.who}."
    if vm_status == "Running":
        return "vm_not_attached", f"The VM {registered.who} runs and is not on this network."
    status = f" ({vm_status})" if vm_status else ""
    return "vm_stopped", f"The VM {registered.who} does not run{status}."


def _same_vm(registered: Side, running: Side) -> bool:
    return registered.vm == running.vm and registered.namespace in {"", running.namespace}


def _hosts(ips: Iterable[str]) -> list[str]:
    return [text.partition("/")[0] for text in ips]
