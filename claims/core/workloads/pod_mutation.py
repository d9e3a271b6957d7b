"""What a virt-launcher pod is told of its VM's addresses, as the enhancement proposal says.

The multus default-network element asks OVN-Kubernetes for MAC and addresses. Others write it too: the
owner of the VM (KubeVirt carries the annotation from VM to pod), and kubevirt/ipam-extensions, which
names MAC and IPAMClaim. What they wrote stays; what is missing is added.
"""

from __future__ import annotations

import contextlib
import dataclasses
from dataclasses import dataclass

from claims.core.address_requests import DeclinedError
from claims.core.workloads import json_patch, network_selection, vm_addresses, vm_objects
from claims.core.workloads.network_selection import DEFAULT_NETWORK, Element
from claims.core.workloads.vm_addresses import VM, AddressChoice, Registrations
from pools.core import errors

CREATE, UPDATE = "CREATE", "UPDATE"


@dataclass(frozen=True)
class Settings:
    """How the cluster's VMs are told of their addresses (claims.models.NetworkSettings)."""

    addresses: bool = False  # by network.kubevirt.io/addresses on VMs, not on pods
    nad_namespace: str = "ovn-kubernetes"
    nad_name: str = "default"


@dataclass(frozen=True)
class MutationOutcome:
    """What becomes of one object; it is allowed in every case.

    `code` is a stable word, `message` explains it in full, `patch` is an RFC 6902 patch or None.
    """

    code: str
    message: str = ""
    warnings: tuple[str, ...] = ()
    patch: json_patch.Patch | None = None
    network: str = ""


# Nothing that anybody needs to be told of.
QUIET = frozenset({"not_a_vm", "no_primary_network", "unchanged", "running"})


def subject(pod: object, namespace: str) -> VM | None:
    """The VM of a launcher pod, with the MAC that the pod asks for; None for every other pod."""
    name = vm_objects.vm_name(pod) if vm_objects.is_launcher(pod) else ""
    if not name:
        return None
    mac = None
    with contextlib.suppress(errors.InvalidAnnotation):  # `decide` says so
        mac = (_present(pod) or Element("")).mac
    return VM(namespace, name, interface=vm_addresses.Interface("", mac) if mac else None)


def decide(
    pod: object,
    vm: VM | None,
    registrations: Registrations,
    settings: Settings,
    operation: str = CREATE,
) -> MutationOutcome:
    """The outcome for a pod of which `subject` gave the VM.

    Codes: patched, completed, unchanged, kept_foreign, running (it has its addresses already),
    left_to_ipam_extensions, malformed_annotation, not_a_vm, and those of vm_addresses.choose.
    """
    if vm is None:
        return MutationOutcome("not_a_vm", "the pod runs no VM")
    if settings.addresses:
        message = f"{network_selection.ADDRESSES} on the VM tells ipam-extensions of its addresses"
        return MutationOutcome("left_to_ipam_extensions", message)
    if operation == UPDATE and vm_objects.annotation(pod, DEFAULT_NETWORK) is None:
        return MutationOutcome(
            "running", "the pod was made without the annotation, and has its addresses"
        )
    try:
        present = _present(pod)
        choice = vm_addresses.choose(vm, registrations, present.ips if present else ())
    except errors.InvalidAnnotation as error:
        return explained_outcome("malformed_annotation", _error_text(error))
    except DeclinedError as declined:
        return explained_outcome(declined.code, declined.message)
    outcome = with_element(present, element(choice, settings), choice, pod, ("metadata",))
    return dataclasses.replace(
        outcome, warnings=outcome.warnings + tuple(_doubts(pod, vm.namespace))
    )


def element(choice: AddressChoice, settings: Settings) -> Element:
    """What is asked of OVN-Kubernetes."""
    return Element(settings.nad_name, settings.nad_namespace, choice.mac, choice.ips, choice.claim)


def with_element(
    present: Element | None,
    ours: Element,
    choice: AddressChoice,
    manifest: object,
    metadata_path: tuple[str, ...],
) -> MutationOutcome:
    """The outcome for an object that has the element `present`; `metadata_path` is where its metadata stands."""
    if present is None:
        value, code, verb = ours, "patched", "gets"
    elif differing := _differences(present, ours):
        message = (
            f"{DEFAULT_NETWORK} is there and stays; {choice.because} says otherwise:"
            f" {', '.join(differing)}"
        )
        return explained_outcome("kept_foreign", message, choice)
    else:
        value, code, verb = _completed(present, ours), "completed", "gets also"
        if value == present:
            return MutationOutcome(
                "unchanged", "the annotation says it already", network=choice.network
            )
    message = f"{verb} {_request_text(ours)} by {choice.because}"
    text = network_selection.render([value])
    patch = json_patch.set_annotation(manifest, metadata_path, DEFAULT_NETWORK, text)
    return explained_outcome(code, message, choice, patch)


def explained_outcome(
    code: str,
    message: str,
    choice: AddressChoice | None = None,
    patch: json_patch.Patch | None = None,
) -> MutationOutcome:
    """An outcome that its message explains, as a warning too unless it is nothing to be told."""
    notes = choice.notes if choice else ()
    warnings = (() if code in QUIET else (f"cadastre: {message}",)) + tuple(
        f"cadastre: {note}" for note in notes
    )
    return MutationOutcome(code, message, warnings, patch, choice.network if choice else "")


def _present(pod: object) -> Element | None:
    text = vm_objects.annotation(pod, DEFAULT_NETWORK)
    return None if text is None else network_selection.default_network(text)


def _differences(present: Element, ours: Element) -> list[str]:
    """Where it says something else; whose IPAMClaim it is, whoever makes the claims knows best."""
    differences = [
        f"{key} {there}, not {here}"
        for key, there, here in (
            ("name", present.name, ours.name),
            ("namespace", present.namespace, ours.namespace),
            ("mac", present.mac, ours.mac),
        )
        if there and here and there != here
    ]
    if present.ips and not network_selection.same_addresses(present.ips, ours.ips):
        differences.append(f"ips {', '.join(present.ips)}, not {', '.join(ours.ips)}")
    return differences


def _completed(present: Element, ours: Element) -> Element:
    return dataclasses.replace(
        present,
        namespace=present.namespace or ours.namespace,
        mac=present.mac or ours.mac,
        ips=present.ips or ours.ips,
        claim=present.claim or ours.claim,
    )


def _request_text(ours: Element) -> str:
    return ", ".join(ours.ips) + (f" for {ours.mac}" if ours.mac else "")


def _doubts(pod: object, namespace: str) -> list[str]:
    """The pod's other networks are none of ours; but ipam-extensions refuses what it cannot read."""
    text = vm_objects.annotation(pod, network_selection.NETWORKS)
    try:
        if text is not None:
            network_selection.networks(text, namespace=namespace)
    except errors.InvalidAnnotation as error:
        return [f"cadastre: {_error_text(error)}"]
    return []


def _error_text(error: errors.InvalidAnnotation) -> str:
    return "; ".join(
        f"{problem.field}: {problem.message} ({problem.code})" for problem in error.problems[:3]
    )
