"""Reads the rows of a table as interfaces, one by one; only those that may be merged are held in memory."""

import dataclasses
import re
from collections.abc import Iterable, Iterator, Sequence

from claims.core.vm_import import cells, columns, vm_interface
from claims.core.vm_import.columns import ColumnLayout
from claims.core.vm_import.vm_interface import Skipped, VMInterface, problem
from pools.core import spreadsheet_cells
from pools.core.errors import FieldProblem
from pools.core.spreadsheet_cells import Row


def read(
    layout: ColumnLayout, rows: Iterable[Row], skipped: Skipped, *, sheet: str = ""
) -> Iterator[VMInterface]:
    """Yield the interfaces in the rows below the header.

    Rows without a VM are counted in `skipped` by reason (blank, header, template, srm_placeholder,
    vcls).
    """
    table = _TableReader(layout, skipped, sheet)
    if not layout.names:
        rows = ((number, _list_row(layout, row)) for number, row in rows)
    interfaces: Iterator[VMInterface] = (
        row for numbered_row in rows for row in table.interfaces(*numbered_row)
    )
    if layout.kind not in (columns.VNETWORK, columns.VINFO) and "mac" in layout.roles:
        interfaces = _merge_interfaces(interfaces)
    return map(vm_interface.settle_origins, interfaces)


def _list_row(layout: ColumnLayout, row: Sequence[str]) -> Sequence[str]:
    """Return a row of a list without header: a line in its columns, an empty one for a comment."""
    if layout is columns.LOOSE:
        return columns.split_line(row)
    return () if columns.is_comment(row) else layout.join_addresses(row)


def _merge_interfaces(rows: Iterable[VMInterface]) -> Iterator[VMInterface]:
    """Merge the rows of one VM, MAC and network, wherever they stand: PowerCLI and people write a row for each address."""
    merged: list[VMInterface] = []
    places: dict[tuple[str, ...], int] = {}
    for row in rows:
        key = (row.vm, row.mac, row.port_group, row.namespace)
        place = places.get(key) if row.vm and row.mac else None
        # Bounded, because each merge copies the values of all rows before.
        if place is not None and _size(merged[place]) < cells.MAX_IN_A_CELL:
            merged[place] = _merge(merged[place], row)
        else:
            places[key] = len(merged)
            merged.append(row)
    yield from merged


def _size(row: VMInterface) -> int:
    return len(row.ips) + len(row.problems)


def _merge(previous: VMInterface, other: VMInterface) -> VMInterface:
    origins = dict(zip(previous.ips, previous.origins, strict=False))
    origins = dict(zip(other.ips, other.origins, strict=False)) | origins
    ips = tuple(dict.fromkeys((*previous.ips, *other.ips)))
    problems = dict.fromkeys((*previous.problems, *other.problems))
    if ips:
        problems.pop(vm_interface.NO_ADDRESS, None)
    return dataclasses.replace(
        previous,
        ips=ips,
        note=previous.note
        if other.note in previous.note
        else f"{previous.note}, {other.note}".removeprefix(", "),
        problems=tuple(problems),
        refused=previous.refused or other.refused,
        origins=tuple(origins.get(ip, "") for ip in ips) if origins else (),
    )


_FLAGS = (("template", "template"), ("placeholder", "srm_placeholder"))  # role, reason to skip


