"""XLSX workbooks, read row by row and restricted to the required columns.

Expat reads the sheets directly: openpyxl's read-only mode builds an object for each cell, keeps an element
of each row, trusts the declared size of a sheet, and does not distinguish a text `=1` from a formula. A
document type, and with it any entity, is refused in every part.
"""

from __future__ import annotations

import posixpath
import re
import zipfile
from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import IO
from xml.etree.ElementTree import Element, ParseError
from xml.parsers import expat

from defusedxml import DefusedXmlException, ElementTree

from pools.core import spreadsheet_cells as cells
from pools.platform.files import archives
from pools.platform.files.archives import file_error

CHUNK = 1 << 16
LAST_ROW = 1_048_576
LONGEST_CELL = 131_072  # characters, as for CSV; the limit of Excel is 32,767
_DIGITS = "0123456789"
_DATE_FORMATS = {*range(14, 23), *range(27, 37), *range(45, 48), *range(50, 59)}  # ECMA-376 18.8.30
_LITERALS = re.compile(r'"[^"]*"|\\.|\[[^\[\]]*\]')
_ESCAPED = re.compile("_x(0009|000[aAdD])_")
_EPOCH = datetime(1899, 12, 30)  # noqa: DTZ001  # a spreadsheet has no time zones
_LARGEST_WHOLE = 10**15


@dataclass
class Workbook:
    """A workbook: its sheets (name, part), shared strings and the numbers of its date styles."""

    content: bytes
    sheets: list[tuple[str, str]]
    texts: list[str] = field(default_factory=list)
    dates: frozenset[str] = frozenset()

    def rows(
        self, part: str, column_numbers: frozenset[int] | None, *, last: int = LAST_ROW
    ) -> Iterator[cells.Row]:
        """Yield the non-blank rows of a sheet with their numbers, and stop soon after the row `last`.

        Columns outside of `column_numbers` are ""; None reads all columns.
        """
        with archives.open_archive(self.content) as archive:
            reading = _Sheet(self, column_numbers)
            with archive.open(part) as stream:
                for _ in _chunks(reading.parser, stream):
                    if reading.rows:
                        yield from reading.rows
                        reading.rows.clear()
                    if reading.number > last:
                        break
            yield from reading.rows

    def count(self, part: str) -> int:
        """Return the number of rows of a sheet, including blank rows.

        The rows are counted in the bytes, at a fraction of the cost of parsing them.
        """
        row_count, tail = 0, b""
        with archives.open_archive(self.content) as archive, archive.open(part) as stream:
            while chunk := stream.read(CHUNK * 4):
                buffer = tail + chunk
                row_count += buffer.count(b"<row ") + buffer.count(b":row ")
                tail = buffer[-4:]
        return row_count


def is_workbook(names: list[str]) -> bool:
    """Return True if the members of an archive are those of an Office document."""
    return "[Content_Types].xml" in names


def open_workbook(content: bytes) -> Workbook:
    """Open a workbook without macros.

    Raises InvalidInput macro, unsupported_file, damaged, xml_entities, zip_bomb, encrypted.
    """
    with archives.open_archive(content) as archive:
        names = archive.namelist()
        _check_members(archive, names)
        part = next((name for name in names if name.endswith("xl/workbook.xml")), "")
        if not part:
            raise file_error(
                "unsupported_file", "the file is not a workbook; save the table as .xlsx"
            )
        folder = posixpath.dirname(part)
        book = Workbook(content, _sheets(archive, part, folder))
        for name, read in (
            ("sharedStrings.xml", _read_shared_strings),
            ("styles.xml", _read_styles),
        ):
            if f"{folder}/{name}" in names:
                read(book, archive, f"{folder}/{name}")
        return book


def _check_members(archive: zipfile.ZipFile, names: list[str]) -> None:
    if any(name.lower().endswith("vbaproject.bin") for name in names):
        raise file_error("macro", "the workbook has macros; save it as .xlsx without them")
    if "xl/workbook.bin" in names:
        raise file_error("unsupported_file", "a binary workbook (.xlsb); save it as .xlsx")
    if b"macroenabled" in archive.read("[Content_Types].xml").lower():
        raise file_error("macro", "the workbook may have macros; save it as .xlsx")


def _tree(archive: zipfile.ZipFile, name: str) -> Element:
    try:
        return ElementTree.fromstring(archive.read(name), forbid_dtd=True)
    except DefusedXmlException:
        raise _document_type_error() from None
    except (ParseError, LookupError, ValueError) as error:
        raise file_error("damaged", f"{name} is not valid XML: {error}") from None


