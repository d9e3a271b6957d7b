"""XLSX workbooks, read row by row by openpyxl within the limits of archives.py.

A cell keeps what it is (a number, a date, a formula, an error), because a value that a spreadsheet changed is
refused and not guessed. The size that a sheet declares is not believed.
"""

import datetime
import io
import re
import zipfile
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import openpyxl
from defusedxml import DefusedXmlException
from openpyxl.cell.read_only import EMPTY_CELL

from pools.core import errors, spreadsheet_cells as cells
from pools.platform.files import archives
from pools.platform.files.archives import file_error

LAST_ROW = 1_048_576
LONGEST_CELL = 131_072  # characters, as for CSV; the limit of Excel is 32,767
_ESCAPED = re.compile("_x(0009|000[aAdD])_")
_CHUNK, _LONGEST_TAG = 1 << 20, 100
_MERGED = re.compile(rb'mergeCell ref="([A-Z]{1,3}([0-9]{1,7}):[A-Z]{1,3}([0-9]{1,7}))"')
_MOST_MERGED = 10_000  # that are counted
_MOST_CELLS = 100_000_000  # of a sheet that is read with all columns, the blank ones included
_LARGEST_WHOLE = 10**15
_Sheet = Any  # openpyxl's ReadOnlyWorksheet


class Workbook:
    """A workbook that is open for reading."""

    def __init__(self, content: bytes) -> None:
        self._content = content
        self._sheets = _load(content, data_only=False)
        self.sheets = list(self._sheets)  # their names
        # As the file declares it, for the progress of an import only.
        self.declared_rows = {name: sheet.max_row for name, sheet in self._sheets.items()}
        for sheet in self._sheets.values():
            sheet.reset_dimensions()

    def rows(
        self, name: str, column_numbers: frozenset[int] | None, *, last: int = LAST_ROW
    ) -> Iterator[cells.Row]:
        """Yield the non-blank rows of a sheet with their numbers, up to the row `last`.

        Columns outside of `column_numbers` are ""; None reads all columns.
        """
        width = None if column_numbers is None else max(column_numbers, default=0) + 1
        wanted = None if column_numbers is None else sorted(column_numbers)
        computed: Iterator[tuple[int, tuple[object, ...]]] | None = None
        number_of_cells = 0
        with _translated_errors():
            for number, row in enumerate(self._sheets[name].iter_rows(max_col=width), start=1):
                if number > LAST_ROW:
                    raise file_error("damaged", f"a sheet has at most {LAST_ROW:,} rows")
                if number > last:
                    break
                # A sheet may have a million blank rows, each with 16,384 columns.
                number_of_cells += len(row) if wanted is None else 0
                if number_of_cells > _MOST_CELLS:
                    raise file_error("too_large", f"a sheet has at most {_MOST_CELLS:,} cells")
                found = {at: text for at, cell in _filled(row, wanted) if (text := _text(cell))}
                if any(isinstance(text, cells.Formula) for text in found.values()):
                    computed = computed or self._computed(name, width)
                    values = next(values for at, values in computed if at == number)
                    found = {at: _with_value(text, values[at]) for at, text in found.items()}
                if any(found.values()):
                    yield number, [found.get(at, "") for at in range(len(row))]

    def merged_cells(self, name: str, header: int) -> list[str]:
        """Return which cells below the header are merged over several rows, such as `A2:A4`.

        Only the first of merged cells has the value, and openpyxl does not say so of a sheet that it reads row by row.
        """
        refs: dict[str, None] = {}
        end = b""
        with (
            _translated_errors(),
            zipfile.ZipFile(io.BytesIO(self._content)) as archive,
            archive.open(self._sheets[name]._worksheet_path) as stream,
        ):
            while len(refs) < _MOST_MERGED and (chunk := stream.read(_CHUNK)):
                for match in _MERGED.finditer(end + chunk):
                    first, last = int(match[2]), int(match[3])
                    if header < first < last:
                        refs[match[1].decode()] = None
                end = chunk[-_LONGEST_TAG:]
        return [*refs]

    def _computed(self, name: str, width: int | None) -> Iterator[tuple[int, tuple[object, ...]]]:
        """Yield each row with the values that its formulas had when the workbook was saved."""
        sheet = _load(self._content, data_only=True)[name]
        sheet.reset_dimensions()
        return enumerate(sheet.iter_rows(max_col=width, values_only=True), start=1)


