"""Text files: detection of the encoding, and reading of delimited records.

Each reading opens the source again, so that the rows of a file are never in memory as a whole.
"""

import codecs
import csv
import io
from collections.abc import Callable, Iterator
from contextlib import closing
from dataclasses import dataclass
from typing import IO

from pools.core import errors
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
