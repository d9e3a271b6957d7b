"""A network interface of a VM as read from a file of any format, and the name that MTV gives to the VM.

The rules are those of Forklift's util.ChangeVmName (pkg/controller/plan/util): the length of a DNS
label, lower case, characters that DNS-1123 forbids removed from each part.
"""

import re
from dataclasses import dataclass, replace

from pools.core import errors
from pools.core.errors import FieldProblem

MAX_NAMES = 100  # VMs stored for each reason to skip


class Skipped(dict[str, int]):
    """Number of skipped items of a file by reason; `names` are the first VMs of each reason."""

    def __init__(self) -> None:
        super().__init__()
        self.names: dict[str, list[str]] = {}

    def add(self, reason: str, vm: str = "") -> None:
        self[reason] = self.get(reason, 0) + 1
        names = self.names.setdefault(reason, [])
        if vm and vm not in names and len(names) < MAX_NAMES:
            names.append(vm)

    def clear(self) -> None:
        super().clear()
        self.names.clear()


@dataclass(frozen=True, slots=True)
class VMInterface:
    """A network interface of a VM, with the strings of its file, or of the user who corrected it.

    `row` counts from 1: the row of a table including its header, or the position in a list of objects.
    `mac` is the string of the source. `ips` are strings, in canonical form if they are valid, with a
    prefix length if the file has one. If `refused`, the `problems` make the row unusable; otherwise
    they are remarks. `origins` are those of the addresses, in their order, if the file has them. `vm_id` is the VM's in
    its source, where VMs of several folders may have one name.
    """

    row: int
    vm: str
    mac: str
    ips: tuple[str, ...]
    port_group: str = ""
    namespace: str = ""
    sheet: str = ""
    note: str = ""
    problems: tuple[FieldProblem, ...] = ()
    refused: bool = False
    origins: tuple[str, ...] = ()
    vm_id: str = ""


def problem(field: str, code: str, message: str, value: object = "") -> FieldProblem:
    return FieldProblem(field, code, message, errors.display_value(value) if value else "")


MAC_MISSING = problem(
    "mac", "mac_missing", "the MAC address is missing, and nothing else identifies the interface"
)
NO_ADDRESS = problem("ips", "no_address", "the file has no address for this interface")


def tell_address(row: VMInterface, address: str) -> VMInterface:
    """Return the row of an interface without an address with the one that the file has of its VM as a proposal."""
    if not address or NO_ADDRESS not in row.problems:
        return row
    message = f"the file has no address for this interface, but {address} for its VM: enter it if it is this one's"
    told = FieldProblem("ips", NO_ADDRESS.code, message, address)
    problems = tuple(told if problem == NO_ADDRESS else problem for problem in row.problems)
    return replace(row, problems=problems)


# Of vSphere, oVirt, Hyper-V, Nutanix and OpenStack, and of people.
_POWERED_OFF = {
    *(
        "poweredoff",
        "off",
        "down",
        "shutoff",
        "shutdown",
        "stopped",
        "suspended",
        "saved",
        "paused",
    ),
    *("ausgeschaltet", "aus", "éteint", "arrêté", "apagado", "apagada"),
}


def tell_power(row: VMInterface, state: str) -> VMInterface:
    """Return the row of a VM that is powered off with a remark: it has no running addresses, but keeps its configured ones."""
    state = state.strip()
    if state.lower().replace(" ", "") not in _POWERED_OFF:
        return row
    message = f"the VM does not run ({state[:32]})"
    message += (
        ": it keeps the addresses that it had" if row.ips else ", so nothing reports its addresses"
    )
    return replace(row, problems=(*row.problems, problem("ips", "powered_off", message)))


# By vSphere's origin of an address: the first that an interface has is its address; `linklayer` is SLAAC's, `random` the
# temporary one of RFC 8981.
_ORIGINS = ("manual", "dhcp", "linklayer", "random")


def settle_origins(row: VMInterface) -> VMInterface:
    """Return the row without addresses of a less lasting origin than another of their family, and with the origins in its note.

    They are noted as `origin manual`, with the addresses if they differ.
    """
    if not any(row.origins):
        return row
    plain = [ip.partition("/")[0] for ip in row.ips]
    ranks = [
        _ORIGINS.index(o) if (o := origin.lower()) in _ORIGINS else None for origin in row.origins
    ]
    best: dict[bool, int] = {}
    for ip, rank in zip(plain, ranks, strict=True):
        if rank is not None:
            best[":" in ip] = min(best.get(":" in ip, rank), rank)
    kept, problems = [], []
    for index, (ip, rank) in enumerate(zip(plain, ranks, strict=True)):
        if rank is None or rank == (first := best[":" in ip]):
            kept.append(index)
            continue
        message = (
            f"{ip} was left out: its origin is {_ORIGINS[rank]},"
            f" and the interface has one of the origin {_ORIGINS[first]}"
        )
        problems.append(problem("ips", "origin_set_aside", message, ip))
    pairs = [(plain[index], row.origins[index][:32]) for index in kept if row.origins[index]]
    origins = dict.fromkeys(origin for _, origin in pairs)
    note = "".join(f"origin {origin}" for origin in origins)
    if len(origins) > 1:
        note = f"origin {', '.join(f'{origin} ({ip})' for ip, origin in pairs)}"[:500]
    return replace(
        row,
        ips=tuple(row.ips[index] for index in kept),
        origins=tuple(row.origins[index] for index in kept),
        note=", ".join(filter(None, (row.note, note))),
        problems=(*row.problems, *problems),
    )


MAX_LENGTH = 63
_TO_DASH = str.maketrans(dict.fromkeys("_+* /\\", "-"))
_FORBIDDEN = re.compile("[^a-z0-9-]")
_DASHES = re.compile("-+")


def sanitize(name: str) -> str:
    """Return the name in the cluster, or "" if no character is left.

    In that case Forklift generates `vm-` and four random characters.
    """
    parts = (_part(part) for part in name.lower().strip(".-").split("."))
    joined = ".".join(part for part in parts if part)
    return joined[:MAX_LENGTH].strip(".-")


def _part(text: str) -> str:
    text = _FORBIDDEN.sub("", text.translate(_TO_DASH))
    return _DASHES.sub("-", text).strip("-")[:MAX_LENGTH].strip("-")
