"""Import files: RVTools, MTV's inventory, PowerCLI, the template, lists, IPPools and IPAMClaims.

The type of a file is detected by its content, never by its name. An unusable file raises InvalidInput with
a code: when it is opened, or while its rows are read if a workbook or an archive shows the error only
then. Errors of single rows are in their problems. Beside it: the import template, a CSV.
"""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field

from claims.core.vm_import import columns, tables, vm_interface
from claims.core.vm_import.columns import ColumnLayout
from claims.core.vm_import.vm_interface import Skipped, VMInterface
from claims.imports.files import documents
from pools.core import spreadsheet_cells
from pools.core.errors import FieldProblem
from pools.core.spreadsheet_cells import Row
from pools.platform.files import archives, texts
from pools.platform.files import tables as file_tables
from pools.platform.files.archives import file_error
from pools.platform.files.tables import Table, Tables
from pools.platform.imports.lifecycle import Certainty, Recognition, Upload

LARGEST = archives.LARGEST
MOST_ROWS = documents.MOST_ROWS
_MOST_INTERFACES = MOST_ROWS  # a row may have several interfaces
_MOST_LINES = 1_048_576  # of a text, including blank lines; the row limit of a sheet
_FAMILIES = {
    columns.VNETWORK: "rvtools",
    columns.VINFO: "rvtools",
    columns.TEMPLATE: "template",
}
_VINFO_ONLY = FieldProblem(
    "file",
    "vinfo_only",
    "vInfo has no MAC addresses, so its rows cannot be imported: export the tab vNetwork",
)
_TEMPLATE_EXAMPLE = (
    *("example-01", "00:50:56:00:00:01", "192.0.2.21/24, 2001:db8::21/64"),
    *("vlan100-prod", "prod", "an example: delete this row"),
)

Source = Callable[[Skipped], Iterator[VMInterface]]
_Tables = Sequence[Table[ColumnLayout]]


@dataclass
class FileReading:
    """A recognised file, ready for reading.

    `total` is the number of rows, if known; for a workbook the one that it declares. `notes` are the
    assumptions made about the file. `skipped` counts the rows without a VM by reason (blank, header,
    template, srm_placeholder, vcls, guest_only_interface) while `rows` is read.
    """

    format: str
    _source: Source
    total: int | None = None
    notes: tuple[FieldProblem, ...] = ()
    layout: ColumnLayout | None = None  # of a table
    skipped: Skipped = field(default_factory=Skipped)

    def rows(self) -> Iterator[VMInterface]:
        """Yield the VM interfaces of the file; each call reads it from the start.

        Raises InvalidInput too_many_rows, damaged, zip_bomb, xml_entities, field_too_long.
        """
        self.skipped.clear()
        for count, row in enumerate(self._source(self.skipped)):
            if count >= _MOST_INTERFACES:
                raise documents.too_many_rows_error()
            yield row


def open_file(
    name: str,  # noqa: ARG001  # not trusted
    data: bytes,
    *,
    already_counted: bool = False,
) -> FileReading:
    """Recognise a file of at most 20 MiB; `name` is the sender's file name.

    A text file is read to its end once to count its rows, unless `already_counted` is set.

    Raises InvalidInput: too_large, empty, encrypted, legacy_format, unsupported_file, macro, zip_bomb,
    damaged, xml_entities, nested_archive, encoding, header, duplicate_header, csv_syntax,
    field_too_long, too_many_rows, and the codes of pools.platform.documents for JSON and YAML.
    """
    archives.check_kind(data)
    if not data.startswith(archives.ZIP):
        text = texts.decode(lambda: io.BytesIO(data))
        if kind := documents.sniff(text):
            document = documents.parse_document(text.read(), kind)
            return FileReading(document.format, document.rows, document.total, text.notes)
    return _reading(
        file_tables.read_tables(data, columns.find_header), already_counted=already_counted
    )


def rows_upload(rows: Sequence[object]) -> Upload:
    """Return rows `{"vm", "mac", "ips"}` of a program as an upload; `network`, `namespace` and `note` are optional."""
    return "", json.dumps({"rows": rows}, ensure_ascii=False).encode()


def recognise(name: str, content: bytes) -> Recognition:
    """Return what a file is read as, and by which columns or objects. Raises InvalidInput as `open_file` does."""
    reading = open_file(name, content, already_counted=True)
    layout = reading.layout
    if layout is None:
        return Recognition(reading.format, Certainty.PRODUCT, "the objects in it")
    names = [layout.names[column] for column in sorted(layout.used_columns) if layout.names]
    evidence = f"the columns {', '.join(names)}" if names else "lines with names and addresses"
    if layout.mac >= 0 and not names:
        evidence = "lines with MAC addresses"
    return Recognition(reading.format, _certainty(layout), evidence)


