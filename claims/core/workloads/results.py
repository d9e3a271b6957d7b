"""Reasons why a workload differs from its entry or claim; claims/sql/workload_comparison.sql finds these."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

Reason = tuple[str, str]  # code, message


@dataclass(frozen=True)
class Side:
    """One side of the comparison; `vm` is "" if the side names none. Addresses are strings."""

    mac: str | None
    ips: Sequence[str]
    vm: str = ""
    namespace: str = ""
    pod: str = ""  # of a workload without a VM

    @property
    def who(self) -> str:
        name = self.vm or self.pod
        return f"{self.namespace}/{name}" if self.namespace else name


def differences(registered: Side, running: Side) -> Iterator[Reason]:
    """Yield other_mac, other_vm, address_not_running, address_not_registered; nothing if both match.

    A value that the workload does not report counts as equal; see `unobserved_values`.
    """
    if registered.mac and running.mac and registered.mac != running.mac:
        yield "other_mac", f"It runs with {running.mac}; {registered.mac} is registered."
    if registered.vm and not _same_vm(registered, running):
        yield "other_vm", f"It belongs to {running.who}; {registered.who} is registered."
    if registered.ips and running.ips:
        registered_hosts, running_hosts = _hosts(registered.ips), _hosts(running.ips)
        if not_running := [host for host in registered_hosts if host not in running_hosts]:
            yield "address_not_running", f"It does not run with {', '.join(not_running)}."
        if not_registered := [host for host in running_hosts if host not in registered_hosts]:
            yield "address_not_registered", f"It runs with {', '.join(not_registered)}."


def unobserved_values(running: Side) -> Iterator[Reason]:
    """Yield no_mac_seen, no_address_seen for values that could not be compared."""
    if running.mac is None:
        yield "no_mac_seen", "The cluster does not report its MAC address."
    if not running.ips:
        yield "no_address_seen", "The cluster does not report its addresses."


def absence_reason(registered: Side, vm_status: str | None) -> Reason:
    """Return why there is no workload: vm_not_named, vm_unknown, vm_stopped, vm_not_attached.

    `vm_status` is the printableStatus of the VirtualMachine, None if there is no such VM.
    """
    if not registered.vm:
        return "vm_not_named", "No VM is registered, and no workload has this MAC or IP address."
    if vm_status is None:
        return "vm_unknown", f"The VM {registered.who} does not exist in the cluster."
    if vm_status == "Running":
        return (
            "vm_not_attached",
            f"The VM {registered.who} is running, but is not attached to this network.",
        )
    status = f" ({vm_status})" if vm_status else ""
    return "vm_stopped", f"The VM {registered.who} is not running{status}."


def _same_vm(registered: Side, running: Side) -> bool:
    return registered.vm == running.vm and registered.namespace in {"", running.namespace}


def _hosts(ips: Iterable[str]) -> list[str]:
    return [text.partition("/")[0] for text in ips]