def is_workbook(names: list[str]) -> bool:
    """Return True if the members of an archive are those of an Office document."""
    return "[Content_Types].xml" in names


def open_workbook(content: bytes) -> Workbook:
    """Open a workbook without macros.

    Raises InvalidInput macro, unsupported_file, damaged, xml_entities, zip_bomb, encrypted.
    """
    with archives.open_archive(content) as archive:
        _check_members(archive, archive.namelist())
    return Workbook(content)


def _check_members(archive: zipfile.ZipFile, names: list[str]) -> None:
    if any(name.lower().endswith("vbaproject.bin") for name in names):
        raise file_error("macro", "the workbook has macros; save it as .xlsx without them")
    if "xl/workbook.bin" in names:
        raise file_error("unsupported_file", "a binary workbook (.xlsb); save it as .xlsx")
    if b"macroenabled" in archive.read("[Content_Types].xml").lower():
        raise file_error("macro", "the workbook may have macros; save it as .xlsx")
    if not any(name.endswith("xl/workbook.xml") for name in names):
        raise file_error("unsupported_file", "the file is not a workbook; save the table as .xlsx")


def _load(content: bytes, *, data_only: bool) -> dict[str, _Sheet]:
    with _translated_errors():
        book = openpyxl.load_workbook(
            io.BytesIO(content), read_only=True, data_only=data_only, keep_links=False
        )
        return {sheet.title[:31]: sheet for sheet in book.worksheets}


@contextmanager
def _translated_errors() -> Iterator[None]:
    """Translate whatever openpyxl raises for a file that no spreadsheet program would write."""
    try:
        yield
    except (errors.InvalidInput, MemoryError):
        raise
    except Exception as error:
        if any(isinstance(one, DefusedXmlException) for one in (error, error.__cause__)):
            message = "the workbook has a document type with entities, which is not allowed"
            raise file_error("xml_entities", message) from None
        message = "the workbook is damaged; save it anew as .xlsx, or the table as CSV"
        raise file_error("damaged", message) from error


def _filled(row: tuple[Any, ...], columns: list[int] | None) -> Iterator[tuple[int, Any]]:
    """Yield the columns of a row that have a cell, and these; of `columns` only, unless it is None."""
    if columns is None:
        yield from ((at, cell) for at, cell in enumerate(row) if cell is not EMPTY_CELL)
    else:
        yield from ((at, row[at]) for at in columns if at < len(row))


def _text(cell: Any) -> str:
    """Return the text of a cell, in the class of what it is."""
    value = cell.value
    if value is None:
        return ""
    if cell.data_type == "f":
        return cells.Formula("=")
    if cell.data_type == "e":
        return cells.Failure(value)
    return _value(value)


def _value(value: object) -> str:
    if isinstance(value, str):
        if len(value) > LONGEST_CELL:
            raise file_error("field_too_long", f"a cell has more than {LONGEST_CELL} characters")
        if "_x00" in value:
            return _ESCAPED.sub(lambda match: chr(int(match[1], 16)), value)
        return value
    if isinstance(value, bool):
        return str(value)
    if isinstance(value, int | float):
        # A whole number without decimal point and exponent, as a spreadsheet displays it.
        is_whole = isinstance(value, int) or (value.is_integer() and abs(value) < _LARGEST_WHOLE)
        return cells.Number(int(value) if is_whole else value)
    if isinstance(value, datetime.datetime):
        return cells.Date(value.isoformat(sep=" ").removesuffix(" 00:00:00"))
    return cells.Date(value)


def _with_value(text: str, value: object) -> str:
    """Return a formula with the value that it had, if there is one; every other text as it is."""
    has_value = isinstance(text, cells.Formula) and value is not None
    return cells.Formula(_value(value)) if has_value else text
