"""IPAMClaims (k8s.cni.cncf.io/v1alpha1), read in every form that there is, and written.

The `mac` and `ips` of the spec are the requests of the enhancement proposal's decentralized form, which the
CRD that OVN-Kubernetes ships does not have; claims/core/ipamclaims/dialects.py knows what a cluster's CRD has.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from ipaddress import ip_interface
from typing import Any

from claims.core import macs
from claims.core.ipamclaims import dialects, names
from claims.core.ipamclaims.dialects import Condition, Dialect, dialect
from claims.core.resources import IPAM_CLAIM
from pools.core import addresses, errors, object_reader

__all__ = ["Claim", "dialect", "host", "parse", "parse_address", "render", "with_prefix"]

KIND = IPAM_CLAIM.kind
FINALIZER = "kubevirt.io/persistent-ipam"
VM_LABEL = "kubevirt.io/vm"
OWNERS = ("VirtualMachine", "VirtualMachineInstance")
MOST_IPS = 32  # of one claim; a network has one of each family
_LONGEST = 253
_LONGEST_LABEL = 63


@dataclass(frozen=True)
class Claim:
    """An IPAMClaim as its object says it.

    `ips_requested` and `ips` are canonical texts, with the prefix length that was written, if any.
    `problems` are parts that say nothing that can be understood; the rest is taken in all the same.
    `vm_uid` is that of the owner, a VirtualMachine or, of a VMI without a VM, the VMI.
    """

    namespace: str
    name: str
    uid: str
    network: str
    interface: str = ""
    mac: str | None = None
    ips_requested: tuple[str, ...] = ()
    ips: tuple[str, ...] = ()
    owner_pod: str = ""
    conditions: tuple[Condition, ...] = ()
    vm: str = ""
    vm_uid: str = ""
    owner_kind: str = ""
    finalizers: tuple[str, ...] = ()
    deleted_at: datetime | None = None
    problems: tuple[errors.FieldProblem, ...] = ()


def parse(manifest: Mapping[str, Any]) -> Claim:
    """Raises InvalidInput only for a claim of which nothing can be said: no name, no network."""
    report = object_reader.ProblemReport(strict=False)
    document = object_reader.Fields(dict(manifest), "", report)
    metadata, spec, status = (document.section(key) for key in ("metadata", "spec", "status"))
    network = spec.parse("network", lambda value, path: _text(value, path, _LONGEST))
    name = metadata.parse("name", lambda value, path: _text(value, path, _LONGEST))
    report.raise_any()
    interface = spec.data.get("interface") or ""
    with report.collecting():
        interface = _text(interface, spec.path("interface"), _LONGEST, blank=True)
    mac = None
    if spec.data.get("mac") not in (None, ""):
        with report.collecting():
            mac = macs.parse_mac(spec.data["mac"], field="spec.mac")
    requested = _addresses(spec, "ips", strict=True)
    ips = _addresses(status, "ips", strict=False)
    owner_kind, owner, owner_uid = _owner(metadata.data)
    labels = metadata.data.get("labels")
    label = labels.get(VM_LABEL) if isinstance(labels, Mapping) else None
    vm = owner or (label if isinstance(label, str) else "")
    return Claim(
        namespace=str(metadata.data.get("namespace") or ""),
        name=name or "",
        uid=str(metadata.data.get("uid") or ""),
        network=network or "",
        interface=interface if isinstance(interface, str) else "",
        mac=mac,
        ips_requested=requested,
        ips=ips,
        owner_pod=_owner_pod(status.data.get("ownerPod")),
        conditions=tuple(_conditions(status.data.get("conditions"))),
        vm=vm or names.vm_of(name or "", network or ""),
        vm_uid=owner_uid,
        owner_kind=owner_kind,
        finalizers=tuple(
            value for _, value in metadata.items("finalizers") if isinstance(value, str)
        ),
        deleted_at=_moment(metadata.data.get("deletionTimestamp")),
        problems=tuple(report.problems),
    )


def _text(value: object, path: str, longest: int, *, blank: bool = False) -> str:
    if not isinstance(value, str):
        raise errors.InvalidInput.for_field(path, "wrong_type", "must be a text", value)
    if "\0" in value or len(value) > longest or not (value or blank):
        message = f"must have 1 to {longest} characters"
        raise errors.InvalidInput.for_field(
            path, "too_long" if value else "required", message, value
        )
    return value


def parse_address(value: object, *, field: str = "") -> str:
    """A host address, with a prefix length or without: `10.0.0.5/24`, canonical.

    Raises InvalidInput: what parse_address of pools.core.addresses raises, and prefix_length.
    """
    head, slash, tail = value.partition("/") if isinstance(value, str) else (value, "", "")
    address = addresses.parse_address(head, field=field)
    if not slash:
        return str(address)
    plain = tail.isascii() and tail.isdigit() and len(tail) < 4 and str(int(tail)) == tail
    if not plain or not 0 < int(tail) <= address.max_prefixlen:
        message = f"the prefix length must be a number from 1 to {address.max_prefixlen}"
        raise errors.InvalidInput.for_field(field, "prefix_length", message, value)
    return f"{address}/{int(tail)}"


def host(text: str) -> addresses.Address:
    """The address of `10.0.0.5/24` or `10.0.0.5`."""
    return ip_interface(text).ip


def with_prefix(text: str, subnets: Iterable[addresses.Network]) -> str:
    """The address with a prefix length: its own, else that of the subnet that holds it, else all."""
    if "/" in text:
        return text
    address = host(text)
    for subnet in subnets:
        if address in subnet:
            return f"{address}/{subnet.prefixlen}"
    return f"{address}/{address.max_prefixlen}"


def _addresses(part: object_reader.Fields, key: str, *, strict: bool) -> tuple[str, ...]:
    ips: list[str] = []
    for path, value in part.items(key)[:MOST_IPS]:
        with part.report.collecting():
            ips.append(parse_address(value, field=path))
    families = [host(text).version for text in ips]
    if strict and len(set(families)) != len(families):
        message = "a claim has at most one address of each family"
        part.report.add(part.path(key), "one_per_family", message)
    return tuple(dict.fromkeys(ips))


def _owner(metadata: Mapping[str, Any]) -> tuple[str, str, str]:
    """(kind, name, uid) of the VM, or the VMI, that owns the claim."""
    listed = metadata.get("ownerReferences")
    members = listed if isinstance(listed, list) else []
    references = [member for member in members if isinstance(member, Mapping)]
    for kind in OWNERS:
        for reference in references:
            group = str(reference.get("apiVersion", "")).partition("/")[0]
            if reference.get("kind") == kind and group == "kubevirt.io":
                return (
                    kind,
                    str(reference.get("name") or "")[:_LONGEST],
                    str(reference.get("uid") or "")[:64],
                )
    return "", "", ""


def _owner_pod(value: object) -> str:
    if isinstance(value, Mapping):
        value = value.get("name")
    return value[:_LONGEST] if isinstance(value, str) else ""


def _conditions(value: object) -> list[Condition]:
    listed = value if isinstance(value, list) else []
    return [
        dict(condition)
        for condition in listed
        if isinstance(condition, Mapping) and "type" in condition
    ]


def _moment(value: object) -> datetime | None:
    if not isinstance(value, str):
        return None
    try:
        moment = datetime.fromisoformat(value)
    except ValueError:
        return None
    return moment if moment.tzinfo else moment.replace(tzinfo=UTC)


def render(claim: Claim, words: Dialect, *, status: bool = False) -> dict[str, Any]:
    """The manifest of a claim, without what the CRD has not; with its `status` for people.

    spec.network and spec.interface are required by the CRD; ipam-extensions writes "" for the latter.
    """
    metadata: dict[str, Any] = {"name": claim.name, "namespace": claim.namespace}
    if claim.vm:
        metadata["labels"] = {VM_LABEL: claim.vm}
    if len(claim.vm) > _LONGEST_LABEL:  # no value of a label; the owner says it
        del metadata["labels"]
    if claim.owner_kind and claim.vm_uid:
        metadata["ownerReferences"] = [
            {
                "apiVersion": "kubevirt.io/v1",
                "kind": claim.owner_kind,
                "name": claim.vm,
                "uid": claim.vm_uid,
                "controller": True,
                "blockOwnerDeletion": True,
            }
        ]
    spec: dict[str, Any] = {"network": claim.network, "interface": claim.interface}
    if claim.mac and words.spec_mac:
        spec["mac"] = claim.mac
    if claim.ips_requested and words.spec_ips:
        spec["ips"] = list(claim.ips_requested)
    manifest = {
        "apiVersion": IPAM_CLAIM.api_version,
        "kind": KIND,
        "metadata": metadata,
        "spec": spec,
    }
    if status and claim.ips:
        rendered_status = dialects.render_status(
            claim.ips, claim.owner_pod, claim.conditions, words
        )
        manifest["status"] = rendered_status
    return manifest
