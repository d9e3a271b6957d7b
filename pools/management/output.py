"""Output of commands as a table, JSON or CSV, and their exit statuses."""

import argparse
import csv
import itertools
import json
import unicodedata
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple, TextIO

from pools.core import spreadsheet_cells

# Exit statuses. argparse uses 2 for a wrong command line.
DONE = 0
REFUSED = 1  # `code: message` on the standard error
FOUND = 3  # the command ran and reports a problem: a violation, a leak, no holder

FORMATS = ("table", "json", "csv")
WIDTH_SAMPLE = 1_000  # rows that determine the column widths of a table
Row = Mapping[str, Any]


class Verb(NamedTuple):
    """A subcommand; `run` takes the options and the output, and returns an exit status."""

    help: str
    add_arguments: Callable[[argparse.ArgumentParser], None]
    run: Callable[[dict[str, Any], TextIO], int]


def add_format(parser: argparse.ArgumentParser) -> None:
    """Add the option `-o table|json|csv`."""
    parser.add_argument("-o", "--output", choices=FORMATS, default="table", help="default: table")


def write(rows: Iterable[Row], columns: Sequence[str], form: str, out: TextIO) -> int:
    """Print the columns of the rows, and return the number of rows.

    JSON output is one array of objects. Rows are printed as they arrive, so the first thousand
    determine the column widths of a table. In CSV, cells that look like formulas are escaped.
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
    lines = ([_printable(_text(row[name])) for name in columns] for row in rows)
    first_lines = list(itertools.islice(lines, WIDTH_SAMPLE))
    if not first_lines:
        return 0
    headers = [name.replace("_", " ").upper() for name in columns]
    widths = [max(map(len, column)) for column in zip(headers, *first_lines, strict=True)]
    count = -1  # the header line is no row
    for line in itertools.chain([headers], first_lines, lines):
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
    """Replace control characters: names come from clusters and must not control the terminal."""
    return "".join(
        "\N{REPLACEMENT CHARACTER}" if unicodedata.category(char).startswith("C") else char
        for char in text
    )