def _certainty(layout: ColumnLayout) -> Certainty:
    """A table of VMs has their names and MAC addresses; one without MACs may be a register of addresses."""
    if layout.kind in (columns.VNETWORK, columns.VINFO):
        return Certainty.PRODUCT
    has_both = layout.mac >= 0 and (layout.vm >= 0 or not layout.names)
    return Certainty.TABLE if has_both else Certainty.COLUMNS


def _reading(result: Tables[ColumnLayout], *, already_counted: bool) -> FileReading:
    """Return a reading of the tables with the most detailed layout."""
    if not result.tables:
        message = (
            "no header row found: name the columns as in RVTools, PowerCLI or the template, for example "
            "VM, MAC address, IP addresses"
        )
        raise file_error("header", message)
    rank = min(table.layout.rank for table in result.tables)
    best = [table for table in result.tables if table.layout.rank == rank]
    vinfo = [t for t in result.tables if t.layout.kind == columns.VINFO and t.layout.rank > rank]
    total: int | None = None
    if best[0].declared is not None:
        total = sum(table.declared or 0 for table in best) or None
    elif not already_counted:
        total = sum(map(_count, best))
    return FileReading(
        _format(best[0]),
        lambda skipped: _read_rows(best, vinfo, skipped),
        total,
        tuple(dict.fromkeys(_notes(result, best, vinfo))),
        best[0].layout,
    )


def _format(table: Table[ColumnLayout]) -> str:
    kind = table.layout.kind
    container = "xlsx" if table.declared is not None else "zip" if table.name else "csv"
    if kind == columns.TEMPLATE and container == "zip":
        return "template-csv"
    return f"{_FAMILIES[kind]}-{container}" if kind in _FAMILIES else kind


def _notes(result: Tables[ColumnLayout], best: _Tables, vinfo: _Tables) -> Iterator[FieldProblem]:
    """Yield what was assumed of a file, and what of it is not read; of RVTools, which has dozens of other tabs, not these."""
    yield from result.problems
    for table in best:
        yield from table.notes
    if columns_ := list(dict.fromkeys(name for table in best for name in table.layout.unread)):
        message = f"columns that are not read: {file_tables.list_names(columns_)}"
        yield FieldProblem("file", "ignored_columns", message)
    if best[0].layout.kind == columns.VINFO:
        yield _VINFO_ONLY
    others = [t.name for t in result.tables if t not in best and t not in vinfo]
    if not vinfo and best[0].layout.kind not in (columns.VNETWORK, columns.VINFO):
        others += result.unread
    if others:
        message = f"tables that are not read: {file_tables.list_names(others)}"
        yield FieldProblem("file", "ignored_tables", message)


def _count(table: Table[ColumnLayout]) -> int:
    """Return the number of non-blank rows of a text.

    This reads the whole table, so that a syntax error is reported before the first row is used.
    Raises InvalidInput csv_syntax, field_too_long, too_many_rows.
    """
    total = 0
    for number, row in table.rows():
        total += any(row)
        if total > MOST_ROWS or number > _MOST_LINES:
            raise documents.too_many_rows_error()
    return total


def _read_rows(best: _Tables, vinfo: _Tables, skipped: Skipped) -> Iterator[VMInterface]:
    """Yield the interfaces of tables; one without an address is told the address that vInfo has of its VM.

    A VM of which only vInfo has an address is a row, too, so that nobody gets it.
    """
    vms = [vm for table in vinfo for vm in _interfaces(table, _rows(table), Skipped())]
    addresses = {vm.vm: vm.ips[0] for vm in vms if vm.ips}
    names: set[str] = set()
    left = MOST_ROWS

    def limited(rows: Iterator[Row]) -> Iterator[Row]:
        nonlocal left
        for row in rows:
            left -= any(row[1])
            if left < 0:
                raise documents.too_many_rows_error()
            yield row

    for table in best:
        for row in _interfaces(table, limited(_rows(table)), skipped):
            names.add(row.vm)
            yield vm_interface.tell_address(row, addresses.get(row.vm, ""))
    yield from (vm for vm in vms if vm.ips and vm.vm not in names)


def _interfaces(
    table: Table[ColumnLayout], rows: Iterator[Row], skipped: Skipped
) -> Iterator[VMInterface]:
    return tables.read(table.layout, rows, skipped, sheet=_sheet(table))


def _sheet(table: Table[ColumnLayout]) -> str:
    """Return the name of a sheet; of a table in an archive the tab of RVTools that it is."""
    if table.declared is not None:
        return table.name
    return table.layout.kind if table.name and table.layout.rank in (0, 3) else ""


def _rows(table: Table[ColumnLayout]) -> Iterator[Row]:
    return table.rows(table.layout.used_columns)


def template_csv() -> bytes:
    """Return the template as CSV, in UTF-8 with a byte order mark for Excel."""
    stream = io.StringIO(newline="")
    writer = csv.writer(stream)
    for row in (columns.TEMPLATE_HEADER, _TEMPLATE_EXAMPLE):
        writer.writerow([spreadsheet_cells.escape(text) for text in row])
    return stream.getvalue().encode("utf-8-sig")
