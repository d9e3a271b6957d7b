"""Import files: RVTools, MTV's inventory, PowerCLI, the template, lists, IPPools and IPAMClaims.

The type of a file is detected by its content, never by its name. An unusable file raises InvalidInput with
a code: when it is opened, or while its rows are read if a workbook or an archive shows the error only
then. Errors of single rows are in their problems.
"""

from __future__ import annotations

import io
import zipfile
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import islice
from typing import IO, BinaryIO

from claims.core.vm_import import columns, tables, vm_interface
from claims.core.vm_import.columns import ColumnLayout
from claims.core.vm_import.vm_interface import Skipped, VMInterface
from claims.imports.files import documents, templates, texts
from pools.core import errors
from pools.core.spreadsheet_cells import Row
from pools.platform.files import archives, workbooks
from pools.platform.files.archives import file_error
from pools.platform.files.texts import decode
from pools.platform.imports.lifecycle import Certainty, Recognition

__all__ = [
    "LARGEST",
    "MOST_ROWS",
    "FileReading",
    "from_rows",
    "from_text",
    "open_file",
    "recognise",
    "template_csv",
]

LARGEST = archives.LARGEST
MOST_ROWS = texts.MOST_ROWS
MOST_INTERFACES = MOST_ROWS  # a row may have several interfaces
template_csv = templates.template_csv

_HEADER_WITHIN = 10  # non-blank rows that are searched for the header
_HEADER_ROW = 1000  # last row that is searched
_MOST_NAMED = 12  # columns that a note names
_FAMILIES = {
    columns.VNETWORK: "rvtools",
    columns.VINFO: "rvtools",
    columns.TEMPLATE: "template",
}
VINFO_ONLY = errors.FieldProblem(
    "file",
    "vinfo_only",
    "vInfo has no MAC addresses, so its rows cannot be imported: export the tab vNetwork",
)

Source = Callable[[Skipped], Iterator[VMInterface]]


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
    notes: tuple[errors.FieldProblem, ...] = ()
    layout: ColumnLayout | None = None  # of a table
    skipped: Skipped = field(default_factory=Skipped)

    def rows(self) -> Iterator[VMInterface]:
        """Yield the VM interfaces of the file; each call reads it from the start.

        Raises InvalidInput too_many_rows, damaged, zip_bomb, xml_entities, field_too_long.
        """
        self.skipped.clear()
        for count, row in enumerate(self._source(self.skipped)):
            if count >= MOST_INTERFACES:
                raise texts.too_many_rows_error()
            yield row


def open_file(
    name: str,  # noqa: ARG001  # not trusted
    content: bytes | BinaryIO,
    *,
    already_counted: bool = False,
) -> FileReading:
    """Recognise a file of at most 20 MiB; `name` is the sender's file name.

    A text file is read to its end once to count its rows, unless `already_counted` is set.

    Raises InvalidInput: too_large, empty, encrypted, legacy_format, unsupported_file, macro, zip_bomb,
    damaged, xml_entities, nested_archive, encoding, header, duplicate_header, csv_syntax,
    field_too_long, too_many_rows, and the codes of pools.platform.documents for JSON and YAML.
    """
    data = content if isinstance(content, bytes) else content.read(LARGEST + 1)
    archives.check_kind(data)
    return (
        _archive(data)
        if data.startswith(archives.ZIP)
        else _text(data, already_counted=already_counted)
    )


def from_text(text: str) -> FileReading:
    """Recognise a pasted text: a table, JSON, YAML, or lines of values separated by blanks."""
    try:
        data = text.encode()
    except UnicodeEncodeError as error:
        message = f"character {error.start} is half of a surrogate pair"
        raise file_error("encoding", message) from None
    archives.check_kind(data)
    return _text(data)


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


def from_rows(rows: Sequence[object]) -> FileReading:
    """Return a reading of rows `{"vm", "mac", "ips"}`, numbered from 1.

    `network`, `namespace` and `note` are optional. Raises InvalidInput wrong_type, too_many_rows.
    """
    if not isinstance(rows, list | tuple):
        raise errors.InvalidInput.for_field("rows", "wrong_type", "a list is expected", rows)
    if len(rows) > MOST_ROWS:
        raise texts.too_many_rows_error()
    return FileReading("rows", lambda _: documents.from_rows(rows), len(rows))


def _text(data: bytes, *, already_counted: bool = False) -> FileReading:
    text = decode(lambda: io.BytesIO(data))
    kind = documents.sniff(text)
    if kind:
        document = documents.parse_document(text.read(), kind)
        return FileReading(document.format, document.rows, document.total, text.notes)
    table = texts.detect_table(text)
    if table is None:
        raise _no_header_error()
    total = None if already_counted else table.count()
    return _reading([_SourceTable(table.layout, "", table.rows)], "csv", total, text.notes)


def _no_header_error() -> errors.InvalidInput:
    message = (
        "no header row found: name the columns as in RVTools, PowerCLI or the template, for example "
        "VM, MAC address, IP addresses"
    )
    return file_error("header", message)


@dataclass(frozen=True)
class _SourceTable:
    """A sheet of a workbook, or a table of an archive."""

    layout: ColumnLayout
    sheet: str
    rows: Callable[[], Iterator[Row]]
    notes: tuple[errors.FieldProblem, ...] = ()


