"""Readers of documents: Forklift's inventory, and manifests of IPPools and IPAMClaims.

The formats of the inventory are those of pkg/controller/provider/web of kubev2v/forklift. Interfaces are in `nics`. Their
addresses are in `guestNetworks` (vSphere, Hyper-V), in the interface (oVirt, Nutanix), in `addresses`
(OpenStack), or absent (OVA). An OpenShift source has the whole VM object.

Each entry and each claim of a manifest is a row. Repeated keys arrive as pools.core.object_reader.Repeated
(pools.platform.documents); each occurrence is a row with the problem `duplicate_key`.
"""

import contextlib
import dataclasses
import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from claims.core import ippool
from claims.core.ipamclaims import ipamclaim
from claims.core.vm_import import cells, vm_interface
from claims.core.vm_import.vm_interface import Skipped, VMInterface, problem
from pools.core import errors
from pools.core.errors import FieldProblem
from pools.core.object_reader import RepeatedKey

Json = Mapping[str, Any]

_MARKS = {"nics", "guestNetworks", "addresses", "isTemplate", "powerState", "selfLink", "object"}


def is_vm(value: object) -> bool:
    """Return True if the object can be a VM of the inventory, which lists its NICs; vCenter's REST API names them."""
    if not isinstance(value, Mapping) or isinstance(value.get("nics"), Mapping):
        return False
    return "name" in value and bool(_MARKS & value.keys())


def vms(listed: Iterable[object], skipped: Skipped) -> Iterator[VMInterface]:
    """Yield the interfaces of the VMs; `row` is the position of the VM, from 1.

    `skipped` counts templates, vCLS machines, interfaces that only the guest reports (guest_only_interface) and
    floating addresses.
    """
    for row, vm in enumerate(listed, start=1):
        if not isinstance(vm, Mapping):
            wrong = problem("", "wrong_type", "an object is expected")
            yield VMInterface(row, "", "", (), problems=(wrong,), refused=True)
        elif vm.get("isTemplate") is True:
            skipped.add("template", plain_text(vm.get("name")))
        elif str(vm.get("name", "")).startswith("vCLS"):
            skipped.add("vcls", plain_text(vm.get("name")))
        else:
            yield from _vm(row, vm, skipped)


def _vm(row: int, vm: Json, skipped: Skipped) -> Iterator[VMInterface]:
    name, name_problems = _name(vm)
    namespace = ""
    if isinstance(vm.get("object"), Mapping):
        namespace = plain_text(vm.get("namespace"))
        interfaces = list(_openshift(vm))
    elif isinstance(vm.get("addresses"), Mapping):
        interfaces = list(_openstack(vm["addresses"], name, skipped))
    else:
        interfaces = list(_nics(vm, skipped))
    if not interfaces:
        message = "the inventory has no network interface of this VM"
        wrong = (*name_problems, problem("mac", "mac_missing", message))
        texts = [plain_text(guest.get("ip")) for guest in listed_mappings(vm.get("guestNetworks"))]
        reported = cells.parse_addresses(*texts).ips
        yield VMInterface(
            row, name, "", reported, namespace=namespace, problems=wrong, refused=True
        )
    for mac, listed, network, guests in interfaces:
        ips = cells.parse_addresses(*listed)
        interface = cells.read_interface(
            row, name, mac, ips, problems=name_problems, port_group=network, namespace=namespace,
            origins=_origins(ips.ips, guests), vm_id=plain_text(vm.get("id")),
        )  # fmt: skip
        interface = _tell_lost(vm, vm_interface.settle_origins(interface))
        interface = vm_interface.tell_address(interface, plain_text(vm.get("ipAddress")))
        yield vm_interface.tell_power(
            interface, plain_text(vm.get("powerState") or vm.get("status"))
        )


# MAC, addresses, network, what the guest reports of the addresses
Interface = tuple[str, list[str], str, Sequence[Json]]


