"""IPAMClaims (k8s.cni.cncf.io/v1alpha1): their names; parses them in every form, and renders them.

The enhancement proposal names a claim `<vm>.<logical network name>`, which is often not valid as the
name of an object (`cluster_udn_prod` has underscores). kubevirt/ipam-extensions composes a valid name
(pkg/claims/claims.go, ComposeKey) of the VM's name and the VM's own name for its network.

The `mac` and `ips` of the spec are the requests of the enhancement proposal's decentralized form. The
CRD of OVN-Kubernetes does not have them; claims/core/ipamclaims/dialects.py describes a cluster's CRD.
"""

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from ipaddress import ip_interface
from typing import Any

from claims.core import macs
from claims.core.ipamclaims import dialects
from claims.core.ipamclaims.dialects import Condition, Dialect
from claims.core.resources import IPAM_CLAIM
from pools.core import addresses, errors, object_reader

MAX_NAME_LENGTH = 253
SEPARATOR = "."
_RUN = re.compile("[a-z0-9](?:[-a-z0-9]*[a-z0-9])?")

Pair = tuple[str, str]  # VM, network


def compose_key(vm: str, network: str) -> str:
    """Return the name that ipam-extensions gives to the claim of a VM on a network.

    It consists of the runs of letters, digits and hyphens in lower case, joined with dots, cut at 253
    characters. A cut name may end with a dot or a hyphen, and then is not valid as an object name.
    """
    runs = _RUN.findall(f"{vm}{SEPARATOR}{network}".lower())
    return SEPARATOR.join(runs)[:MAX_NAME_LENGTH]


def spec_name(vm: str, network: str) -> str:
    """Return `<vm>.<logical network name>`, the name of the proposal; not always valid as an object name."""
    return f"{vm}{SEPARATOR}{network}"


def is_name_of(name: str, vm: str, networks: Iterable[str] = ()) -> bool:
    """Return True if a claim with this name may belong to the VM, on one of `networks` (empty: on any)."""
    network_names = list(networks)
    if network_names:
        return any(
            name in {compose_key(vm, network), spec_name(vm, network)} for network in network_names
        )
    begin = compose_key(vm, "")
    return name.startswith(begin + SEPARATOR) or (
        len(name) == MAX_NAME_LENGTH and begin.startswith(name)
    )


def vm_of(name: str, network: str) -> str:
    """Return the VM name at the beginning of a claim's name, or "".

    A name that does not end with the network's name ends with the VM's own name for the network, which
    has no dot (ipam-extensions), unless the name was cut.
    """
    for ending in {SEPARATOR + network, SEPARATOR + compose_key("", network)}:
        if len(ending) > 1 and name.endswith(ending) and len(name) > len(ending):
            return name.removesuffix(ending)
    return name.rpartition(SEPARATOR)[0] if network and len(name) < MAX_NAME_LENGTH else ""


def name_collisions(pairs: Iterable[Pair]) -> dict[str, list[Pair]]:
    """Return the names that several of these pairs would get, each with its pairs in order."""
    pairs_by_name: dict[str, dict[Pair, None]] = {}
    for pair in pairs:
        pairs_by_name.setdefault(compose_key(*pair), {})[pair] = None
    return {
        name: list(name_pairs) for name, name_pairs in pairs_by_name.items() if len(name_pairs) > 1
    }


def name_problems(vm: str, network: str) -> list[errors.FieldProblem]:
    """Return the problems of a pair's name: name_impossible, name_cut, name_differs."""
    name = compose_key(vm, network)
    name_problems = []
    whole = SEPARATOR.join(_RUN.findall(f"{vm}{SEPARATOR}{network}".lower()))
    if not name or name[-1] in ".-":
        message = "the name, cut at 253 characters, ends with a dot or a hyphen"
        name_problems.append(
            errors.FieldProblem("name", "name_impossible", message, errors.display_value(name))
        )
    if whole != name:
        message = (
            f"the name is cut at {MAX_NAME_LENGTH} characters; another claim may get the same name"
        )
        name_problems.append(
            errors.FieldProblem("name", "name_cut", message, errors.display_value(name))
        )
    elif name != spec_name(vm, network):
        message = f"{spec_name(vm, network)} is not valid as an object name; the name is {name}"
        name_problems.append(
            errors.FieldProblem("name", "name_differs", message, errors.display_value(name))
        )
    return name_problems


KIND = IPAM_CLAIM.kind
VM_LABEL = "kubevirt.io/vm"
OWNERS = ("VirtualMachine", "VirtualMachineInstance")
MAX_IPS = 32  # read of one claim; a network has one of each family
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
    network = spec.parse("network", lambda value, path: _text(value, path, MAX_NAME_LENGTH))
    name = metadata.parse("name", lambda value, path: _text(value, path, MAX_NAME_LENGTH))
    report.raise_any()
    interface = spec.data.get("interface") or ""
    with report.collect():
        interface = _text(interface, spec.path("interface"), MAX_NAME_LENGTH, blank=True)
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
        vm=vm or vm_of(name or "", network or ""),
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
                    str(reference.get("name") or "")[:MAX_NAME_LENGTH],
                    str(reference.get("uid") or "")[:64],
                )
    return "", "", ""


def _owner_pod(value: object) -> str:
    if isinstance(value, Mapping):
        value = value.get("name")
    return value[:MAX_NAME_LENGTH] if isinstance(value, str) else ""


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
