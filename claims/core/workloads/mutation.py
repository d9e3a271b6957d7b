"""Mutation of virt-launcher pods and VMs: adds the addresses of the VM, following the enhancement proposal.

The patches are those of RFC 6902, and set annotations. What was refused is an event of the launcher pod: the
reason why the VM does not get its address.

The multus default-network element requests MAC and addresses from OVN-Kubernetes. The owner of the VM
may write it too (KubeVirt copies the annotation from VM to pod), and so does kubevirt/ipam-extensions,
with MAC and IPAMClaim. Existing values are kept; missing values are added.

The cluster's setting may select VMs and VMIs instead of pods, and `network.kubevirt.io/addresses`, which
kubevirt/ipam-extensions reads from the VMI. In a VM the annotation is in the template, from which KubeVirt creates
each VMI; an element there has no IPAMClaim, which the webhook for pods adds.
"""

import contextlib
import dataclasses
import hashlib
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from claims.core.networks.static_vms import DeclinedError
from claims.core.workloads import network_selection, vm_addresses, vm_objects
from claims.core.workloads.network_selection import ADDRESSES, DEFAULT_NETWORK, Element
from claims.core.workloads.vm_addresses import VM, AddressChoice, Registrations
from pools.core import errors
from pools.core.kubernetes.resources import Manifest

Patch = list[dict[str, Any]]


def set_annotation(manifest: object, metadata_path: Sequence[str], name: str, value: str) -> Patch:
    """Return a patch that sets an annotation of the metadata at `metadata_path` of the manifest.

    The patch first adds objects of the path that are absent or null. It replaces only the annotation.
    """
    patch: Patch = []
    path = ""
    section = manifest
    for key in (*metadata_path, "annotations"):
        path += f"/{_escaped(key)}"
        section = section.get(key) if isinstance(section, dict) else None
        if section is None:
            patch.append({"op": "add", "path": path, "value": {}})
            section = {}
    patch.append({"op": "add", "path": f"{path}/{_escaped(name)}", "value": value})
    return patch


def _escaped(key: str) -> str:
    return key.replace("~", "~0").replace("/", "~1")


CREATE, UPDATE = "CREATE", "UPDATE"


@dataclass(frozen=True)
class Settings:
    """Settings of a cluster: how its VMs receive their addresses (claims.models.NetworkSettings)."""

    addresses: bool = False  # by network.kubevirt.io/addresses on VMs, not on pods
    nad_namespace: str = "ovn-kubernetes"
    nad_name: str = "default"


@dataclass(frozen=True)
class MutationOutcome:
    """The outcome for one object, which is allowed in every case.

    `code` is a stable code, `message` the explanation, `patch` an RFC 6902 patch or None.
    """

    code: str
    message: str = ""
    warnings: tuple[str, ...] = ()
    patch: Patch | None = None
    network: str = ""


# Outcomes without a warning.
QUIET = frozenset({"not_a_vm", "no_primary_network", "unchanged", "running"})


def launcher_vm(pod: object, namespace: str) -> VM | None:
    """Return the VM of a launcher pod, with the MAC that the pod requests; None for other pods."""
    name = vm_objects.vm_name(pod) if vm_objects.is_launcher(pod) else ""
    if not name:
        return None
    mac = None
    with contextlib.suppress(errors.InvalidAnnotation):  # `decide` reports it
        mac = (_present(pod) or Element("")).mac
    return VM(namespace, name, interface=vm_addresses.Interface("", mac) if mac else None)


