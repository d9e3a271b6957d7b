"""IPAMClaims (k8s.cni.cncf.io/v1alpha1): parses them in every form, and renders them.

The `mac` and `ips` of the spec are the requests of the enhancement proposal's decentralized form. The
CRD of OVN-Kubernetes does not have them; claims/core/ipamclaims/dialects.py describes a cluster's CRD.
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
MAX_IPS = 32  # read of one claim; a network has one of each family
_MAX_LENGTH = 253
_MAX_LABEL_LENGTH = 63


@dataclass(frozen=True)
class Claim:
    """The contents of an IPAMClaim object.

    `ips_requested` and `ips` are canonical strings, with a prefix length if the object has one.
    `problems` are the parts that are not valid; the other parts are used all the same. `vm_uid` is the
    uid of the owner: a VirtualMachine, or a VMI that has no VirtualMachine.
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
    """Parse a claim. Raises InvalidInput only if the claim has no name or no network."""
    report = object_reader.ProblemReport(strict=False)
    document = object_reader.Fields(dict(manifest), "", report)
    metadata, spec, status = (document.section(key) for key in ("metadata", "spec", "status"))
    network = spec.parse("network", lambda value, path: _text(value, path, _MAX_LENGTH))
    name = metadata.parse("name", lambda value, path: _text(value, path, _MAX_LENGTH))
    report.raise_any()
    interface = spec.data.get("interface") or ""
    with report.collect():
        interface = _text(interface, spec.path("interface"), _MAX_LENGTH, blank=True)
    mac = None
    if spec.data.get("mac") not in (None, ""):
        with report.collect():
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
        deleted_at=_timestamp(metadata.data.get("deletionTimestamp")),
        problems=tuple(report.problems),
    )


def _text(value: object, path: str, max_length: int, *, blank: bool = False) -> str:
    if not isinstance(value, str):
        raise errors.InvalidInput.for_field(path, "wrong_type", "must be a string", value)
    if "\0" in value or len(value) > max_length or not (value or blank):
        message = f"must have 1 to {max_length} characters"
        raise errors.InvalidInput.for_field(
            path, "too_long" if value else "required", message, value
        )
    return value


def parse_address(value: object, field: str = "") -> str:
    """Parse a host address with or without a prefix length; return it in canonical form.

    Raises InvalidInput: the codes of pools.core.addresses.parse_address, and prefix_length.
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
    """Return the address of `10.0.0.5/24` or `10.0.0.5`."""
    return ip_interface(text).ip


def with_prefix(text: str, subnets: Iterable[addresses.Network]) -> str:
    """Return the address with its prefix length, else that of its subnet, else the full length."""
    if "/" in text:
        return text
    address = host(text)
    for subnet in subnets:
        if address in subnet:
            return f"{address}/{subnet.prefixlen}"
    return f"{address}/{address.max_prefixlen}"


def _addresses(part: object_reader.Fields, key: str, *, strict: bool) -> tuple[str, ...]:
    ips: list[str] = []
    for path, value in part.items(key)[:MAX_IPS]:
        with part.report.collect():
            ips.append(parse_address(value, field=path))
    families = [host(text).version for text in ips]
    if strict and len(set(families)) != len(families):
        message = "a claim has at most one address of each family"
        part.report.add(part.path(key), "one_per_family", message)
    return tuple(dict.fromkeys(ips))


def _owner(metadata: Mapping[str, Any]) -> tuple[str, str, str]:
    """Return (kind, name, uid) of the VM or the VMI that owns the claim; empty strings without one."""
    listed = metadata.get("ownerReferences")
    members = listed if isinstance(listed, list) else []
    references = [member for member in members if isinstance(member, Mapping)]
    for kind in OWNERS:
        for reference in references:
            group = str(reference.get("apiVersion", "")).partition("/")[0]
            if reference.get("kind") == kind and group == "kubevirt.io":
                return (
                    kind,
                    str(reference.get("name") or "")[:_MAX_LENGTH],
                    str(reference.get("uid") or "")[:64],
                )
    return "", "", ""


def _owner_pod(value: object) -> str:
    if isinstance(value, Mapping):
        value = value.get("name")
    return value[:_MAX_LENGTH] if isinstance(value, str) else ""


def _conditions(value: object) -> list[Condition]:
    listed = value if isinstance(value, list) else []
    return [
        dict(condition)
        for condition in listed
        if isinstance(condition, Mapping) and "type" in condition
    ]


def _timestamp(value: object) -> datetime | None:
    if not isinstance(value, str):
        return None
    try:
        timestamp = datetime.fromisoformat(value)
    except ValueError:
        return None
    return timestamp if timestamp.tzinfo else timestamp.replace(tzinfo=UTC)


def render(claim: Claim, crd_dialect: Dialect, *, status: bool = False) -> dict[str, Any]:
    """Return the manifest of a claim with the fields of the CRD, and with its `status` for users.

    The CRD requires spec.network and spec.interface; ipam-extensions writes "" for the latter.
    """
    metadata: dict[str, Any] = {"name": claim.name, "namespace": claim.namespace}
    if claim.vm:
        metadata["labels"] = {VM_LABEL: claim.vm}
    if len(claim.vm) > _MAX_LABEL_LENGTH:  # too long for a label; the owner reference names the VM
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
    if claim.mac and crd_dialect.spec_mac:
        spec["mac"] = claim.mac
    if claim.ips_requested and crd_dialect.spec_ips:
        spec["ips"] = list(claim.ips_requested)
    manifest = {
        "apiVersion": IPAM_CLAIM.api_version,
        "kind": KIND,
        "metadata": metadata,
        "spec": spec,
    }
    if status and claim.ips:
        rendered_status = dialects.render_status(
            claim.ips, claim.owner_pod, claim.conditions, crd_dialect
        )
        manifest["status"] = rendered_status
    return manifest