def _nics(vm: Json, skipped: Skipped) -> Iterator[Interface]:
    """Yield the interfaces with the values that the guest reports.

    Both are joined by MAC address, or by device number if the guest reports no MAC.
    """
    guests: dict[Key, list[Json]] = {}
    for number, guest in enumerate(listed_mappings(vm.get("guestNetworks"))):
        key = _guest_key(guest) or ("alone", str(number))
        guests.setdefault(key, []).append(guest)
    for nic in listed_mappings(vm.get("nics")):
        mac = plain_text(first_value(nic, "mac", "macAddress", "MAC"))
        keys = (
            ("mac", _digits(mac)),
            ("key", _device(nic.get("deviceKey"))),
            ("index", _device(nic.get("deviceIndex"))),
        )
        nic_guests = [guest for key in keys if key[1] for guest in guests.pop(key, ())]
        listed = [
            _with_prefix(plain_text(guest.get("ip")), guest.get("prefix")) for guest in nic_guests
        ]
        listed += list(_own_addresses(nic))
        network = next(
            (plain_text(guest["network"]) for guest in nic_guests if guest.get("network")), ""
        )
        yield mac, listed, network or _network(nic), nic_guests
    for _ in guests:
        skipped.add("guest_only_interface", plain_text(vm.get("name")))


Key = tuple[str, str]


def _guest_key(guest: Json) -> Key | None:
    if mac := plain_text(guest.get("mac")):
        return "mac", _digits(mac)
    for name, field in (("key", "deviceConfigId"), ("index", "deviceIndex")):
        if device := _device(guest.get(field)):
            return name, device
    return None


def _device(number: object) -> str:
    """Return the device number as a string, "" for -1, which stands for no device."""
    plain = isinstance(number, int) and not isinstance(number, bool) and number >= 0
    return str(number) if plain else ""


def _digits(mac: str) -> str:
    return mac.lower().replace(":", "").replace("-", "")


def _own_addresses(nic: Json) -> Iterator[str]:
    """Yield the addresses in oVirt's `ipAddress` [{address, version}] and Nutanix' `ipAddresses`."""
    for key in ("ipAddress", "ipAddresses"):
        listed = nic.get(key)
        for address in listed if isinstance(listed, list) else [listed]:
            text = (
                plain_text(address.get("address"))
                if isinstance(address, Mapping)
                else plain_text(address)
            )
            if text:
                yield text


def _network(nic: Json) -> str:
    """Return the network's name, else its id (vSphere's moref, oVirt's profile)."""
    for key in ("networkName", "subnetName", "network", "Network", "profile"):
        value = nic.get(key)
        text = (
            plain_text(value.get("name") or value.get("id"))
            if isinstance(value, Mapping)
            else plain_text(value)
        )
        if text:
            return text
    return ""


def _openstack(addresses: Json, vm: str, skipped: Skipped) -> Iterator[Interface]:
    """Yield interfaces from Nova's `{network: [{"addr", "version", "OS-EXT-IPS-MAC:mac_addr", …}]}`.

    Floating addresses belong to no interface and are left out, counted in `skipped`.
    """
    for network, listed in addresses.items():
        by_mac: dict[str, list[str]] = {}
        plain = listed if isinstance(listed, list) else []  # of the client's `server list`
        for address in listed_mappings(
            [{"addr": ip} if isinstance(ip, str) else ip for ip in plain]
        ):
            if address.get("OS-EXT-IPS:type") == "floating":
                skipped.add("floating_address", f"{vm} ({plain_text(address.get('addr'))})")
            else:
                mac = plain_text(address.get("OS-EXT-IPS-MAC:mac_addr"))
                by_mac.setdefault(mac, []).append(plain_text(address.get("addr")))
        for mac, ips in by_mac.items():
            yield mac, ips, plain_text(network), ()


_ADDRESSES = "network.kubevirt.io/addresses"  # JSON, by the name of the network