def decide_pod(
    pod: object,
    vm: VM | None,
    registrations: Registrations,
    settings: Settings,
    operation: str = CREATE,
) -> MutationOutcome:
    """Return the outcome for a pod; `vm` is the result of `launcher_vm`.

    Codes: patched, completed, unchanged, kept_foreign, running (it has its addresses already),
    left_to_ipam_extensions, malformed_annotation, not_a_vm, and those of vm_addresses.choose.
    """
    if vm is None:
        return MutationOutcome("not_a_vm", "the pod runs no VM")
    if settings.addresses:
        message = (
            f"ipam-extensions reads the addresses from {network_selection.ADDRESSES} on the VM"
        )
        return MutationOutcome("left_to_ipam_extensions", message)
    if operation == UPDATE and vm_objects.annotation(pod, DEFAULT_NETWORK) is None:
        return MutationOutcome(
            "running", "the pod was created without the annotation and has its addresses"
        )
    try:
        present = _present(pod)
        choice = vm_addresses.choose(vm, registrations, present.ips if present else ())
    except errors.InvalidAnnotation as error:
        return explained_outcome("malformed_annotation", _error_text(error))
    except DeclinedError as declined:
        return explained_outcome(declined.code, declined.message, answer=declined.answer)
    outcome = merge_element(
        present, selection_element(choice, settings), choice, pod, ("metadata",)
    )
    return dataclasses.replace(
        outcome, warnings=outcome.warnings + tuple(_annotation_warnings(pod, vm.namespace))
    )


def selection_element(choice: AddressChoice, settings: Settings) -> Element:
    """Return the element that requests the addresses from OVN-Kubernetes."""
    return Element(settings.nad_name, settings.nad_namespace, choice.mac, choice.ips, choice.claim)


def merge_element(
    present: Element | None,
    desired: Element,
    choice: AddressChoice,
    manifest: object,
    metadata_path: tuple[str, ...],
) -> MutationOutcome:
    """Return the outcome for an object with the element `present` and its metadata at `metadata_path`."""
    if present is None:
        value, code, verb = desired, "patched", "gets"
    elif differing := _differences(present, desired):
        message = (
            f"{DEFAULT_NETWORK} exists and is kept; {choice.because} differs:"
            f" {', '.join(differing)}"
        )
        return explained_outcome("kept_foreign", message, choice)
    else:
        value, code, verb = _completed(present, desired), "completed", "gets also"
        if value == present:
            return MutationOutcome(
                "unchanged", "the annotation is already complete", network=choice.network
            )
    message = f"{verb} {_request_text(desired)} by {choice.because}"
    text = network_selection.render([value])
    patch = set_annotation(manifest, metadata_path, DEFAULT_NETWORK, text)
    return explained_outcome(code, message, choice, patch)


def explained_outcome(
    code: str,
    message: str,
    choice: AddressChoice | None = None,
    patch: Patch | None = None,
    answer: str = "",
) -> MutationOutcome:
    """Return an outcome whose message is also a warning, unless the code is in `QUIET`.

    The warning is `answer` if the message names what whoever asks may not see
    (rule `webhook-answers-name-no-other-namespace`).
    """
    notes = choice.notes if choice else ()
    warnings = (() if code in QUIET else (f"cadastre: {answer or message}",)) + tuple(
        f"cadastre: {note}" for note in notes
    )
    return MutationOutcome(code, message, warnings, patch, choice.network if choice else "")


def _present(pod: object) -> Element | None:
    text = vm_objects.annotation(pod, DEFAULT_NETWORK)
    return None if text is None else network_selection.default_network(text)


def _differences(present: Element, desired: Element) -> list[str]:
    """Return the differences in words, except for the IPAMClaim, which its creator decides."""
    differences = [
        f"{key} {present_value}, not {desired_value}"
        for key, present_value, desired_value in (
            ("name", present.name, desired.name),
            ("namespace", present.namespace, desired.namespace),
            ("mac", present.mac, desired.mac),
        )
        if present_value and desired_value and present_value != desired_value
    ]
    if present.ips and not network_selection.same_addresses(present.ips, desired.ips):
        differences.append(f"ips {', '.join(present.ips)}, not {', '.join(desired.ips)}")
    return differences


def _completed(present: Element, desired: Element) -> Element:
    return dataclasses.replace(
        present,
        namespace=present.namespace or desired.namespace,
        mac=present.mac or desired.mac,
        ips=present.ips or desired.ips,
        claim=present.claim or desired.claim,
    )


def _request_text(desired: Element) -> str:
    return ", ".join(desired.ips) + (f" for {desired.mac}" if desired.mac else "")


def _annotation_warnings(pod: object, namespace: str) -> list[str]:
    """Warn of an invalid annotation of other networks, which makes ipam-extensions refuse the pod."""
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


