"""Tables in files, for every kind of imports: delimited texts, sheets of workbooks, and tables in a ZIP archive.

A kind says which row is a header (`FindHeader`), and reads the rows below it; it knows its columns, the reader knows
encodings, delimiters, archives and the decoration of cells. Each reading opens the source again, so that the rows of a
file are never in memory as a whole.
"""

from __future__ import annotations

import codecs
import csv
import io
import zipfile
from collections.abc import Callable, Collection, Iterator, Sequence
from contextlib import closing
from dataclasses import dataclass, field
from itertools import dropwhile, islice
from typing import IO, Generic, Protocol, TypeVar

from pools.core import errors, spreadsheet_cells
from pools.core.errors import FieldProblem
from pools.core.spreadsheet_cells import Row
from pools.platform.files import archives, workbooks
from pools.platform.files.archives import file_error

CHUNK = 1 << 16
_UTF16 = (codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)
_UTF32 = (codecs.BOM_UTF32_LE, codecs.BOM_UTF32_BE)

OpenSource = Callable[[], IO[bytes]]

ENCODING_GUESSED = errors.FieldProblem(
    "file",
    "encoding_guessed",
    "the file is not UTF-8; it was read as Windows-1252. Check the names with non-ASCII letters",
)


@dataclass(frozen=True)
class Text:
    """A source of bytes and its encoding; `notes` are the assumptions made."""

    source: OpenSource
    encoding: str
    notes: tuple[errors.FieldProblem, ...] = ()

    def open(self) -> io.TextIOWrapper:
        return io.TextIOWrapper(self.source(), self.encoding, newline="")

    def read(self) -> str:
        with self.open() as stream:
            return stream.read()


def decode(source: OpenSource) -> Text:
    """Detect the encoding: UTF-8, UTF-16 with a byte order mark, else Windows-1252.

    Raises InvalidInput encoding with the position of the undecodable byte.
    """
    with closing(source()) as stream:
        head = stream.read(4)
    if head.startswith(_UTF32):
        raise file_error("encoding", "UTF-32 is not supported; save the file as UTF-8")
    if head.startswith(_UTF16):
        _check(source, "utf-16")
        return Text(source, "utf-16")
    try:
        _check(source, "utf-8")
    except _UndecodableError:
        if head.startswith(codecs.BOM_UTF8):
            raise
        _check(source, "cp1252")
        return Text(source, "cp1252", (ENCODING_GUESSED,))
    return Text(source, "utf-8-sig")


class _UndecodableError(errors.InvalidInput):
    """The bytes cannot be decoded."""


def _check(source: OpenSource, encoding: str) -> None:
    decoder = codecs.getincrementaldecoder(encoding)()
    done = 0
    with closing(source()) as stream:
        while True:
            chunk = stream.read(CHUNK)
            pending = len(decoder.getstate()[0])
            try:
                text = decoder.decode(chunk, final=not chunk)
            except UnicodeDecodeError as error:
                position = done - pending + error.start
                message = (
                    f"unreadable character at byte {position} ({encoding}); save the file as UTF-8"
                )
                raise _UndecodableError.for_field("file", "encoding", message) from None
            if "\0" in text:
                hint = "save it as UTF-8; UTF-16 needs a byte order mark"
                raise file_error("encoding", f"the file contains NUL characters; {hint}")
            if not chunk:
                return
            done += len(chunk)


def read_records(stream: IO[str], delimiter: str) -> Iterator[list[str]]:
    """Yield the records of a delimited text; without a delimiter, each line is a record of one cell.

    Raises InvalidInput csv_syntax, field_too_long.
    """
    if not delimiter:
        yield from ([line.strip()] if line.strip() else [] for line in stream)
        return
    reader = csv.reader(stream, delimiter=delimiter, strict=True)
    try:
        yield from reader
    except csv.Error as error:
        reason = str(error)
        position = f"line {reader.line_num}: "
        if "field larger" in reason:
            message = f"{position}a cell has more than {csv.field_size_limit()} characters; check for a missing quote"
            raise file_error("field_too_long", message) from None
        if "unexpected end" in reason:
            reason = "a quoted cell is not closed"
        raise file_error("csv_syntax", f"{position}{reason}") from None