def _requested_addresses(template: Json) -> Json:
    annotations = as_mapping(as_mapping(template.get("metadata")).get("annotations"))
    with contextlib.suppress(ValueError):
        return as_mapping(json.loads(plain_text(annotations.get(_ADDRESSES)) or "{}"))
    return {}


def _openshift(vm: Json) -> Iterator[Interface]:
    template = as_mapping(as_mapping(as_mapping(vm["object"]).get("spec")).get("template"))
    spec, requested = as_mapping(template.get("spec")), _requested_addresses(template)
    devices = as_mapping(as_mapping(spec.get("domain")).get("devices"))
    attachments = {
        plain_text(network.get("name")): plain_text(
            as_mapping(network.get("multus")).get("networkName")
        )
        for network in listed_mappings(spec.get("networks"))
    }
    running = {
        plain_text(interface.get("name")): interface
        for interface in listed_mappings(
            as_mapping(as_mapping(vm.get("instance")).get("status")).get("interfaces")
        )
    }
    for interface in listed_mappings(devices.get("interfaces")):
        name = plain_text(interface.get("name"))
        running_interface = running.get(name, {})
        mac = plain_text(interface.get("macAddress") or running_interface.get("mac"))
        listed = running_interface.get("ipAddresses") or requested.get(name)
        ips = [plain_text(ip) for ip in listed] if isinstance(listed, list) else []
        yield mac, ips, attachments.get(name) or name, ()


def _tell_lost(vm: Json, row: VMInterface) -> VMInterface:
    """Return the row with a remark for each address that MTV does not preserve: on Windows it preserves only manual ones
    (Forklift, pkg/controller/plan/adapter/vsphere)."""
    if not _is_windows(vm):
        return row
    problems = list(row.problems)
    for ip, origin in zip(row.ips, row.origins, strict=False):
        if origin.lower() not in {"", "manual"}:
            message = (
                f"MTV does not preserve this address: its origin in the Windows guest is {origin.lower()[:32]}, and"
                " only manual addresses are preserved"
            )
            problems.append(problem("ips", "not_preserved", message, ip.partition("/")[0]))
    return dataclasses.replace(row, problems=tuple(problems))


def _is_windows(vm: Json) -> bool:
    names = (plain_text(vm.get(key)) for key in ("guestName", "guestNameFromVmwareTools"))
    is_named = any("windows" in name.lower() for name in names)
    return is_named or plain_text(vm.get("guestId")).lower().startswith("win")


def _origins(ips: Sequence[str], guests: Sequence[Json]) -> tuple[str, ...]:
    """Return the origin (manual, dhcp, …) that the guest reports of each address; () if it reports none."""
    found = {
        plain_text(guest.get("ip")).lower(): plain_text(guest.get("origin")) for guest in guests
    }
    return tuple(found.get(ip.partition("/")[0], "") for ip in ips) if any(found.values()) else ()


def _with_prefix(ip: str, prefix: object) -> str:
    """Return the address with its prefix; Forklift writes prefix 0 for an unknown one."""
    plain = isinstance(prefix, int) and not isinstance(prefix, bool) and prefix > 0
    return f"{ip}/{prefix}" if plain and ip else ip


def _name(vm: Json) -> tuple[str, tuple[FieldProblem, ...]]:
    text, wrong = cells.parse_text("vm", plain_text(vm.get("name")))
    if wrong is None and not text:
        wrong = problem("vm", "required", "the VM has no name")
    return text, (wrong,) if wrong else ()


def first_value(nic: Json, *keys: str) -> object:
    return next((nic[key] for key in keys if nic.get(key)), "")


def plain_text(value: object) -> str:
    if isinstance(value, str):
        return value.strip()
    return str(value) if isinstance(value, int) and not isinstance(value, bool) else ""


def as_mapping(value: object) -> Json:
    return value if isinstance(value, Mapping) else {}