COMPONENT = "cadastre"
_LONGEST_NAME = 253
_LONGEST_MESSAGE = 1024
# Outcomes of mutate-pods in which no request was refused.
NOTHING_REFUSED = (
    "patched", "completed", "unchanged", "running", "not_a_vm", "not_asked", "no_entry", "no_interface",
    "no_primary_network", "left_to_ipam_extensions",
)  # fmt: skip


@dataclass(frozen=True)
class Refusal:
    """The reason why a pod does not get an address, since `moment` (RFC 3339 with seconds, UTC)."""

    namespace: str
    pod: str
    pod_uid: str
    reason: str
    message: str
    moment: str

    @property
    def name(self) -> str:
        """The event's name, unique for pod, reason and message."""
        identity = "\0".join((self.pod_uid, self.reason, self.message)).encode()
        digest = hashlib.sha256(identity).hexdigest()[:16]
        return f"{self.pod[: _LONGEST_NAME - 17].rstrip('.-')}.{digest}"


def event_reason(code: str) -> str:
    """Return a code in the spelling of event reasons: `outside_subnet` becomes `OutsideSubnet`."""
    return "".join(part.capitalize() for part in code.split("_"))


def render_event(refusal: Refusal, before: Manifest | None) -> Manifest | None:
    """Return the event, counted on from `before`; None if `before` already reports the refusal."""
    previous = before or {}
    last = str(previous.get("lastTimestamp") or "")
    if before is not None and last >= refusal.moment:
        return None
    count = previous.get("count")
    return {
        "apiVersion": "v1",
        "kind": "Event",
        "metadata": {"name": refusal.name, "namespace": refusal.namespace},
        "involvedObject": {
            "apiVersion": "v1",
            "kind": "Pod",
            "namespace": refusal.namespace,
            "name": refusal.pod,
            "uid": refusal.pod_uid,
        },
        "type": "Warning",
        "reason": refusal.reason,
        "message": refusal.message[:_LONGEST_MESSAGE],
        "source": {"component": COMPONENT},
        "reportingComponent": COMPONENT,
        "reportingInstance": COMPONENT,
        "firstTimestamp": previous.get("firstTimestamp") or refusal.moment,
        "lastTimestamp": refusal.moment,
        "count": (count if isinstance(count, int) else 0) + 1,
    }


_TEMPLATE = ("spec", "template", "metadata")
_OWN = ("metadata",)


def parse_vm(manifest: object, namespace: str) -> VM:
    """Return the VM of a VirtualMachine or VirtualMachineInstance."""
    name = vm_objects.text(manifest, "metadata", "name")
    return VM(namespace, name, observed=True, interface=vm_objects.interface(manifest))


def decide_vm(
    manifest: object,
    vm: VM,
    registrations: Registrations,
    settings: Settings,
    operation: str = CREATE,
) -> MutationOutcome:
    """Return the outcome; codes as in `decide_pod`."""
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
        desired = selection_element(choice, settings)
        desired = Element(desired.name, desired.namespace, desired.mac, desired.ips)
        text = vm_objects.annotation(manifest, DEFAULT_NETWORK, *metadata_path)
        present = None if text is None else network_selection.default_network(text)
    except errors.InvalidAnnotation as error:
        return explained_outcome("malformed_annotation", error.message)
    except DeclinedError as declined:
        return explained_outcome(declined.code, declined.message, answer=declined.answer)
    return merge_element(present, desired, choice, manifest, metadata_path)


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
        patch = set_annotation(manifest, metadata_path, ADDRESSES, value)
        message = f"{name} gets {', '.join(hosts)} by {choice.because}"
        outcome = explained_outcome("completed" if present else "patched", message, choice, patch)
    return dataclasses.replace(outcome, warnings=outcome.warnings + notes)


def _missing_mac_warnings(vm: VM, choice: AddressChoice) -> tuple[str, ...]:
    """Warn that the VM has no MAC: this annotation requests none, so the guest gets a random one."""
    if choice.mac is None or (vm.interface and vm.interface.mac):
        return ()
    return (f"cadastre: set macAddress {choice.mac} in the VM's interface: {choice.because}",)
