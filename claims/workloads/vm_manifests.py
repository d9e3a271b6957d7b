"""Manifest of a VirtualMachine with its registered MAC and address annotation, for copying."""

from __future__ import annotations

import dataclasses
from typing import Any

from django.db.models import Q

from claims.access import namespaces
from claims.core.address_requests import DeclinedError
from claims.core.networks import udn
from claims.core.resources import VM as RESOURCE
from claims.core.workloads import network_selection, pod_mutation, vm_addresses
from claims.core.workloads.vm_addresses import VM, AddressChoice, Claim, Interface, Registrations
from claims.core.workloads.vm_addresses import MACEntry as KnownEntry
from claims.models import NAD, Entry, IPAMClaim, Network
from claims.workloads import vm_lookup
from pools.core import errors

INTERFACE = "default"  # name of the pod network in the VM's spec
_ABSENT = {"no_entry", "entry_of_another_vm", "claim_of_another_vm"}


def vm_manifest(
    network: Network,
    *,
    vm: str,
    namespace: str,
    mac: str | None = None,
    scope: namespaces.Scope = namespaces.EVERYTHING,
) -> dict[str, Any]:
    """Return the manifest of a VM with the MAC and the addresses of its entry or claim.

    Raises NotFound (code no_entry) if neither exists in the scope; Conflict with the code not_primary, or
    with a code of vm_addresses.choose if OVN-Kubernetes would refuse the addresses.
    """
    if network.role not in {udn.PRIMARY, ""}:
        raise _conflict_error("not_primary", f"the network {network.name} is not a primary network")
    machine = VM(namespace, vm, observed=True, interface=Interface(INTERFACE, mac))
    try:
        choice = vm_addresses.choose(machine, _registrations(network, machine, scope))
    except DeclinedError as declined:
        if declined.code in _ABSENT:
            not_found = errors.NotFound(
                f"{namespace}/{vm} has no address in {network.name} yet; the manifest appears once"
                " there is one."
            )
            not_found.code = "no_entry"
            raise not_found from declined
        raise _conflict_error(declined.code, declined.message) from declined
    return _manifest(machine, choice, vm_lookup.settings(network.cluster_id))


def _conflict_error(code: str, message: str) -> errors.Conflict:
    error = errors.Conflict(errors.sentence(message))
    error.code = code
    return error


def _registrations(network: Network, machine: VM, scope: namespaces.Scope) -> Registrations:
    """Return the registrations of the VM in the scope; the namespace need not have a NAD yet."""
    nad = NAD.objects.filter(network=network, namespace=machine.namespace).first()
    condition = Q(namespace=machine.namespace, vm=machine.name)
    mac = machine.interface.mac if machine.interface else None
    if mac:
        condition |= Q(mac=mac)
    entries = namespaces.visible(Entry.objects.filter(condition, ippool__network=network), scope)
    claims = namespaces.visible(
        IPAMClaim.objects.filter(
            network=network, namespace=machine.namespace, vm=machine.name, gone_at=None
        ),
        scope,
    )
    return Registrations(
        networks=(
            vm_lookup.primary_network(
                network,
                nad=str(nad or ""),
                persistent=nad.allow_persistent_ips if nad else network.lifecycle == "Persistent",
            ),
        ),
        entries=tuple(
            KnownEntry(
                network=network.name,
                mac=row.mac,
                ips=tuple(row.ips),
                vm=row.vm,
                namespace=row.namespace,
                ippool=row.ippool.name,
            )
            for row in entries.select_related("ippool").order_by("pk")[: vm_lookup.MOST]
        ),
        claims=tuple(
            Claim(
                network=network.name,
                name=row.name,
                vm=row.vm,
                mac=row.mac,
                requested=tuple(row.ips_requested or row.ips),
                ips=tuple(row.ips),
            )
            for row in claims.order_by("pk")[: vm_lookup.MOST]
        ),
    )


def _manifest(
    machine: VM, choice: AddressChoice, settings: pod_mutation.Settings
) -> dict[str, Any]:
    if settings.addresses:
        bare = [network_selection.strip_prefix(text) for text in choice.ips]
        name = network_selection.ADDRESSES
        value = network_selection.render_addresses({INTERFACE: bare})
    else:
        # The webhook adds the name of the claim to the pod.
        element = dataclasses.replace(pod_mutation.selection_element(choice, settings), claim="")
        name, value = network_selection.DEFAULT_NETWORK, network_selection.render([element])
    mac = choice.mac or (machine.interface.mac if machine.interface else None)
    interface = {"name": INTERFACE, "binding": {"name": "l2bridge"}}
    if mac:
        interface["macAddress"] = mac
    return {
        "apiVersion": RESOURCE.api_version,
        "kind": RESOURCE.kind,
        "metadata": {"name": machine.name, "namespace": machine.namespace},
        "spec": {
            "runStrategy": "Always",
            "template": {
                "metadata": {"annotations": {name: value}},
                "spec": {
                    "domain": {
                        "memory": {"guest": "2Gi"},
                        "devices": {"interfaces": [interface]},
                    },
                    "networks": [{"name": INTERFACE, "pod": {}}],
                },
            },
        },
    }