def listed_mappings(value: object) -> Iterator[Json]:
    return (
        element
        for element in (value if isinstance(value, list) else [])
        if isinstance(element, Mapping)
    )


# --- manifests -------------------------------------------------------------------------------------


def kind_of(manifest: object) -> str:
    """Return IPPool or IPAMClaim, or "" for another object."""
    kind = manifest.get("kind") if isinstance(manifest, Mapping) else None
    return kind if isinstance(kind, str) and kind in (ippool.KIND, ipamclaim.KIND) else ""


def objects(documents: Sequence[object]) -> list[object]:
    """Return the documents, with lists (`kubectl get -o yaml`) replaced by their items."""
    listed: list[object] = []
    for document in documents:
        items = document.get("items") if isinstance(document, Mapping) else None
        listed += items if isinstance(items, list) else [document]
    return listed


def manifest_rows(manifests: Sequence[object]) -> Iterator[VMInterface]:
    """Yield the entries and claims; `row` counts from 1 over all objects.

    Any other object is a refused row, so that no object of a file is silently ignored.
    """
    number = 1
    for manifest in manifests:
        for interface in _rows(number, manifest):
            yield interface
            number = interface.row + 1


def _rows(number: int, manifest: object) -> Iterator[VMInterface]:
    kind = kind_of(manifest)
    if not isinstance(manifest, Mapping) or not kind:
        message = f"an {ippool.KIND} or an {ipamclaim.KIND} is expected"
        actual_kind = manifest.get("kind", "") if isinstance(manifest, Mapping) else ""
        wrong = problem("kind", "unsupported_kind", message, actual_kind)
        yield VMInterface(number, "", "", (), problems=(wrong,), refused=True)
        return
    try:
        if kind == ippool.KIND:
            yield from _entries(number, manifest)
        else:
            yield _claim(number, ipamclaim.parse(manifest))
    except errors.InvalidInput as error:
        yield VMInterface(number, "", "", (), problems=error.problems, refused=True)


def _entries(number: int, manifest: Json) -> Iterator[VMInterface]:
    pool = ippool.parse(manifest)
    counted: dict[str, int] = {}
    for key, _ in pool.entries:
        counted[key] = counted.get(key, 0) + 1
    for offset, (key, value) in enumerate(pool.entries):
        problems: tuple[FieldProblem, ...] = ()
        if counted[key] > 1:
            message = f"the object has this key {counted[key]} times"
            problems = (problem("mac", "duplicate_key", message, key),)
        yield _entry(number + offset, key, value, pool.network_name, problems)


def _entry(
    row: int, mac: str, value: object, network: str, problems: tuple[FieldProblem, ...]
) -> VMInterface:
    listed_ips = value if isinstance(value, list) and not isinstance(value, RepeatedKey) else None
    if listed_ips is None or not all(isinstance(ip, str) for ip in listed_ips):
        message = 'a list of addresses is expected, such as ["10.0.0.5/24"]'
        problems = (*problems, *cells.parse_mac(mac), problem("ips", "wrong_type", message, value))
        return VMInterface(row, "", mac, (), network, problems=problems, refused=True)
    ips = cells.parse_addresses(*listed_ips, aside=False)
    return cells.read_interface(row, "", mac, ips, remarks=problems, port_group=network)


def _claim(row: int, claim: ipamclaim.Claim) -> VMInterface:
    """Return the row of a claim, with the requested or else the granted addresses; the MAC is optional."""
    ips = claim.ips_requested or claim.ips
    problems = claim.problems
    if not ips:
        problems = (*problems, vm_interface.NO_ADDRESS)
    return VMInterface(
        row,
        claim.vm,
        claim.mac or "",
        ips,
        claim.network,
        claim.namespace,
        note=f"IPAMClaim {claim.name}",
        problems=problems,
        refused=bool(claim.problems),
    )
