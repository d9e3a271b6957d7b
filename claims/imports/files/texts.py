"""Delimited text files of VMs: detection of delimiter and header, and reading by record."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import islice

from claims.core.vm_import import columns
from claims.core.vm_import.columns import ColumnLayout
from pools.core import errors
from pools.core.spreadsheet_cells import Row
from pools.platform.files.archives import file_error
from pools.platform.files.texts import DELIMITERS, Text, read_records

MOST_ROWS = 100_000
MOST_LINES = 1_048_576  # including blank lines; the row limit of a sheet
_HEADER_WITHIN = (
    10  # records that are searched for the header, including blank, #TYPE and sep= lines
)
_PREAMBLE = re.compile("#|sep=.?$", re.IGNORECASE)  # sep=, #TYPE and comments


@dataclass(frozen=True)
class DelimitedTable:
    """A table in a delimited text; `header` is the record number of the header, 0 without one."""

    text: Text
    delimiter: str  # "" for lines of values with blanks between them
    layout: ColumnLayout
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

    def rows(self) -> Iterator[Row]:
        """Yield the records below the header with their record numbers, counted from 1 in the text."""
        with self.text.open() as stream:
            records = read_records(stream, self.delimiter)
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
    for delimiter in DELIMITERS:
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
    for delimiter in DELIMITERS if widest > 1 else ():
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


def _find_header(rows: Sequence[list[str]]) -> tuple[int, ColumnLayout] | None:
    for number, row in enumerate(rows, start=1):
        layout = columns.recognise(row) if len(row) > 1 else None
        if layout is not None:
            return number, layout
    return None


def _first_records(text: Text, delimiter: str) -> list[list[str]]:
    with text.open() as stream:
        return list(islice(read_records(stream, delimiter), _HEADER_WITHIN))
