"""Tables as text: encoding, delimiter and header recognised, then read record by record.

Everything is opened anew for each pass, so that a file is never held as rows.
"""

from __future__ import annotations

import codecs
import csv
import io
import re
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing
from dataclasses import dataclass
from itertools import islice
from typing import IO

from claims.core.vm_import import columns, tables
from claims.core.vm_import.columns import Layout
from claims.imports.files.archives import refused
from pools.core import errors

MOST_ROWS = 100_000
MOST_LINES = 1_048_576  # with blank ones, as of a sheet
CHUNK = 1 << 16
_HEADER_WITHIN = 10  # records, with blank ones, #TYPE and sep= lines
_DELIMITERS = (",", ";", "\t")
_UTF16 = (codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)
_UTF32 = (codecs.BOM_UTF32_LE, codecs.BOM_UTF32_BE)
_PREAMBLE = re.compile("#|sep=.?$", re.IGNORECASE)  # also #TYPE, and remarks in lists

Open = Callable[[], IO[bytes]]

GUESSED = errors.FieldProblem(
    "file",
    "encoding_guessed",
    "the file is not UTF-8; it was read as Windows-1252. Check the names with letters beyond ASCII",
)


@dataclass(frozen=True)
class Text:
    """Bytes, and how they become text; `notes` say what was guessed."""

    source: Open
    encoding: str
    notes: tuple[errors.FieldProblem, ...] = ()

    def opened(self) -> io.TextIOWrapper:
        return io.TextIOWrapper(self.source(), self.encoding, newline="")

    def whole(self) -> str:
        with self.opened() as stream:
            return stream.read()


def decoded(source: Open) -> Text:
    """UTF-8 with or without a byte order mark, UTF-16 with one, else Windows-1252.

    Raises InvalidInput encoding, with the place of the byte.
    """
    with closing(source()) as stream:
        head = stream.read(4)
    if head.startswith(_UTF32):
        raise refused("encoding", "UTF-32 is not read; save the file as UTF-8")
    if head.startswith(_UTF16):
        _check(source, "utf-16")
        return Text(source, "utf-16")
    try:
        _check(source, "utf-8")
    except _UndecodableError:
        if head.startswith(codecs.BOM_UTF8):
            raise
        _check(source, "cp1252")
        return Text(source, "cp1252", (GUESSED,))
    return Text(source, "utf-8-sig")


class _UndecodableError(errors.InvalidInput):
    """The bytes are no text of the encoding."""


def _check(source: Open, encoding: str) -> None:
    decoder = codecs.getincrementaldecoder(encoding)()
    done = 0
    with closing(source()) as stream:
        while True:
            chunk = stream.read(CHUNK)
            pending = len(decoder.getstate()[0])
            try:
                text = decoder.decode(chunk, final=not chunk)
            except UnicodeDecodeError as error:
                place = done - pending + error.start
                message = f"byte {place} is no {encoding} text; save the file as UTF-8"
                raise _UndecodableError.for_field("file", "encoding", message) from None
            if "\0" in text:
                hint = "save it as UTF-8; UTF-16 needs a byte order mark"
                raise refused("encoding", f"the file contains NUL characters; {hint}")
            if not chunk:
                return
            done += len(chunk)


@dataclass(frozen=True)
class DelimitedTable:
    """A delimited text; `header` is the number of records up to the header, 0 without one."""

    text: Text
    delimiter: str  # "" for lines of values with blanks between them
    layout: Layout
    header: int

    def count(self) -> int:
        """Rows with something in them. Reads all of it once, so that a syntax error is told before
        the first row is. Raises InvalidInput csv_syntax, field_too_long, too_many_rows."""
        total = 0
        for number, row in self.rows():
            total += any(row)
            if total > MOST_ROWS or number > MOST_LINES:
                raise too_many_rows()
        return total

    def rows(self) -> Iterator[tables.Row]:
        """The records below the header, with their numbers from 1 in the whole text."""
        with self.text.opened() as stream:
            records = _records(stream, self.delimiter)
            numbered = enumerate(records, start=1)
            rows = islice(numbered, self.header, None)
            if not self.delimiter:
                yield from ((number, columns.split_line(row)) for number, row in rows)
            elif not self.layout.names:
                for number, row in rows:
                    remark = bool(row) and _PREAMBLE.match(row[0])
                    yield number, [] if remark else self.layout.join_addresses(row)
            else:
                yield from rows


def too_many_rows() -> errors.InvalidInput:
    return refused("too_many_rows", f"a file may have at most {MOST_ROWS:,} rows")


def table(text: Text) -> DelimitedTable | None:
    """The table that the text is; None when neither a header nor a list is recognised.

    Raises InvalidInput duplicate_header, csv_syntax, field_too_long.
    """
    candidates: list[DelimitedTable] = []
    problem: errors.InvalidInput | None = None
    widest = 0
    for delimiter in _DELIMITERS:
        try:
            first = _first(text, delimiter)
            widest = max(widest, *(len(row) for row in first), 0)
            header = _header(first)
        except errors.InvalidInput as error:
            problem = problem or error
            continue
        if header is not None:
            candidates.append(DelimitedTable(text, delimiter, header[1], header[0]))
    if candidates:
        return max(
            candidates,
            key=lambda candidate: (len(candidate.layout.used_columns), candidate.delimiter == ","),
        )
    if problem is not None:
        raise problem
    return _list(text, widest)


def _list(text: Text, widest: int) -> DelimitedTable | None:
    """A list without header."""
    for delimiter in _DELIMITERS if widest > 1 else ():
        for row in _content(_first(text, delimiter)):
            layout = columns.guess(row)
            if layout is not None and len(row) > 1 and len(layout.used_columns) > 1:
                return DelimitedTable(text, delimiter, layout, 0)
            break
    for line in _content(_first(text, "")):
        if columns.is_list_line(line):
            return DelimitedTable(text, "", columns.LOOSE, 0)
        break
    return None


def _content(rows: Sequence[list[str]]) -> Iterator[list[str]]:
    return (row for row in rows if any(row) and not _PREAMBLE.match(row[0]))


def _header(rows: Sequence[list[str]]) -> tuple[int, Layout] | None:
    for number, row in enumerate(rows, start=1):
        layout = columns.recognise(row) if len(row) > 1 else None
        if layout is not None:
            return number, layout
    return None


def _first(text: Text, delimiter: str) -> list[list[str]]:
    with text.opened() as stream:
        return list(islice(_records(stream, delimiter), _HEADER_WITHIN))


def _records(stream: IO[str], delimiter: str) -> Iterator[list[str]]:
    if not delimiter:
        yield from ([line.strip()] if line.strip() else [] for line in stream)
        return
    reader = csv.reader(stream, delimiter=delimiter, strict=True)
    try:
        yield from reader
    except csv.Error as error:
        reason = str(error)
        where = f"line {reader.line_num}: "
        if "field larger" in reason:
            message = f"{where}a cell has more than {csv.field_size_limit()} characters; is a quote missing?"
            raise refused("field_too_long", message) from None
        if "unexpected end" in reason:
            reason = "a quote is opened and never closed"
        raise refused("csv_syntax", f"{where}{reason}") from None
