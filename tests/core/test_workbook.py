"""A workbook that is sent while it is written is read by others as it was meant."""

from __future__ import annotations

import io
import itertools
from collections.abc import Iterator

import openpyxl
import pytest

from pools.core import xlsx_writer


def read(
    *rows: list[object], head: tuple[str, ...] = ("a",), title: str = "blocks"
) -> list[tuple[object, ...]]:
    book = openpyxl.load_workbook(io.BytesIO(b"".join(xlsx_writer.stream(title, head, rows))))
    assert len(book.sheetnames) == 1
    return list(book.worksheets[0].values)


@pytest.mark.parametrize(
    ("value", "cell"),
    [
        (1, 1), (-5, -5), (0.5, 0.5), (True, True), (False, False), (None, None),
        ("10.0.0.1/32", "10.0.0.1/32"), ("ä < b & \"c\"", "ä < b & \"c\""), ("  two ", "  two "), ("a\nb", "a\nb"),
        ("0123", "0123"), (2**53, 2**53), (2**80, str(2**80)), (float("inf"), "inf"),
        ("=1+1", "'=1+1"), ("+1", "'+1"), ("-1", "'-1"), ("@SUM(A1)", "'@SUM(A1)"),
        ("a\x00b\x1b", "a\ufffdb\ufffd"), ("\ud800", "\ufffd"), ("x" * 40_000, "x" * xlsx_writer.LONGEST),
    ],
)  # fmt: skip
def test_a_cell(value: object, cell: object) -> None:
    assert read([value]) == [("a",), (cell,)]


def test_head_rows_and_a_title_that_no_sheet_may_have() -> None:
    found = read(
        [1, "x"],
        [2, "y"],
        head=("number", "text"),
        title="a/b[c]: a title of more than 31 characters",
    )
    assert found == [("number", "text"), (1, "x"), (2, "y")]


def test_no_row_is_kept() -> None:
    asked = 0

    def rows() -> Iterator[list[object]]:
        nonlocal asked
        for asked in itertools.count(1):
            yield [asked]

    pieces = xlsx_writer.stream("x", ["a"], rows())
    next(pieces)
    first = asked
    next(pieces)
    assert first < 1000
    assert first < asked < 2000
