"""What a VirtualMachine or VirtualMachineInstance is told of its addresses.

By the cluster's setting either `network.kubevirt.io/addresses`, which kubevirt/ipam-extensions reads
off the VMI, or the default-network element of the proposal, without the IPAMClaim, which the webhook for
pods adds. In a VM they stand in the template, from which KubeVirt makes each VMI.
"""

from __future__ import annotations

from claims.core.address_requests import DeclinedError
from claims.core.workloads import (
    json_patch,
    network_selection,
    pod_mutation,
    vm_addresses,
    vm_objects,
)
from claims.core.workloads.network_selection import ADDRESSES, DEFAULT_NETWORK, Element
from claims.core.workloads.pod_mutation import CREATE, MutationOutcome, Settings, explained_outcome
from claims.core.workloads.vm_addresses import VM, AddressChoice, Registrations
from pools.core import errors

_TEMPLATE = ("spec", "template", "metadata")
_OWN = ("metadata",)


def subject(manifest: object, namespace: str) -> VM:
    """The VM of a VirtualMachine or VirtualMachineInstance."""
    name = vm_objects.text(manifest, "metadata", "name")
    return VM(namespace, name, observed=True, interface=vm_objects.interface(manifest))


def decide(
    manifest: object,
    vm: VM,
    registrations: Registrations,
    settings: Settings,
    operation: str = CREATE,
) -> MutationOutcome:
    """The outcome; codes as pod_mutation.decide has them."""
    is_vm = vm_objects.text(manifest, "kind") == vm_objects.VM
    if not is_vm and operation != CREATE:
        return MutationOutcome("running", "a VMI that is there has its addresses")
    metadata_path = _TEMPLATE if is_vm else _OWN
    if not vm_objects.takes_annotations(manifest, *metadata_path):
        return explained_outcome(
            "malformed_annotation", f"{'.'.join(metadata_path)}.annotations is no object"
        )
    try:
        choice = vm_addresses.choose(vm, registrations)
        if settings.addresses:
            return _with_addresses(manifest, metadata_path, vm, choice)
        ours = pod_mutation.element(choice, settings)
        ours = Element(ours.name, ours.namespace, ours.mac, ours.ips)
        text = vm_objects.annotation(manifest, DEFAULT_NETWORK, *metadata_path)
        present = None if text is None else network_selection.default_network(text)
    except errors.InvalidAnnotation as error:
        return explained_outcome("malformed_annotation", error.message)
    except DeclinedError as declined:
        return explained_outcome(declined.code, declined.message)
    return pod_mutation.with_element(present, ours, choice, manifest, metadata_path)


def _with_addresses(
    manifest: object, metadata_path: tuple[str, ...], vm: VM, choice: AddressChoice
) -> MutationOutcome:
    text = vm_objects.annotation(manifest, ADDRESSES, *metadata_path)
    present = {} if text is None else network_selection.vm_addresses(text)
    name = vm.interface.name if vm.interface else ""
    bare = tuple(map(network_selection.bare, choice.ips))
    there = present.get(name)
    if there and not network_selection.same_addresses(there, bare):
        message = (
            f"{ADDRESSES} says {', '.join(there)} and stays; {choice.because} says"
            f" {', '.join(bare)}"
        )
        return explained_outcome("kept_foreign", message, choice)
    notes = _without_mac(vm, choice)
    if there:
        outcome = MutationOutcome(
            "unchanged", "the annotation says it already", network=choice.network
        )
    else:
        value = network_selection.render_addresses({**present, name: bare})
        patch = json_patch.set_annotation(manifest, metadata_path, ADDRESSES, value)
        message = f"{name} gets {', '.join(bare)} by {choice.because}"
        outcome = explained_outcome("completed" if present else "patched", message, choice, patch)
    return MutationOutcome(
        outcome.code, outcome.message, outcome.warnings + notes, outcome.patch, outcome.network
    )


def _without_mac(vm: VM, choice: AddressChoice) -> tuple[str, ...]:
    """This annotation asks for no MAC; without one in the VM the guest gets another than expected."""
    if choice.mac is None or (vm.interface and vm.interface.mac):
        return ()
    return (f"cadastre: set macAddress {choice.mac} in the VM's interface: {choice.because}",)
