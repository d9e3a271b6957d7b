"""Files of other registers: CSV and XLSX tables, Infoblox's CSV, objects as JSON or YAML; each row with the texts of its fields."""

import contextlib
import io
import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from ipaddress import ip_network
from typing import Any

from pools.core import spreadsheet_cells
from pools.core.register_import import columns, infoblox, mentions, netbox_objects, tables
from pools.core.register_import.columns import Layout
from pools.core.spreadsheet_cells import Row
from pools.platform import documents
from pools.platform.files import archives, tables as file_tables
from pools.platform.files.archives import file_error
from pools.platform.files.tables import Table, Tables
from pools.platform.imports.lifecycle import Certainty, Recognition

LARGEST = archives.LARGEST
MOST_ROWS = 200_000
_MOST_FIELDS = 500  # of objects that are no NetBox's
_UNLIKE = "cells of the column {}, because another column of the same field counts"
# A table beside others in which nobody knows the columns: its addresses are withheld.
UNREAD = Layout("", "", {})
_YAML_LIST = re.compile(r"(?:---\s+)?(- \w+:\s)")
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
    before = len(reading.rows)
    pages = _read_pages(content)
    if _has_netbox_objects(pages):
        _add_netbox_objects(name, pages, reading)
        return
    result = _tabulate(pages) if pages else _read_tables(content)
    _add_tables(name, result, reading)
    if len(reading.rows) == before:
        message = "the file has a header and no rows below it"
        reading.note("no_rows", f"{name}: {message}" if name else message)


def _add_tables(name: str, result: Tables[Layout], reading: Reading) -> None:
    """Add the rows of tables, and note which are not read; what these name is that of the row before."""
    several = len(result.tables) + len(result.unread) > 1
    for problem in result.problems:
        reading.note(problem.code, problem.message)
    unread_tables = [table for table in result.tables if table.layout is UNREAD]
    for table in result.tables:
        for note in table.notes:
            reading.note(note.code, f"{name}: {note.message}" if table.name else note.message)
        if table.layout is not UNREAD:
            _read_rows(f"{name}: {table.name}" if several else name, table, reading)
    for table in unread_tables if reading.rows else ():
        cells = [("", text, False) for _, row in table.rows() for text in _plain(row)]
        mentions.add(reading.rows[-1].texts, cells, mentions.find_base(table.name))
    for unread in (*result.unread, *(table.name for table in unread_tables)):
        message = f"the table {unread} has no column of prefixes or addresses, and is not read"
        reading.note("left_out", f"{name}: {message}")


def _read_pages(content: bytes) -> list[Any]:
    """Return the pages of a REST API, or the objects, that JSON or YAML has; [] for another file."""
    archives.check_kind(content)
    if content.startswith(archives.ZIP):
        return []
    text = file_tables.decode(lambda: io.BytesIO(content))
    with text.open() as stream:
        start = stream.read(1024).lstrip()
    if start[:1] in {"{", "["}:
        data = documents.load_json_value(text.read(), limit=archives.LARGEST)
    elif list_start := _YAML_LIST.match(start):
        listed = "results:\n" + text.read().lstrip()[list_start.start(1) :]
        data = documents.load_yaml(listed, limit=archives.LARGEST)[0].data
    else:
        return []
    return data if isinstance(data, list) else [data]


def _has_netbox_objects(pages: Sequence[Any]) -> bool:
    return any(map(netbox_objects.read_object, _objects(pages)))


def _is_page(page: Any) -> bool:
    return isinstance(page, dict) and isinstance(page.get("results"), list)


def _objects(pages: Sequence[Any]) -> Iterator[object]:
    """Yield the objects of pages as NetBox, phpIPAM (`data`), PowerShell (`value`) and Infoblox (`result`) write them."""
    for page in pages:
        lists = (
            (page.get(key) for key in ("results", "data", "value", "result"))
            if isinstance(page, dict)
            else ()
        )
        yield from next((items for items in lists if isinstance(items, list)), [page])