def _reading(
    source_tables: Sequence[_SourceTable],
    container: str,
    total: int | None = None,
    notes: tuple[errors.FieldProblem, ...] = (),
) -> FileReading:
    """Return a reading of the tables with the most detailed layout; `container` is csv, xlsx or zip."""
    if not source_tables:
        raise _no_header_error()
    rank = min(source_table.layout.rank for source_table in source_tables)
    best = [source_table for source_table in source_tables if source_table.layout.rank == rank]
    kind = best[0].layout.kind
    for source_table in best:
        notes += tuple(note for note in source_table.notes if note not in notes)
    if unread := list(dict.fromkeys(name for table in best for name in table.layout.unread)):
        more = f" and {len(unread) - _MOST_NAMED} more" if len(unread) > _MOST_NAMED else ""
        message = f"columns that are not read: {', '.join(unread[:_MOST_NAMED])}{more}"
        notes += (errors.FieldProblem("file", "ignored_columns", message),)
    if kind == columns.VINFO:
        notes += (VINFO_ONLY,)
    others = [table for table in source_tables if table.layout.kind == columns.VINFO != kind]
    return FileReading(
        _format(kind, container),
        lambda skipped: _read_parts(best, others, skipped),
        total,
        notes,
        best[0].layout,
    )


def _format(kind: str, container: str) -> str:
    if kind == columns.TEMPLATE and container == "zip":
        return "template-csv"
    return f"{_FAMILIES[kind]}-{container}" if kind in _FAMILIES else kind


def _read_parts(
    source_tables: Iterable[_SourceTable], others: Iterable[_SourceTable], skipped: Skipped
) -> Iterator[VMInterface]:
    """Yield the interfaces of tables; one without an address is told the address that `others` have of its VM."""
    rows_left = MOST_ROWS
    vms = (vm for table in others for vm in tables.read(table.layout, table.rows(), Skipped()))
    addresses = {vm.vm: vm.ips[0] for vm in vms if vm.ips}

    def limit_rows(rows: Iterator[Row]) -> Iterator[Row]:
        nonlocal rows_left
        for row in rows:
            rows_left -= any(row[1])
            if rows_left < 0:
                raise texts.too_many_rows_error()
            yield row

    for source_table in source_tables:
        rows = limit_rows(source_table.rows())
        for row in tables.read(source_table.layout, rows, skipped, sheet=source_table.sheet):
            yield vm_interface.tell_address(row, addresses.get(row.vm, ""))


def _archive(data: bytes) -> FileReading:
    with archives.open_archive(data) as archive:
        names = archive.namelist()
    if workbooks.is_workbook(names):
        return _workbook(data)
    if "mimetype" in names and any(name.endswith("content.xml") for name in names):
        raise file_error("unsupported_file", "an OpenDocument file; save it as .xlsx or CSV")
    return _tables(data)


def _workbook(data: bytes) -> FileReading:
    book = workbooks.open_workbook(data)
    parts, counts = [], []
    for sheet in book.sheets:
        header = _sheet_header(book.rows(sheet, None, last=_HEADER_ROW))
        if header is not None:
            number, layout = header
            merged = book.merged_cells(sheet, number)
            note = errors.FieldProblem("file", "merged_cells", f"{sheet}: {merged}")
            rows = _rows_below_header(book, sheet, number, layout)
            parts.append(_SourceTable(layout, sheet, rows, (note,) if merged else ()))
            counts.append((layout.rank, (book.declared_rows[sheet] or number) - number))
    reading = _reading(parts, "xlsx")
    best = min(part.layout.rank for part in parts)
    reading.total = max(sum(count for rank, count in counts if rank == best), 0) or None
    return reading


def _sheet_header(rows: Iterator[Row]) -> tuple[int, ColumnLayout] | None:
    """Return the number of the header row (0 for a list without header) and the layout, or None."""
    first = list(islice(rows, _HEADER_WITHIN))
    for number, row in first:
        layout = columns.recognise(row)
        if layout is not None:
            return number, layout
    layout = columns.guess(first[0][1]) if first else None
    return (0, layout) if layout is not None else None


def _rows_below_header(
    book: workbooks.Workbook, sheet: str, header: int, layout: ColumnLayout
) -> Callable[[], Iterator[Row]]:
    return lambda: (row for row in book.rows(sheet, layout.used_columns) if row[0] > header)


def _tables(data: bytes) -> FileReading:
    """Return a reading of an archive of tables; each table is recognised by its content."""
    tables_of_archive: list[tuple[texts.DelimitedTable, _SourceTable]] = []
    problems: list[errors.FieldProblem] = []
    with archives.open_archive(data) as archive:
        # Stays open for reading the members later; it is in memory only.
        source_archive = zipfile.ZipFile(io.BytesIO(data))
        for member in archive.infolist():
            if member.is_dir() or not member.file_size:
                continue
            with archive.open(member) as stream:
                if stream.read(4).startswith(archives.ZIP):
                    message = "an archive inside the archive; unpack it first"
                    raise file_error("nested_archive", message)
            try:
                tables_of_archive += _member(source_archive, member)
            except errors.InvalidInput as error:
                problems += error.problems
    if problems and not tables_of_archive:
        raise errors.InvalidInput.all(problems[:1])
    reading = _reading(
        [source_table for _, source_table in tables_of_archive], "zip", notes=tuple(problems)
    )
    best = min(source_table.layout.rank for _, source_table in tables_of_archive)
    with archives.translate_errors():
        reading.total = sum(
            table.count()
            for table, source_table in tables_of_archive
            if source_table.layout.rank == best
        )
    return reading


def _member(
    archive: zipfile.ZipFile, member: zipfile.ZipInfo
) -> list[tuple[texts.DelimitedTable, _SourceTable]]:
    def source() -> IO[bytes]:
        return archive.open(member)

    with archives.translate_errors():
        text = decode(source)
        table = texts.detect_table(text)
    if table is None:
        return []

    def rows() -> Iterator[Row]:
        with archives.translate_errors():
            yield from table.rows()

    sheet = table.layout.kind if table.layout.rank in (0, 3) else ""
    return [(table, _SourceTable(table.layout, sheet, rows, text.notes))]
