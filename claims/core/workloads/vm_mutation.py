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
from claims.core.workloads.pod_mutation import CREATE, Outcome, Settings, told
from claims.core.workloads.vm_addresses import VM, Choice, Known
from pools.core import errors

_TEMPLATE = ("spec", "template", "metadata")
_OWN = ("metadata",)


def subject(manifest: object, namespace: str) -> VM:
    """The VM of a VirtualMachine or VirtualMachineInstance."""
    name = vm_objects.text(manifest, "metadata", "name")
    return VM(namespace, name, seen=True, interface=vm_objects.interface(manifest))


def decide(
    manifest: object, vm: VM, known: Known, settings: Settings, operation: str = CREATE
) -> Outcome:
    """The outcome; codes as pod_mutation.decide has them."""
    is_vm = vm_objects.text(manifest, "kind") == vm_objects.VM
    if not is_vm and operation != CREATE:
        return Outcome("running", "a VMI that is there has its addresses")
    at = _TEMPLATE if is_vm else _OWN
    if not vm_objects.takes_annotations(manifest, *at):
        return told("malformed_annotation", f"{'.'.join(at)}.annotations is no object")
    try:
        choice = vm_addresses.choose(vm, known)
        if settings.addresses:
            return _with_addresses(manifest, at, vm, choice)
        ours = pod_mutation.element(choice, settings)
        ours = Element(ours.name, ours.namespace, ours.mac, ours.ips)
        text = vm_objects.annotation(manifest, DEFAULT_NETWORK, *at)
        present = None if text is None else network_selection.default_network(text)
    except errors.InvalidAnnotation as error:
        return told("malformed_annotation", error.message)
    except DeclinedError as declined:
        return told(declined.code, declined.message)
    return pod_mutation.with_element(present, ours, choice, manifest, at)


def _with_addresses(manifest: object, at: tuple[str, ...], vm: VM, choice: Choice) -> Outcome:
    text = vm_objects.annotation(manifest, ADDRESSES, *at)
    present = {} if text is None else network_selection.vm_addresses(text)
    name = vm.interface.name if vm.interface else ""
    bare = tuple(map(network_selection.bare, choice.ips))
    there = present.get(name)
    if there and not network_selection.same_addresses(there, bare):
        message = (
            f"{ADDRESSES} says {', '.join(there)} and stays; {choice.because} says"
            f" {', '.join(bare)}"
        )
        return told("kept_foreign", message, choice)
    notes = _without_mac(vm, choice)
    if there:
        found = Outcome("unchanged", "the annotation says it already", network=choice.network)
    else:
        value = network_selection.render_addresses({**present, name: bare})
        patch = json_patch.set_annotation(manifest, at, ADDRESSES, value)
        message = f"{name} gets {', '.join(bare)} by {choice.because}"
        found = told("completed" if present else "patched", message, choice, patch)
    return Outcome(found.code, found.message, found.warnings + notes, found.patch, found.network)


def _without_mac(vm: VM, choice: Choice) -> tuple[str, ...]:
    """This annotation asks for no MAC; without one in the VM the guest gets another than expected."""
    if choice.mac is None or (vm.interface and vm.interface.mac):
        return ()
    return (f"cadastre: set macAddress {choice.mac} in the VM's interface: {choice.because}",)