def _tabulate(pages: Sequence[Any]) -> Tables[Layout]:
    """Return a table of objects that are not NetBox's, with their fields as columns. Raises InvalidInput."""
    items = [item if isinstance(item, dict) else {} for item in _objects(pages)]
    header = [*dict.fromkeys(name for item in items for name in item)]
    layout = columns.recognise(header) if len(header) <= _MOST_FIELDS else None
    _check_number(len(items))
    if layout is None:
        message = "expected prefixes, ranges or addresses as NetBox's REST API answers them"
        raise file_error("unsupported_document", message)

    def read_rows(_columns: frozenset[int] | None) -> Iterator[Row]:
        for number, item in enumerate(items, start=1):
            yield number, [netbox_objects.read_text(item.get(name)) for name in header]

    return Tables([Table("", layout, [(0, header)], read_rows)])


def _add_netbox_objects(name: str, pages: Sequence[Any], reading: Reading) -> None:
    reading.format = reading.format or "netbox-api"
    following, before = (
        sum(bool(page.get(link)) for page in pages if _is_page(page))
        for link in ("next", "previous")
    )
    if following != before:
        message = "the list of NetBox has other pages, which are not in this file"
        reading.note("more_pages", f"{name}: {message}" if name else message)
    unread = 0
    for number, item in enumerate(_objects(pages), start=1):
        if found := netbox_objects.read_object(item):
            _add(reading, SourceRow(number, *found, name))
        unread += not found
    if unread:
        reading.note(
            "left_out",
            f"{name}: not read: {unread} objects that are no prefixes, ranges or addresses",
        )


def _read_tables(content: bytes) -> Tables[Layout]:
    result = file_tables.read_tables(content, _find_header)
    if all(table.layout is UNREAD for table in result.tables):
        raise file_error(
            "header",
            "no header row found: name the columns as NetBox, phpIPAM or Infoblox do, or for example "
            "prefix, description, tenant; or address, holder, description",
        )
    return result


def recognise(name: str, content: bytes) -> Recognition:  # noqa: ARG001  # not trusted
    """Return what a file is read as, and by which columns. Raises InvalidInput if it is no table of a register."""
    pages = _read_pages(content)
    if _has_netbox_objects(pages):
        return Recognition("netbox-api", Certainty.PRODUCT, "the objects in it")
    result = _tabulate(pages) if pages else _read_tables(content)
    tables_read = [table for table in result.tables if table.layout is not UNREAD]
    table = max(tables_read, key=_certainty)
    layout = table.layout
    header = table.above[-1][1] if table.above else ()
    evidence = f"the columns {', '.join(header[column] for column in sorted(layout.used_columns) if column < len(header))}"
    if layout.format == "infoblox":
        evidence = "rows that begin with header-"
    elif layout.is_list:
        evidence = "lines that begin with prefixes or addresses"
    return Recognition(layout.format, _certainty(table), evidence)


def _certainty(table: Table[Layout]) -> Certainty:
    """A sheet may also be one of VMs, but not a list of networks."""
    layout = table.layout
    if layout.format == "infoblox":
        return Certainty.PRODUCT
    if layout.is_list and layout.kind == columns.PREFIX:
        with contextlib.suppress(ValueError):
            ip_network(next((row for _, row in table.rows() if any(row)), ("",))[0].strip())
            return Certainty.TABLE
    return Certainty.COLUMNS if layout.format == "spreadsheet" else Certainty.TABLE


def _find_header(first: Sequence[Sequence[str]], delimiter: str) -> tuple[int, Layout] | None:
    """Return the number of records up to the header, 0 for a list without one, and the layout; None if there is none."""
    if delimiter == file_tables.LINES:
        return None
    best: tuple[int, Layout] | None = None  # of one column, which may be a title above the header
    for number, record in enumerate(first, start=1):
        if infoblox.is_header(record):
            every = {str(column): (column,) for column in range(len(record))}
            return number - 1, Layout("", "infoblox", every)
        layout = None if columns.has_place(record) else columns.recognise(record)
        if layout is not None and len(layout.columns) > 1:
            return number, layout
        if layout is not None and best is None:
            best = number, layout
    if best is not None:
        return best
    layout = _find_list(first)
    if layout is None and any(map(columns.has_place, first)):
        layout = UNREAD
    return None if layout is None else (0, layout)


