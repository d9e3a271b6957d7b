"""Mutation of VirtualMachines and VirtualMachineInstances: adds their addresses.

The cluster's setting selects the annotation: `network.kubevirt.io/addresses`, which
kubevirt/ipam-extensions reads from the VMI, or the default-network element of the proposal, without the
IPAMClaim, which the webhook for pods adds. In a VM the annotation is in the template, from which
KubeVirt creates each VMI.
"""

from __future__ import annotations

from claims.core.address_requests import DeclinedError
from claims.core.workloads import network_selection, pod_mutation, vm_addresses, vm_objects
from claims.core.workloads.network_selection import ADDRESSES, DEFAULT_NETWORK, Element
from claims.core.workloads.pod_mutation import CREATE, MutationOutcome, Settings, explained_outcome
from claims.core.workloads.vm_addresses import VM, AddressChoice, Registrations
from pools.core import errors

_TEMPLATE = ("spec", "template", "metadata")
_OWN = ("metadata",)


def parse_vm(manifest: object, namespace: str) -> VM:
    """Return the VM of a VirtualMachine or VirtualMachineInstance."""
    name = vm_objects.text(manifest, "metadata", "name")
    return VM(namespace, name, observed=True, interface=vm_objects.interface(manifest))


def decide(
    manifest: object,
    vm: VM,
    registrations: Registrations,
    settings: Settings,
    operation: str = CREATE,
) -> MutationOutcome:
    """Return the outcome; codes as in pod_mutation.decide."""
    is_vm = vm_objects.text(manifest, "kind") == vm_objects.VM
    if not is_vm and operation != CREATE:
        return MutationOutcome("running", "an existing VMI has its addresses")
    metadata_path = _TEMPLATE if is_vm else _OWN
    if not vm_objects.takes_annotations(manifest, *metadata_path):
        return explained_outcome(
            "malformed_annotation", f"{'.'.join(metadata_path)}.annotations is not an object"
        )
    try:
        choice = vm_addresses.choose(vm, registrations)
        if settings.addresses:
            return _with_addresses(manifest, metadata_path, vm, choice)
        desired = pod_mutation.selection_element(choice, settings)
        desired = Element(desired.name, desired.namespace, desired.mac, desired.ips)
        text = vm_objects.annotation(manifest, DEFAULT_NETWORK, *metadata_path)
        present = None if text is None else network_selection.default_network(text)
    except errors.InvalidAnnotation as error:
        return explained_outcome("malformed_annotation", error.message)
    except DeclinedError as declined:
        return explained_outcome(declined.code, declined.message, answer=declined.answer)
    return pod_mutation.merge_element(present, desired, choice, manifest, metadata_path)


def _with_addresses(
    manifest: object, metadata_path: tuple[str, ...], vm: VM, choice: AddressChoice
) -> MutationOutcome:
    text = vm_objects.annotation(manifest, ADDRESSES, *metadata_path)
    present = {} if text is None else network_selection.vm_addresses(text)
    name = vm.interface.name if vm.interface else ""
    hosts = tuple(map(network_selection.strip_prefix, choice.ips))
    present_hosts = present.get(name)
    if present_hosts and not network_selection.same_addresses(present_hosts, hosts):
        message = (
            f"{ADDRESSES} has {', '.join(present_hosts)} and is kept; {choice.because} has"
            f" {', '.join(hosts)}"
        )
        return explained_outcome("kept_foreign", message, choice)
    notes = _missing_mac_warnings(vm, choice)
    if present_hosts:
        outcome = MutationOutcome(
            "unchanged", "the annotation is already complete", network=choice.network
        )
    else:
        value = network_selection.render_addresses({**present, name: hosts})
        patch = pod_mutation.set_annotation(manifest, metadata_path, ADDRESSES, value)
        message = f"{name} gets {', '.join(hosts)} by {choice.because}"
        outcome = explained_outcome("completed" if present else "patched", message, choice, patch)
    return MutationOutcome(
        outcome.code, outcome.message, outcome.warnings + notes, outcome.patch, outcome.network
    )


def _missing_mac_warnings(vm: VM, choice: AddressChoice) -> tuple[str, ...]:
    """Warn that the VM has no MAC: this annotation requests none, so the guest gets a random one."""
    if choice.mac is None or (vm.interface and vm.interface.mac):
        return ()
    return (f"cadastre: set macAddress {choice.mac} in the VM's interface: {choice.because}",)
