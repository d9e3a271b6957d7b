"""The VirtualMachine that gets its addresses, ready to be copied: with its MAC and its annotation."""

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

INTERFACE = "default"  # what the VM calls the pod network
_ABSENT = {"no_entry", "entry_of_another_vm", "claim_of_another_vm"}


def vm_manifest(
    network: Network,
    *,
    vm: str,
    namespace: str,
    mac: str | None = None,
    scope: namespaces.Scope = namespaces.EVERYTHING,
) -> dict[str, Any]:
    """The VM with what the entry or the claim for it says, as its cluster is told of it.

    Raises NotFound (code no_entry) when neither is there, or none that is seen; Conflict, with a code
    of vm_addresses.choose, when OVN-Kubernetes would refuse it, and not_primary.
    """
    if network.role not in {udn.PRIMARY, ""}:
        raise _refused("not_primary", f"{network.name} is no primary network")
    machine = VM(namespace, vm, observed=True, interface=Interface(INTERFACE, mac))
    try:
        choice = vm_addresses.choose(machine, _known_addresses(network, machine, scope))
    except DeclinedError as declined:
        if declined.code in _ABSENT:
            missing = errors.NotFound(
                f"Neither a MAC entry nor an IPAMClaim of {network.name} has addresses for"
                f" {namespace}/{vm}."
            )
            missing.code = "no_entry"
            raise missing from declined
        raise _refused(declined.code, declined.message) from declined
    return _manifest(machine, choice, vm_lookup.settings(network.cluster_id))


def _refused(code: str, message: str) -> errors.Conflict:
    error = errors.Conflict(f"{message[:1].upper()}{message[1:]}.")
    error.code = code
    return error


def _known_addresses(network: Network, machine: VM, scope: namespaces.Scope) -> Registrations:
    """What is seen of the network; a namespace that has no NAD of it yet is told the same."""
    nad = NAD.objects.filter(network=network, namespace=machine.namespace).first()
    which = Q(namespace=machine.namespace, vm=machine.name)
    mac = machine.interface.mac if machine.interface else None
    if mac:
        which |= Q(mac=mac)
    entries = namespaces.visible(Entry.objects.filter(which, ippool__network=network), scope)
    claims = namespaces.visible(
        IPAMClaim.objects.filter(
            network=network, namespace=machine.namespace, vm=machine.name, gone_at=None
        ),
        scope,
    )
    return Registrations(
        networks=(
            vm_addresses.PrimaryNetwork(
                name=network.name,
                nad=str(nad or ""),
                topology=network.topology,
                persistent=nad.allow_persistent_ips if nad else network.lifecycle == "Persistent",
                subnets=tuple(network.subnets),
                default_gateways=tuple(network.default_gateways),
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
        # The name of the claim is put in by the webhook, on the pod.
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