def _find_list(first: Sequence[Sequence[str]]) -> Layout | None:
    """Return the layout of a list without header, below titles of one cell; None for a header that nobody knows."""
    for record in first:
        cells = [cell for cell in record if cell.strip()]
        layout = columns.guess(record) if cells else None
        if layout is not None or len(cells) > 1:
            return layout
    return None


def _read_rows(name: str, table: Table[Layout], reading: Reading) -> None:
    layout = table.layout
    reading.format = reading.format or layout.format
    left_out: Counter[str] = Counter()
    if layout.format == "infoblox":
        _read_infoblox(name, table.rows(), reading, left_out)
    else:
        above = [(line, _plain(cells)) for line, cells in table.above]
        if layout.kind == columns.ADDRESS:
            for line, row in tables.read_headings(above):
                _add(reading, SourceRow(line, row.kind, row.texts, name))
        titles = [cell for _, cells in above[:-1] for cell in cells]
        _read_table(name, table.rows(), layout, reading, left_out, titles)
    for what, count in (+left_out).items():
        reading.note(
            "left_out", f"{name}: not read: {count} {what}" if name else f"not read: {count} {what}"
        )


def _read_table(
    name: str,
    records: Iterator[Row],
    layout: Layout,
    reading: Reading,
    left_out: Counter[str],
    titles: Sequence[str],
) -> None:
    layout = _with_custom_fields(layout, name, reading)
    notes = [("", text, False) for text in titles]  # of no row: one beside them has what they name
    base = mentions.find_base(" ".join((name, *titles)))
    seen: set[frozenset[tuple[str, str]]] = set()  # prefixes and gateways beside other cells
    for line, record in records:
        cells = _plain(record)
        if not any(map(str.strip, cells)):
            continue
        left_out[MORE_CELLS] += layout.has_more(cells)
        base = tables.complete(layout, cells, base)
        row = tables.read_row(layout, cells)
        if row.left_out:
            left_out[row.left_out] += 1
            notes += [("", text, False) for text in cells]
            continue
        if other := tables.starts_table(layout, cells, row):
            layout = _with_custom_fields(other, name, reading)
            continue
        left_out.update(map(_UNLIKE.format, layout.unlike(cells)))
        for other_row in (tables.take_prefix(layout, row), *tables.take_gateways(row)):
            if other_row and (key := frozenset(other_row.texts.items())) not in seen:
                seen.add(key)
                _add(reading, SourceRow(line, other_row.kind, other_row.texts, name))
        parts = tables.split_row(row)
        mentions.add(parts[0].texts, [*notes, *layout.others(cells)], base)
        notes = []
        for part in parts:
            _add(reading, SourceRow(line, part.kind, part.texts, name))
    mentions.add(reading.rows[-1].texts if reading.rows else {}, notes, base)


def _plain(cells: Sequence[str]) -> list[str]:
    return [spreadsheet_cells.unescape(str(cell)) for cell in cells]


def _with_custom_fields(layout: Layout, name: str, reading: Reading) -> Layout:
    """Return the layout with columns of custom fields, and note the columns that are not read."""
    layout = layout.with_custom_fields(reading.custom_fields)
    if layout.ignored:
        where = f"{name}: " if name else ""
        listed = file_tables.list_names(list(layout.ignored))
        reading.note("ignored_columns", f"{where}columns that are not read: {listed}")
    return layout


def _add(reading: Reading, row: SourceRow) -> None:
    _check_number(len(reading.rows) + 1)
    reading.rows.append(row)


def _check_number(rows: int) -> None:
    if rows > MOST_ROWS:
        raise file_error("too_many_rows", f"an import may have at most {MOST_ROWS:,} rows")


def _read_infoblox(
    name: str,
    records: Iterator[Row],
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
        left_out.update(map(_UNLIKE.format, layout.unlike(cells)))
        rows = infoblox.read_object(object_type, layout, cells)
        for row in rows:
            if not hosts.joins(row.texts):
                _add(reading, SourceRow(line, row.kind, row.texts, name))
        left_out[f"rows of the type {object_type} that the file deletes"] += not rows