DELIMITERS = (",", ";", "\t")
LINES = ""  # instead of a delimiter: each line is one cell
_HEADER_WITHIN = 20  # records of a text, including blank ones, and non-blank rows of a sheet
_HEADER_ROW = 1000  # last row of a sheet that is searched
_MOST_NAMED = 12


class Columns(Protocol):
    """What a kind knows of the columns of a table."""

    @property
    def used_columns(self) -> Collection[int]:
        """The columns that are read, from 0."""


LayoutT = TypeVar("LayoutT", bound=Columns)
# Called with the first rows of a table, and the delimiter that they are read with. Returns the place of the header among
# them, from 1, 0 for a list without one, and the layout of the columns; None for what is no table of the kind.
FindHeader = Callable[[Sequence[Sequence[str]], str], "tuple[int, LayoutT] | None"]
_ReadRows = Callable[["frozenset[int] | None"], Iterator[Row]]


@dataclass(frozen=True)
class Table(Generic[LayoutT]):
    """A table: `name` is that of its sheet or member, `above` are its rows up to the header, which is the last of them."""

    name: str
    layout: LayoutT
    above: Sequence[Row]
    read_rows: _ReadRows = field(repr=False)
    declared: int | None = None  # rows, as a workbook says
    notes: tuple[FieldProblem, ...] = ()

    def rows(self, columns: frozenset[int] | None = None) -> Iterator[Row]:
        """Yield the rows below the header with their numbers; other `columns` may be "", None reads all.

        Raises InvalidInput csv_syntax, field_too_long, damaged, zip_bomb, xml_entities.
        """
        last = self.above[-1][0] if self.above else 0
        return dropwhile(lambda row: row[0] <= last, _clean_rows(self.read_rows(columns)))


@dataclass(frozen=True)
class Tables(Generic[LayoutT]):
    """The tables of a file; `unread` names the sheets that are none, `problems` are of members that cannot be read."""

    tables: Sequence[Table[LayoutT]]
    unread: Sequence[str] = ()
    problems: Sequence[FieldProblem] = ()


def list_names(names: Sequence[str]) -> str:
    """Return names as a text, of many the first ones."""
    more = len(names) - _MOST_NAMED
    return ", ".join(names[:_MOST_NAMED]) + (f" and {more} more" if more > 0 else "")


def _clean_rows(rows: Iterator[Row]) -> Iterator[Row]:
    for number, row in rows:
        yield number, row if all(map(str.isascii, row)) else list(map(spreadsheet_cells.clean, row))


def read_tables(content: bytes, find_header: FindHeader[LayoutT]) -> Tables[LayoutT]:
    """Return the tables of a file that is a text or an archive; none if no header is recognised.

    Raises InvalidInput: the codes of archives.check_kind, of texts.decode and of workbooks.open_workbook; csv_syntax,
    field_too_long, nested_archive, and what `find_header` raises.
    """
    archives.check_kind(content)
    if not content.startswith(archives.ZIP):
        table = read_text(decode(lambda: io.BytesIO(content)), find_header)
        return Tables([table] if table else [])
    with archives.open_archive(content) as archive:
        names = archive.namelist()
    if workbooks.is_workbook(names):
        return _read_workbook(content, find_header)
    if "mimetype" in names and any(name.endswith("content.xml") for name in names):
        raise file_error("unsupported_file", "an OpenDocument file; save it as .xlsx or CSV")
    return _read_members(content, find_header)


