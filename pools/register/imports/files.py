"""Files of other registers: CSV and XLSX tables, Infoblox's CSV; each row with the texts of its fields."""

from __future__ import annotations

import io
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from itertools import islice

from pools.core import errors, spreadsheet_cells
from pools.core.register_import import columns
from pools.core.register_import.columns import Layout
from pools.platform.files import archives, texts, workbooks
from pools.platform.files.archives import file_error

LARGEST = archives.LARGEST
MOST_ROWS = 200_000
_HEADER_WITHIN = 10  # records that are searched for the header
_MOST_NAMED = 12  # columns that a note names


@dataclass(frozen=True)
class SourceRow:
    """A row of a source: its place, its kind (columns.KINDS), and its texts by field."""

    line: int
    kind: str
    texts: dict[str, str]
    file: str = ""


@dataclass
class Reading:
    """What was read of a source; `notes` say what was assumed or left out."""

    format: str = ""
    rows: list[SourceRow] = field(default_factory=list)
    notes: list[dict[str, str]] = field(default_factory=list)

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


def _read_text(name: str, content: bytes, reading: Reading) -> None:
    text = texts.decode(lambda: io.BytesIO(content))
    for note in text.notes:
        reading.note(note.code, note.message)
    best: tuple[int, Layout, str] | None = None
    problem: errors.InvalidInput | None = None
    for delimiter in texts.DELIMITERS:
        try:
            with text.open() as stream:
                first = list(islice(texts.read_records(stream, delimiter), _HEADER_WITHIN))
        except errors.InvalidInput as error:
            problem = problem or error
            continue
        found = _find_header(first)
        if found is not None and (best is None or len(found[1].columns) > len(best[1].columns)):
            best = (*found, delimiter)
    if best is None:
        raise problem or _no_header_error()
    header, layout, delimiter = best
    with text.open() as stream:
        records = enumerate(texts.read_records(stream, delimiter), start=1)
        _read_records(name, islice(records, header, None), layout, reading)


def _read_workbook(name: str, content: bytes, reading: Reading) -> None:
    with archives.open_archive(content) as archive:
        if not workbooks.is_workbook(archive.namelist()):
            raise file_error("unsupported_file", "a ZIP archive; unpack it first")
    book = workbooks.open_workbook(content)
    sheets = 0
    for sheet, part in book.sheets:
        first = [list(row) for _, row in islice(book.rows(part, None), _HEADER_WITHIN)]
        numbers = [number for number, _ in islice(book.rows(part, None), _HEADER_WITHIN)]
        found = _find_header(first)
        if found is None:
            continue
        sheets += 1
        header = numbers[found[0] - 1] if found[0] else 0
        rows = ((number, list(row)) for number, row in book.rows(part, None) if number > header)
        _read_records(f"{name}: {sheet}" if len(book.sheets) > 1 else name, rows, found[1], reading)
    if not sheets:
        raise _no_header_error()


def _no_header_error() -> errors.InvalidInput:
    return file_error(
        "header",
        "no header row found: name the columns as NetBox, phpIPAM or Infoblox do, or for example "
        "prefix, description, tenant; or address, holder, description",
    )


def _find_header(first: Sequence[Sequence[str]]) -> tuple[int, Layout] | None:
    """Return the number of the header record, 0 for a list without one, and the layout; None if there is none."""
    for number, record in enumerate(first, start=1):
        if columns.is_infoblox_header(record):
            return number - 1, Layout("", "infoblox", {"": 0})
        layout = columns.recognise(record)
        if layout is not None:
            return number, layout
    for record in first:
        if any(record):
            layout = columns.guess(record)
            return (0, layout) if layout is not None else None
    return None


def _read_records(
    name: str, records: Iterator[tuple[int, Sequence[str]]], layout: Layout, reading: Reading
) -> None:
    reading.format = reading.format or layout.format
    if layout.format == "infoblox":
        _read_infoblox(name, records, reading)
        return
    _note_ignored(layout, name, reading)
    for line, cells in records:
        if any(cell.strip() for cell in cells):
            _add(reading, SourceRow(line, layout.kind, layout.values(_plain(cells)), name))


def _plain(cells: Sequence[str]) -> list[str]:
    return [spreadsheet_cells.unescape(str(cell)) for cell in cells]


def _note_ignored(layout: Layout, name: str, reading: Reading) -> None:
    if layout.ignored:
        listed = ", ".join(layout.ignored[:_MOST_NAMED])
        more = len(layout.ignored) - _MOST_NAMED
        suffix = f" and {more} more" if more > 0 else ""
        where = f"{name}: " if name else ""
        reading.note("ignored_columns", f"{where}columns that are not read: {listed}{suffix}")


def _add(reading: Reading, row: SourceRow) -> None:
    if len(reading.rows) >= MOST_ROWS:
        raise file_error("too_many_rows", f"an import may have at most {MOST_ROWS:,} rows")
    reading.rows.append(row)


def _read_infoblox(
    name: str, records: Iterator[tuple[int, Sequence[str]]], reading: Reading
) -> None:
    """Read the objects of an Infoblox file; each HEADER row says what the rows of its type below it have."""
    layouts: dict[str, Layout | None] = {}
    left_out: Counter[str] = Counter()
    for line, record in records:
        cells = _plain(record)
        if columns.is_infoblox_header(cells):
            object_type, layout = columns.infoblox_layout(cells)
            layouts[object_type] = layout
            if layout is not None:
                _note_ignored(layout, name, reading)
        elif any(cell.strip() for cell in cells):
            object_type = cells[0].strip().lower()
            left_out[object_type] += _add_objects(
                name, line, layouts.get(object_type), cells, reading
            )
    for object_type, count in left_out.items():
        if count:
            kind = object_type or "(none)"
            message = f"rows of the type {kind} hold no address space and are not read: {count}"
            reading.note("left_out", message)


def _add_objects(
    name: str, line: int, layout: Layout | None, cells: Sequence[str], reading: Reading
) -> int:
    """Add the rows of one object; return 1 if its type is not read."""
    if layout is None:
        return 1
    for values in columns.split_addresses(layout.values(cells)):
        if cells[0].strip().lower().endswith("container"):
            values["status"] = "container"
        _add(reading, SourceRow(line, layout.kind, values, name))
    return 0