def _document_type_error() -> Exception:
    return file_error("xml_entities", "the workbook has a document type, which is not allowed")


def _local_name(name: str) -> str:
    return name.rpartition("}")[2]


def _sheets(archive: zipfile.ZipFile, part: str, folder: str) -> list[tuple[str, str]]:
    members = set(archive.namelist())
    relations = f"{folder}/_rels/{posixpath.basename(part)}.rels"
    targets = {}
    for relation in _tree(archive, relations) if relations in members else ():
        if relation.get("TargetMode") != "External":
            target = posixpath.normpath(posixpath.join("/" + folder, relation.get("Target", "")))
            targets[relation.get("Id", "")] = target.lstrip("/")
    sheets = []
    for element in _tree(archive, part).iter():
        if _local_name(element.tag) == "sheet":
            ids = [value for key, value in element.items() if _local_name(key) == "id"]
            target = targets.get(ids[0], "") if ids else ""
            if target in members and archives.STREAMED.search(target):
                sheets.append((element.get("name", "")[:31], target))
    return sheets


def _read_styles(book: Workbook, archive: zipfile.ZipFile, name: str) -> None:
    """Collect the numbers of the cell styles that display a number as a date or a time."""
    dates = {str(number) for number in _DATE_FORMATS}
    date_styles = set()
    for part in _tree(archive, name):
        for index, element in enumerate(part):
            kind, number = _local_name(part.tag), element.get("numFmtId", "")
            if kind == "numFmts" and _shows_date(element.get("formatCode", "")):
                dates.add(number)
            elif kind == "cellXfs" and number in dates:
                date_styles.add(str(index))
    book.dates = frozenset(date_styles)


def _shows_date(code: str) -> bool:
    return bool(set(_LITERALS.sub("", code).lower()) & set("dmyhs"))


def _read_shared_strings(book: Workbook, archive: zipfile.ZipFile, name: str) -> None:
    reading = _SharedStrings(book.texts)
    with archive.open(name) as stream:
        for _ in _chunks(reading.parser, stream):
            pass


def _chunks(parser: expat.XMLParserType, stream: IO[bytes]) -> Iterator[None]:
    try:
        while chunk := stream.read(CHUNK):
            parser.Parse(chunk, False)
            yield
        parser.Parse(b"", True)
    except (expat.ExpatError, LookupError) as error:
        raise file_error("damaged", f"a part of the workbook is not valid XML: {error}") from None


class _PartReader:
    """An event-based reader of a part; subclasses match local names, without namespace prefix."""

    def __init__(self) -> None:
        self.parser = expat.ParserCreate()
        self.parser.buffer_text = True
        self.parser.StartDoctypeDeclHandler = self._doctype
        self.pieces: list[str] = []
        self._local_names: dict[str, str] = {}

    def _doctype(self, *_: object) -> None:
        raise _document_type_error()

    def local_name(self, name: str) -> str:
        local_name = self._local_names.get(name)
        if local_name is None:
            local_name = name.rpartition(":")[2]
            if len(self._local_names) < 1000:
                self._local_names[name] = local_name
        return local_name

    def listen(self) -> None:
        self.parser.CharacterDataHandler = self.pieces.append

    def text(self) -> str:
        """Stop collecting and return the collected text, with Excel's escapes decoded."""
        self.parser.CharacterDataHandler = None
        text = "".join(self.pieces)
        self.pieces.clear()
        if len(text) > LONGEST_CELL:
            raise file_error("field_too_long", f"a cell has more than {LONGEST_CELL} characters")
        if "_x00" in text:
            text = _ESCAPED.sub(lambda match: chr(int(match[1], 16)), text)
        return text


class _SharedStrings(_PartReader):
    def __init__(self, texts: list[str]) -> None:
        super().__init__()
        self.texts = texts
        self._phonetic = False
        self.parser.StartElementHandler = self._start
        self.parser.EndElementHandler = self._end

    def _start(self, name: str, _: object) -> None:
        name = self.local_name(name)
        if name == "t" and not self._phonetic:
            self.listen()
        elif name == "rPh":
            self._phonetic = True

    def _end(self, name: str) -> None:
        name = self.local_name(name)
        if name == "t":
            self.parser.CharacterDataHandler = None
        elif name == "si":
            self.texts.append(self.text())
        elif name == "rPh":
            self._phonetic = False


