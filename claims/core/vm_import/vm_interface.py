"""A network interface of a VM as read from a file of any format, and the name that MTV gives to the VM.

The rules are those of Forklift's util.ChangeVmName (pkg/controller/plan/util): the length of a DNS
label, lower case, characters that DNS-1123 forbids removed from each part.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
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
    they are remarks.
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


def problem(field: str, code: str, message: str, value: object = "") -> FieldProblem:
    return FieldProblem(field, code, message, errors.display_value(value) if value else "")


MAC_MISSING = problem(
    "mac", "mac_missing", "the MAC address is missing, and nothing else identifies the interface"
)
NO_ADDRESS = problem("ips", "no_address", "the file has no address for this interface")


def add_missing_problems(
    mac: str, ips: Sequence[str], problems: Sequence[FieldProblem]
) -> tuple[tuple[FieldProblem, ...], bool]:
    """Add the problems of a missing MAC or address; return the problems, and True to refuse the row."""
    all_problems = tuple(problems)
    if not ips:
        all_problems = (*all_problems, NO_ADDRESS)
    return (all_problems, False) if mac else ((*all_problems, MAC_MISSING), True)


def tell_address(row: VMInterface, address: str) -> VMInterface:
    """Return the row of an interface without an address with the one that the file has of its VM as a proposal."""
    if not address or NO_ADDRESS not in row.problems:
        return row
    message = f"the file has no address for this interface, but {address} for its VM: enter it if it is this one's"
    told = FieldProblem("ips", NO_ADDRESS.code, message, "")
    problems = tuple(told if problem == NO_ADDRESS else problem for problem in row.problems)
    return replace(row, problems=problems)


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
