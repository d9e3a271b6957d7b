"""Reading files alone: what the drafting of an import leaves to the register's work."""

import csv
import io
import time
from collections.abc import Callable, Iterator
from typing import Any

import openpyxl

from claims.imports import formats

_XLSX_TIMES, _CSV_TIMES = 3.0, 8.0  # of openpyxl's read-only mode, of the csv module, at most


def measure(text: bytes, book: bytes) -> Iterator[dict[str, Any]]:
    """The rows of a CSV and an XLSX of RVTools to interfaces, beside the bare reading of both."""
    bare_text = _seconds(lambda: sum(1 for _ in csv.reader(io.StringIO(text.decode(), newline=""))))
    yield _beside("import_csv_read", _seconds(lambda: _read(text)), bare_text, _CSV_TIMES)
    bare_book = _seconds(lambda: _read_bare(book))
    yield _beside("import_xlsx_read", _seconds(lambda: _read(book)), bare_book, _XLSX_TIMES)


def _read(content: bytes) -> int:
    return sum(1 for _ in formats.open_file("", content).rows())


def _read_bare(content: bytes) -> int:
    book = openpyxl.load_workbook(io.BytesIO(content), read_only=True, data_only=True)
    return sum(1 for sheet in book for _ in sheet.iter_rows(values_only=True))


def _seconds(work: Callable[[], object]) -> float:
    began = time.perf_counter()
    work()
    return time.perf_counter() - began


def _beside(name: str, took: float, bare: float, most: float) -> dict[str, Any]:
    return {
        "name": name,
        "seconds": round(took, 2),
        "bare_seconds": round(bare, 2),
        "ratio": round(took / bare, 2),
        "goal_at_most": most,
        "met": took <= most * bare,
    }
