"""Files of other registers: CSV and XLSX tables, Infoblox's CSV; each row with the texts of its fields."""

from __future__ import annotations

import contextlib
import io
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from ipaddress import ip_network
from itertools import islice

from pools.core import errors, spreadsheet_cells
from pools.core.register_import import columns, infoblox, tables
from pools.core.register_import.columns import Layout
from pools.platform.files import archives, texts, workbooks
from pools.platform.files.archives import file_error
from pools.platform.imports.lifecycle import Certainty, Recognition

LARGEST = archives.LARGEST
MOST_ROWS = 200_000
_HEADER_WITHIN = 20  # records that are searched for the header
_MOST_NAMED = 12  # columns that a note names
MORE_CELLS = (
    "ends of rows with more cells than the header: a text with the separator in it needs quotes"
)


@dataclass(frozen=True)
class SourceRow:
    """A row of a source: its place, its kind (columns.KINDS), and its texts by field."""

    line: int
    kind: str
    texts: dict[str, str]
    file: str = ""


@dataclass
class Reading:
    """What was read of a source; `notes` say what was assumed or left out.

    `custom_fields` has the names of custom fields by the names of columns that are read as such.
    """

    format: str = ""
    rows: list[SourceRow] = field(default_factory=list)
    notes: list[dict[str, str]] = field(default_factory=list)
    custom_fields: Mapping[str, str] = field(default_factory=dict)  # by name and by label

    def note(self, code: str, message: str) -> None:
        note = {"code": code, "message": message}
        if note not in self.notes:
            self.notes.append(note)


def read_file(name: str, content: bytes, reading: Reading) -> None:
    """Add the rows of a file to the reading. Raises InvalidInput for a file that is no table of a register."""
    archives.check_kind(content)
    before = len(reading.rows)
    if content.startswith(archives.ZIP):
        _read_workbook(name, content, reading)
    else:
        _read_text(name, content, reading)
    if len(reading.rows) == before:
        message = "the file has a header and no rows below it"
        reading.note("no_rows", f"{name}: {message}" if name else message)


def recognise(name: str, content: bytes) -> Recognition:  # noqa: ARG001  # not trusted
    """Return what a file is read as, and by which columns. Raises InvalidInput if it is no table of a register."""
    archives.check_kind(content)
    tables_of_file = _heads(content)
    if not tables_of_file:
        raise _no_header_error()
    header, layout = max(tables_of_file, key=lambda table: _certainty(*table))
    used = sorted({column for numbers in layout.columns.values() for column in numbers})
    evidence = f"the columns {', '.join(header[column] for column in used if column < len(header))}"
    if layout.format == "infoblox":
        evidence = "rows that begin with header-"
    elif layout.is_list:
        evidence = "lines that begin with prefixes or addresses"
    return Recognition(layout.format, _certainty(header, layout), evidence)


def _heads(content: bytes) -> list[tuple[Sequence[str], Layout]]:
    """Return the header, or the first row of a list, and the layout of each table of a file."""
    if not content.startswith(archives.ZIP):
        first, header, layout, _delimiter = _find_table(texts.decode(lambda: io.BytesIO(content)))
        return [(first[max(header - 1, 0)], layout)]
    heads: list[tuple[Sequence[str], Layout]] = []
    book = _open_workbook(content)
    for sheet in book.sheets:
        first = [list(row) for _, row in islice(book.rows(sheet, None), _HEADER_WITHIN)]
        if found := _find_header(first):
            heads.append((first[max(found[0] - 1, 0)], found[1]))
    return heads


def _certainty(header: Sequence[str], layout: Layout) -> Certainty:
    """A sheet may also be one of VMs, but not a list of networks."""
    if layout.format == "infoblox":
        return Certainty.PRODUCT
    if layout.is_list and layout.kind == columns.PREFIX:
        with contextlib.suppress(ValueError):
            ip_network(header[0].strip())
            return Certainty.TABLE
    return Certainty.COLUMNS if layout.format == "spreadsheet" else Certainty.TABLE