class _Sheet(_PartReader):
    """A reader of a sheet's rows; the code that feeds the parser empties `rows`."""

    def __init__(self, book: Workbook, column_numbers: frozenset[int] | None) -> None:
        super().__init__()
        self.rows: list[cells.Row] = []
        self._book = book
        self._column_numbers = column_numbers
        self._columns: dict[str, int] = {}
        self._width = max(column_numbers, default=-1) + 1 if column_numbers is not None else 0
        self.number = 0
        self._row: list[str] = []
        self._any = False
        self._column = -1
        self._in_cell = False  # in a cell of a required column
        self._kind = self._style = ""
        self._formula = self._phonetic = False
        self.parser.StartElementHandler = self._start
        self.parser.EndElementHandler = self._end

    def _start(self, name: str, attributes: dict[str, str]) -> None:
        if name not in ("c", "v", "t", "is"):
            name = self.local_name(name)
        if name == "c":
            self._begin_cell(attributes)
        elif self._in_cell:
            if name == "v" or (name == "t" and not self._phonetic):
                self.listen()
            elif name == "f":
                self._formula = True
            elif name == "rPh":
                self._phonetic = True
        elif name == "row":
            self._begin_row(attributes.get("r", ""))

    def _begin_row(self, number: str) -> None:
        is_number = number.isascii() and number.isdigit() and len(number) < 8
        self.number = int(number) if is_number else self.number + 1
        if not 0 < self.number <= LAST_ROW:
            raise file_error("damaged", f"a sheet has at most {LAST_ROW:,} rows")
        self._row = [""] * self._width
        self._any = False
        self._column = -1

    def _begin_cell(self, attributes: dict[str, str]) -> None:
        reference = attributes.get("r")
        if reference:
            letters = reference.rstrip(_DIGITS)
            column = self._columns.get(letters)
            if column is None:
                column = self._columns[letters] = _column(letters)
        else:
            column = self._column + 1
        self._column = column
        column_numbers = self._column_numbers
        if column in column_numbers if column_numbers is not None else column < cells.MAX_COLUMNS:
            self._in_cell = True
            self._kind = attributes.get("t", "n")
            self._style = attributes.get("s", "")
            self._formula = False

    def _end(self, name: str) -> None:
        if name not in ("c", "v", "t", "is"):
            name = self.local_name(name)
        if self._in_cell:
            if name == "c":
                self._in_cell = self._phonetic = False
                if self.pieces or self._formula:
                    self._store()
            elif name in ("v", "t"):
                self.parser.CharacterDataHandler = None
            elif name == "rPh":
                self._phonetic = False
        elif name == "row" and self._any:
            self.rows.append((self.number, self._row))

    def _store(self) -> None:
        text = self.text()
        kind = self._kind
        if self._formula:
            text = cells.Formula(text or "=")
        elif kind == "s":
            text = self._shared(text)
        elif kind == "n":
            text = cells.Date(_date(text)) if self._style in self._book.dates else _number(text)
        elif kind == "d":
            text = cells.Date(text)
        elif kind == "b":
            text = "True" if text.strip() == "1" else "False"
        elif kind == "e":
            text = cells.Failure(text)
        row = self._row
        if self._column >= len(row):
            row.extend([""] * (self._column + 1 - len(row)))
        row[self._column] = text
        self._any = self._any or bool(text)

    def _shared(self, text: str) -> str:
        try:
            index = int(text)
            return self._book.texts[index] if index >= 0 else ""
        except (ValueError, IndexError):
            raise file_error("damaged", "a cell refers to a missing shared string") from None


def _column(letters: str) -> int:
    number = 0
    if len(letters) > 3 or not letters.isascii() or not letters.isalpha():
        raise file_error("damaged", f"{letters[:10]} is not a column name")
    for letter in letters.upper():
        number = number * 26 + ord(letter) - 64
    return number - 1


def _number(text: str) -> cells.Number:
    """Return a whole number without decimal point and exponent, as a spreadsheet displays it."""
    if not text.strip(_DIGITS):
        return cells.Number(text)
    try:
        value = float(text)
    except ValueError:
        return cells.Number(text)
    is_whole = value.is_integer() and abs(value) < _LARGEST_WHOLE
    return cells.Number(int(value) if is_whole else text)


def _date(text: str) -> str:
    try:
        timestamp = _EPOCH + timedelta(days=float(text))
    except (ValueError, OverflowError):
        return text
    return timestamp.isoformat(sep=" ").removesuffix(" 00:00:00")
