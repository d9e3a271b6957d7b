"""What a file says of one interface of one VM, whatever file it is."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from pools.core import errors
from pools.core.errors import FieldProblem

MOST_NAMES = 100  # of what is left out for one reason


class Skipped(dict[str, int]):
    """How much of a file is no VM's interface, by reason; `names` are the first VMs of each."""

    def __init__(self) -> None:
        super().__init__()
        self.names: dict[str, list[str]] = {}

    def add(self, reason: str, vm: str = "") -> None:
        self[reason] = self.get(reason, 0) + 1
        names = self.names.setdefault(reason, [])
        if vm and vm not in names and len(names) < MOST_NAMES:
            names.append(vm)

    def clear(self) -> None:
        super().clear()
        self.names.clear()


@dataclass(frozen=True, slots=True)
class VMInterface:
    """One network interface of one VM.

    `row` counts from 1: the row of a table with its header, the place in a list of objects. `mac` is
    as the source has it; `ips` are texts, in canonical form where they can be read, with a prefix
    length where the file has one. `problems` are what the reading found; with `refused` nothing can
    be made of the row as it is, else they are only told.
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
    return FieldProblem(field, code, message, errors.shown(value) if value else "")


MAC_MISSING = problem(
    "mac", "mac_missing", "there is no MAC address, and nothing else names the NIC"
)
NO_ADDRESS = problem("ips", "no_address", "the file has no address for this interface")


def lacking(
    mac: str, ips: Sequence[str], problems: Sequence[FieldProblem]
) -> tuple[tuple[FieldProblem, ...], bool]:
    """The problems together with those of what is absent, and whether the row is refused for it."""
    all_problems = tuple(problems)
    if not ips:
        all_problems = (*all_problems, NO_ADDRESS)
    return (all_problems, False) if mac else ((*all_problems, MAC_MISSING), True)