class _TableReader:
    """Reads the rows of one table; holds the values that all rows need."""

    def __init__(self, layout: ColumnLayout, skipped: Skipped, sheet: str) -> None:
        self.layout = layout
        self.skipped = skipped
        self.sheet = sheet
        self.least = max(layout.used_columns) + 1

    def interfaces(self, number: int, row: Sequence[str]) -> Iterable[VMInterface]:
        """Return the interfaces of a row: none, one, or several for a row with joined values."""
        layout = self.layout
        extra: tuple[FieldProblem, ...] = ()
        if len(row) < self.least:
            row = (*row, *[""] * (self.least - len(row)))
        elif len(row) > layout.width and any(row[layout.width :]):
            message = f"the row has more than the {layout.width} cells of the header"
            extra = (problem("", "too_many_cells", message),)
        vm, mac = layout.cell(row, "vm"), layout.cell(row, "mac")
        if reason := self._reason(row, vm, mac):
            self.skipped.add(reason, vm.strip())
            return ()
        if type(mac) is str:
            mac = cells.clean_mac(mac)
            if len(mac) > 17 and len(parts := cells.split_cell(mac)) > 1:
                return self._several(number, row, parts[: cells.MAX_IN_A_CELL], extra)
        ips = cells.parse_addresses(*layout.addresses(row), prefixes=self._prefixes(row))
        return (self._interface(number, row, mac, ips, layout.cell(row, "network"), extra),)

    def _reason(self, row: Sequence[str], vm: str, mac: str) -> str:
        """Return the reason to skip the row, or ""."""
        for role, reason in _FLAGS:
            value = self.layout.cell(row, role)
            if value and value != "False" and cells.is_true(value):
                return reason
        if vm[:4] == "vCLS":
            return "vcls"
        if not vm and not mac and not any(cell.strip() for cell in row):
            return "blank"
        if self.layout.names and self._is_header(row):
            return "header"
        return ""

    def _is_header(self, row: Sequence[str]) -> bool:
        names = self.layout.names
        return all(row[column] == names[column] for column in self.layout.roles.values())

    def _interface(
        self,
        number: int,
        row: Sequence[str],
        mac: str,
        ips: cells.Addresses,
        network: str,
        extra: tuple[FieldProblem, ...] = (),
    ) -> VMInterface:
        layout = self.layout
        problems = list(extra)
        vm = self._text("vm", layout.cell(row, "vm"), problems)
        network = self._text("port_group", network, problems)
        namespace = self._text("namespace", layout.cell(row, "namespace"), problems)
        remarks: list[FieldProblem] = []
        note = self._text("note", layout.cell(row, "note"), remarks)
        if remarks and remarks[0].code != "too_long":
            problems, remarks = [*problems, *remarks], []
        interface = cells.read_interface(
            number,
            vm,
            mac,
            ips,
            problems=problems,
            remarks=remarks,
            port_group=network,
            namespace=namespace,
            sheet=self.sheet,
            note=note,
            origins=self._origins(row, ips.ips),
            vm_id=str(layout.cell(row, "id")).strip(),
        )
        return vm_interface.tell_power(interface, layout.cell(row, "power"))

    def _text(self, name: str, text: str, problems: list[FieldProblem]) -> str:
        if not text:
            return ""
        value, wrong = cells.parse_text(name, text)
        if wrong is not None:
            problems.append(wrong)
        if name in ("vm", "port_group") and self.layout.kind != columns.TEMPLATE:
            return cells.decode_name(value)
        return value

    def _prefixes(self, row: Sequence[str]) -> list[str]:
        prefix = self.layout.cell(row, "prefix")
        return [spreadsheet_cells.whole_number(part) for part in cells.split_cell(prefix)]

    def _origins(self, row: Sequence[str], ips: Sequence[str]) -> tuple[str, ...]:
        """Return the origin of each address; () if the file has none."""
        origins = cells.split_cell(self.layout.cell(row, "origin"))
        if not origins:
            return ()
        return tuple(origins) if len(origins) == len(ips) else (", ".join(origins),) * len(ips)

    def _several(
        self, number: int, row: Sequence[str], macs: list[str], extra: tuple[FieldProblem, ...]
    ) -> Iterator[VMInterface]:
        """Yield the interfaces of a row with joined cells."""
        layout = self.layout
        shares = _shares(layout.addresses(row), self._prefixes(row), len(macs))
        networks = _as_many(layout.cell(row, "network"), len(macs))
        for mac, ips, name in zip(macs, shares, networks, strict=True):
            yield self._interface(number, row, mac, ips, name, extra)


def _shares(texts: Sequence[str], prefixes: Sequence[str], count: int) -> list[cells.Addresses]:
    """Return the addresses of each of `count` interfaces.

    Addresses and MACs are paired in order if their numbers are equal; otherwise the assignment is
    ambiguous, which is a problem of all interfaces.
    """
    groups = texts[0].split("|") if len(texts) == 1 else []
    if len(groups) == count:
        group_prefixes = prefixes if len(prefixes) == count else list(prefixes[:1]) * count
        return [
            cells.parse_addresses(group, prefixes=group_prefixes[index : index + 1])
            for index, group in enumerate(groups)
        ]
    whole = cells.parse_addresses(*texts, prefixes=prefixes)
    families = [[ip for ip in whole.ips if (":" in ip) == six] for six in (False, True)]
    if whole.unread or any(len(same) not in (0, count) for same in families):
        listed = ", ".join(whole.ips)
        message = f"ambiguous: {count} interfaces share these addresses: {listed[:500]}"
        wrong = problem("ips", "ambiguous_addresses", message, listed)
        return [cells.Addresses(whole.ips, (*whole.problems, wrong), unread=True)] * count
    return [
        cells.Addresses(tuple(same[index] for same in families if same), whole.problems)
        for index in range(count)
    ]


def _as_many(text: str, count: int) -> list[str]:
    parts = [part.strip() for part in re.split(r"[|,;\n]", text)]
    return parts if len(parts) == count else [text] * count