def read_text(
    text: Text, find_header: FindHeader[LayoutT], name: str = ""
) -> Table[LayoutT] | None:
    """Return the table in a text, by the delimiter with which most columns are recognised; None without one.

    Raises InvalidInput csv_syntax, field_too_long, and what `find_header` raises.
    """
    best: tuple[tuple[bool, int], Table[LayoutT]] | None = None
    problems: list[errors.InvalidInput] = []
    likely: errors.InvalidInput | None = None  # of a delimiter that the text has
    for delimiter in (*DELIMITERS, LINES):
        if best is not None and not delimiter:
            break
        try:
            first = list(islice(_clean_rows(_records(text, delimiter)), _HEADER_WITHIN))
            found = find_header([row for _, row in first], delimiter)
        except errors.InvalidInput as error:
            problems.append(error)
            likely = likely or (error if _has_several_cells(text, delimiter) else None)
            continue
        if found is None:
            continue
        header, layout = found
        rank = header > 0, len(layout.used_columns)
        if best is None or rank > best[0]:
            best = rank, _text_table(text, name, layout, delimiter, first[:header])
    if best is not None:
        return best[1]
    if likely or len(problems) == len(DELIMITERS):
        raise likely or problems[0]
    return None


def _text_table(
    text: Text, name: str, layout: LayoutT, delimiter: str, above: Sequence[Row]
) -> Table[LayoutT]:
    def read_rows(_columns: frozenset[int] | None) -> Iterator[Row]:
        return _records(text, delimiter)

    return Table(name, layout, above, read_rows, notes=text.notes)


def _records(text: Text, delimiter: str) -> Iterator[Row]:
    with archives.translate_errors(), text.open() as stream:
        yield from enumerate(read_records(stream, delimiter), start=1)


def _has_several_cells(text: Text, delimiter: str) -> bool:
    """Return True if the first record of a text has several cells with a delimiter."""
    try:
        return any(len(row) > 1 for _, row in islice(_records(text, delimiter), 1))
    except errors.InvalidInput:
        return False


def _read_workbook(content: bytes, find_header: FindHeader[LayoutT]) -> Tables[LayoutT]:
    book = workbooks.open_workbook(content)
    tables, unread = [], []
    for sheet in book.sheets:
        first = list(islice(_clean_rows(book.rows(sheet, None, last=_HEADER_ROW)), _HEADER_WITHIN))
        found = find_header([row for _, row in first], DELIMITERS[0])
        if found is None:
            unread += [sheet] if first else []
        else:
            tables.append(_sheet_table(book, sheet, found[1], first[: found[0]]))
    return Tables(tables, unread)


def _sheet_table(
    book: workbooks.Workbook, sheet: str, layout: LayoutT, above: Sequence[Row]
) -> Table[LayoutT]:
    def read_rows(columns: frozenset[int] | None) -> Iterator[Row]:
        return book.rows(sheet, columns)

    header = above[-1][0] if above else 0
    merged = list_names(book.merged_cells(sheet, header))
    message = f"{sheet}: merged cells, of which only the first has the value: {merged}"
    notes = (FieldProblem("file", "merged_cells", message),) if merged else ()
    declared = max((book.declared_rows[sheet] or header) - header, 0)
    return Table(sheet, layout, above, read_rows, declared, notes)


def _read_members(content: bytes, find_header: FindHeader[LayoutT]) -> Tables[LayoutT]:
    """Return the tables of an archive; each is recognised by its content."""
    tables: list[Table[LayoutT]] = []
    unread: list[str] = []
    problems: list[FieldProblem] = []
    with archives.open_archive(content) as archive:
        # Stays open for reading the members later; it is in memory only.
        source_archive = zipfile.ZipFile(io.BytesIO(content))
        for member in archive.infolist():
            if member.is_dir() or not member.file_size:
                continue
            with archive.open(member) as stream:
                if stream.read(4).startswith(archives.ZIP):
                    message = "an archive inside the archive; unpack it first"
                    raise file_error("nested_archive", message)
            try:
                table = _read_member(source_archive, member, find_header)
            except errors.InvalidInput as error:
                problems += error.problems
                continue
            if table is None:
                unread.append(member.filename)
            else:
                tables.append(table)
    if problems and not tables:
        raise errors.InvalidInput.all(problems[:1])
    return Tables(tables, unread, problems)


def _read_member(
    archive: zipfile.ZipFile, member: zipfile.ZipInfo, find_header: FindHeader[LayoutT]
) -> Table[LayoutT] | None:
    def source() -> IO[bytes]:
        return archive.open(member)

    with archives.translate_errors():
        return read_text(decode(source), find_header, member.filename)