def _read_text(name: str, content: bytes, reading: Reading) -> None:
    text = texts.decode(lambda: io.BytesIO(content))
    for note in text.notes:
        reading.note(note.code, note.message)
    _first, header, layout, delimiter = _find_table(text)
    with text.open() as stream:
        records = enumerate(texts.read_records(stream, delimiter), start=1)
        above = list(islice(records, header))
        _read_records(name, records, layout, reading, above)


def _find_table(text: texts.Text) -> tuple[list[list[str]], int, Layout, str]:
    """Return the first records, how many are above the rows, the layout and the delimiter. Raises InvalidInput."""
    best: tuple[list[list[str]], int, Layout, str] | None = None
    problem: errors.InvalidInput | None = None
    for delimiter in texts.DELIMITERS:
        try:
            with text.open() as stream:
                first = list(islice(texts.read_records(stream, delimiter), _HEADER_WITHIN))
        except errors.InvalidInput as error:
            problem = problem or error
            continue
        found = _find_header(first)
        if found is not None and (best is None or len(found[1].columns) > len(best[2].columns)):
            best = (first, *found, delimiter)
    if best is None:
        raise problem or _no_header_error()
    return best


def _open_workbook(content: bytes) -> workbooks.Workbook:
    with archives.open_archive(content) as archive:
        if not workbooks.is_workbook(archive.namelist()):
            raise file_error("unsupported_file", "a ZIP archive; unpack it first")
    return workbooks.open_workbook(content)


def _read_workbook(name: str, content: bytes, reading: Reading) -> None:
    book = _open_workbook(content)
    sheets = 0
    for sheet in book.sheets:
        first = [
            (number, list(row)) for number, row in islice(book.rows(sheet, None), _HEADER_WITHIN)
        ]
        found = _find_header([row for _, row in first])
        place = f"{name}: {sheet}" if len(book.sheets) > 1 else name
        if found is None:
            if first:
                message = (
                    f"the sheet {sheet} has no column of prefixes or addresses, and is not read"
                )
                reading.note("left_out", f"{name}: {message}")
            continue
        sheets += 1
        header, layout = found
        rows = ((number, list(row)) for number, row in book.rows(sheet, None))
        above = list(islice(rows, header))
        _read_records(place, rows, layout, reading, above)
        if merged := book.merged_cells(sheet, header):
            reading.note("merged_cells", f"{place}: {merged}")
    if not sheets:
        raise _no_header_error()


def _no_header_error() -> errors.InvalidInput:
    return file_error(
        "header",
        "no header row found: name the columns as NetBox, phpIPAM or Infoblox do, or for example "
        "prefix, description, tenant; or address, holder, description",
    )


def _find_header(first: Sequence[Sequence[str]]) -> tuple[int, Layout] | None:
    """Return the number of records up to the header, 0 for a list without one, and the layout; None if there is none."""
    best: tuple[int, Layout] | None = None  # of one column, which may be a title above the header
    for number, record in enumerate(first, start=1):
        if infoblox.is_header(record):
            return number - 1, Layout(
                "", "infoblox", dict.fromkeys(map(str, range(len(record))), ())
            )
        layout = columns.recognise(record)
        if layout is not None and len(layout.columns) > 1:
            return number, layout
        if layout is not None and best is None:
            best = number, layout
    if best is not None:
        return best
    layout = _find_list(first)
    return None if layout is None else (0, layout)


def _find_list(first: Sequence[Sequence[str]]) -> Layout | None:
    """Return the layout of a list without header, below titles of one cell; None for a header that nobody knows."""
    for record in first:
        cells = [cell for cell in record if cell.strip()]
        layout = columns.guess(record) if cells else None
        if layout is not None or len(cells) > 1:
            return layout
    return None


