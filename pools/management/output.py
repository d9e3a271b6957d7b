"""What commands print: a table for people, JSON and CSV for programs; and how they end."""

from __future__ import annotations

import argparse
import csv
import itertools
import json
import unicodedata
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, TextIO

from pools.core import spreadsheet_cells

# Exit statuses. 2 is argparse's: the command line was wrong.
DONE = 0
REFUSED = 1  # `code: message` on the standard error
FOUND = 3  # it looked, and the answer is bad or nobody: a violation, a leak, no holder

FORMATS = ("table", "json", "csv")
MEASURED = 1_000  # rows
Row = Mapping[str, Any]


def add_format(parser: argparse.ArgumentParser) -> None:
    """`-o table|json|csv`."""
    parser.add_argument("-o", "--output", choices=FORMATS, default="table", help="default: table")


def write(rows: Iterable[Row], columns: Sequence[str], form: str, out: TextIO) -> int:
    """Print the rows' columns; how many rows there were.

    JSON is one array of objects. Rows are printed as they come; the widths of a table are those of
    its first thousand. A cell that a spreadsheet would take for a formula is marked in CSV.
    """
    if form == "json":
        return _json(rows, columns, out)
    if form == "csv":
        return _csv(rows, columns, out)
    return _table(iter(rows), columns, out)


def _json(rows: Iterable[Row], columns: Sequence[str], out: TextIO) -> int:
    count = 0
    for row in rows:
        out.write(",\n" if count else "[\n")
        out.write(json.dumps({name: row[name] for name in columns}, default=str))
        count += 1
    out.write("\n]\n" if count else "[]\n")
    return count


def _csv(rows: Iterable[Row], columns: Sequence[str], out: TextIO) -> int:
    writer = csv.writer(out)
    writer.writerow(columns)
    count = 0
    for row in rows:
        writer.writerow([spreadsheet_cells.escape(_text(row[name])) for name in columns])
        count += 1
    return count


def _table(rows: Iterator[Row], columns: Sequence[str], out: TextIO) -> int:
    texts = ([_printable(_text(row[name])) for name in columns] for row in rows)
    first = list(itertools.islice(texts, MEASURED))
    if not first:
        return 0
    heads = [name.replace("_", " ").upper() for name in columns]
    widths = [max(map(len, column)) for column in zip(heads, *first, strict=True)]
    count = -1  # the head
    for line in itertools.chain([heads], first, texts):
        padded = [text.ljust(width) for text, width in zip(line, widths, strict=True)]
        out.write("   ".join(padded).rstrip() + "\n")
        count += 1
    return count


def _text(value: Any) -> str:
    if value is None:
        return ""
    if isinstance(value, (list, tuple)):
        return " ".join(map(str, value))
    return str(value)


def _printable(text: str) -> str:
    """Names come from clusters: none of them may move a terminal's cursor."""
    return "".join(
        "\N{REPLACEMENT CHARACTER}" if unicodedata.category(one).startswith("C") else one
        for one in text
    )
