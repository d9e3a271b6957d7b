"""Delimited text files: detection of encoding, delimiter and header, and reading by record.

Each reading opens the source again, so that the rows of a file are never in memory as a whole.
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
from claims.imports.files.archives import file_error
from pools.core import errors

MOST_ROWS = 100_000
MOST_LINES = 1_048_576  # including blank lines; the row limit of a sheet
CHUNK = 1 << 16
_HEADER_WITHIN = (
    10  # records that are searched for the header, including blank, #TYPE and sep= lines
)
_DELIMITERS = (",", ";", "\t")
_UTF16 = (codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)
_UTF32 = (codecs.BOM_UTF32_LE, codecs.BOM_UTF32_BE)
_PREAMBLE = re.compile("#|sep=.?$", re.IGNORECASE)  # sep=, #TYPE and comments

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


@dataclass(frozen=True)
class DelimitedTable:
    """A table in a delimited text; `header` is the record number of the header, 0 without one."""

    text: Text
    delimiter: str  # "" for lines of values with blanks between them
    layout: Layout
    header: int

    def count(self) -> int:
        """Return the number of non-blank rows.

        This reads the whole table, so that a syntax error is reported before the first row is used.
        Raises InvalidInput csv_syntax, field_too_long, too_many_rows.
        """
        total = 0
        for number, row in self.rows():
            total += any(row)
            if total > MOST_ROWS or number > MOST_LINES:
                raise too_many_rows_error()
        return total

    def rows(self) -> Iterator[tables.Row]:
        """Yield the records below the header with their record numbers, counted from 1 in the text."""
        with self.text.open() as stream:
            records = _records(stream, self.delimiter)
            numbered = enumerate(records, start=1)
            rows = islice(numbered, self.header, None)
            if not self.delimiter:
                yield from ((number, columns.split_line(row)) for number, row in rows)
            elif not self.layout.names:
                for number, row in rows:
                    is_comment = bool(row) and _PREAMBLE.match(row[0])
                    yield number, [] if is_comment else self.layout.join_addresses(row)
            else:
                yield from rows


def too_many_rows_error() -> errors.InvalidInput:
    return file_error("too_many_rows", f"a file may have at most {MOST_ROWS:,} rows")


def detect_table(text: Text) -> DelimitedTable | None:
    """Return the table in the text, or None if neither a header nor a list is recognised.

    Raises InvalidInput duplicate_header, csv_syntax, field_too_long.
    """
    candidates: list[DelimitedTable] = []
    problem: errors.InvalidInput | None = None
    widest = 0
    for delimiter in _DELIMITERS:
        try:
            first_records = _first_records(text, delimiter)
            widest = max(widest, *(len(row) for row in first_records), 0)
            header = _find_header(first_records)
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
    return _detect_list(text, widest)


def _detect_list(text: Text, widest: int) -> DelimitedTable | None:
    """Return the text as a list without header, or None."""
    for delimiter in _DELIMITERS if widest > 1 else ():
        for row in _content_rows(_first_records(text, delimiter)):
            layout = columns.guess(row)
            if layout is not None and len(row) > 1 and len(layout.used_columns) > 1:
                return DelimitedTable(text, delimiter, layout, 0)
            break
    for line in _content_rows(_first_records(text, "")):
        if columns.is_list_line(line):
            return DelimitedTable(text, "", columns.LOOSE, 0)
        break
    return None


def _content_rows(rows: Sequence[list[str]]) -> Iterator[list[str]]:
    return (row for row in rows if any(row) and not _PREAMBLE.match(row[0]))


def _find_header(rows: Sequence[list[str]]) -> tuple[int, Layout] | None:
    for number, row in enumerate(rows, start=1):
        layout = columns.recognise(row) if len(row) > 1 else None
        if layout is not None:
            return number, layout
    return None


def _first_records(text: Text, delimiter: str) -> list[list[str]]:
    with text.open() as stream:
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
        position = f"line {reader.line_num}: "
        if "field larger" in reason:
            message = f"{position}a cell has more than {csv.field_size_limit()} characters; check for a missing quote"
            raise file_error("field_too_long", message) from None
        if "unexpected end" in reason:
            reason = "a quoted cell is not closed"
        raise file_error("csv_syntax", f"{position}{reason}") from None