def _read_records(
    name: str,
    records: Iterator[tuple[int, Sequence[str]]],
    layout: Layout,
    reading: Reading,
    above: Sequence[tuple[int, Sequence[str]]],
) -> None:
    reading.format = reading.format or layout.format
    left_out: Counter[str] = Counter()
    if layout.format == "infoblox":
        _read_infoblox(name, records, reading, left_out)
    else:
        if layout.kind == columns.ADDRESS:
            for line, row in tables.read_headings([(line, _plain(cells)) for line, cells in above]):
                _add(reading, SourceRow(line, row.kind, row.texts, name))
        _read_table(name, records, layout, reading, left_out)
    for what, count in (+left_out).items():
        reading.note(
            "left_out", f"{name}: not read: {count} {what}" if name else f"not read: {count} {what}"
        )


def _read_table(
    name: str,
    records: Iterator[tuple[int, Sequence[str]]],
    layout: Layout,
    reading: Reading,
    left_out: Counter[str],
) -> None:
    layout = _with_custom_fields(layout, name, reading)
    seen: set[frozenset[tuple[str, str]]] = set()  # prefixes and gateways beside other cells
    for line, record in records:
        if not any(cell.strip() for cell in record):
            continue
        cells = _plain(record)
        left_out[MORE_CELLS] += layout.has_more(cells)
        row = tables.read_row(layout, cells)
        if row.left_out:
            left_out[row.left_out] += 1
        elif other := tables.starts_table(layout, cells, row):
            layout = _with_custom_fields(other, name, reading)
        else:
            for other_row in (tables.take_prefix(layout, row), tables.take_gateway(layout, row)):
                if other_row and (key := frozenset(other_row.texts.items())) not in seen:
                    seen.add(key)
                    _add(reading, SourceRow(line, other_row.kind, other_row.texts, name))
            for part in tables.split_row(row):
                _add(reading, SourceRow(line, part.kind, part.texts, name))


def _plain(cells: Sequence[str]) -> list[str]:
    return [spreadsheet_cells.unescape(str(cell)) for cell in cells]


def _with_custom_fields(layout: Layout, name: str, reading: Reading) -> Layout:
    """Return the layout with columns of custom fields, and note the columns that are not read."""
    layout = layout.with_custom_fields(reading.custom_fields)
    if layout.ignored:
        listed = ", ".join(list(layout.ignored)[:_MOST_NAMED])
        more = len(layout.ignored) - _MOST_NAMED
        suffix = f" and {more} more" if more > 0 else ""
        where = f"{name}: " if name else ""
        reading.note("ignored_columns", f"{where}columns that are not read: {listed}{suffix}")
    return layout


def _add(reading: Reading, row: SourceRow) -> None:
    if len(reading.rows) >= MOST_ROWS:
        raise file_error("too_many_rows", f"an import may have at most {MOST_ROWS:,} rows")
    reading.rows.append(row)


def _read_infoblox(
    name: str,
    records: Iterator[tuple[int, Sequence[str]]],
    reading: Reading,
    left_out: Counter[str],
) -> None:
    """Read the objects of an Infoblox file; each header row says what the rows of its type below it have."""
    layouts: dict[str, Layout | None] = {}
    hosts = infoblox.Hosts()
    for line, record in records:
        cells = _plain(record)
        if infoblox.is_header(cells):
            object_type, layout = infoblox.read_header(cells)
            if layout is not None:
                layout = _with_custom_fields(layout, name, reading)
            layouts[object_type] = layout
            continue
        object_type = cells[0].strip().lower() if cells else ""
        layout = layouts.get(object_type)
        if not any(cell.strip() for cell in cells):
            continue
        if layout is None:
            left_out[f"rows of the type {object_type or '(none)'}"] += 1
            continue
        left_out[MORE_CELLS] += layout.has_more(cells)
        if not _add_objects(
            name, line, infoblox.read_object(object_type, layout, cells), layout, hosts, reading
        ):
            left_out[f"rows of the type {object_type} that the file deletes"] += 1


def _add_objects(
    name: str,
    line: int,
    objects: Sequence[dict[str, str]],
    layout: Layout,
    hosts: infoblox.Hosts,
    reading: Reading,
) -> bool:
    """Add the rows of an Infoblox object that do not join an earlier one; return False if it has none."""
    for values in objects:
        if not hosts.joins(values):
            _add(reading, SourceRow(line, layout.kind, values, name))
    return bool(objects)
