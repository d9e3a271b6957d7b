"""`ipam check`: run the integrity checks, and repair violations where that is safe."""

from __future__ import annotations

import argparse
from collections.abc import Iterator, Mapping
from typing import Any, TextIO

from pools.management import output
from pools.models import CheckRun
from pools.platform import events
from pools.platform.checks import registry, reports, runs

HELP = "Run the integrity checks of the register (status 3 when a check finds violations)."
_BY = events.Author(actor="manage.py", source="command")
_COLUMNS = ("check", "state", "violations", "repaired", "seconds", "example", "invariants")
_MOST_SECONDS = 24 * 60 * 60


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--repair",
        action="store_true",
        help="repair violations where that is safe; the holder of a block never changes",
    )
    parser.add_argument(
        "--only",
        nargs="+",
        metavar="CODE",
        default=[],
        help=f"codes of checks: {', '.join(registry.codes())}",
    )
    parser.add_argument(
        "--seconds", type=_seconds, default=runs.SECONDS, help=f"time limit ({runs.SECONDS})"
    )
    output.add_format(parser)


def run(options: Mapping[str, Any], out: TextIO) -> int:
    requested_run = runs.request_run(
        author=_BY, repair=options["repair"], only=options["only"], seconds=options["seconds"]
    )
    run_record = runs.execute(requested_run.pk) or requested_run
    is_table = options["output"] == "table"
    output.write(_rows(run_record, repeat=not is_table), _COLUMNS, options["output"], out)
    if is_table:
        out.write(f"\n{reports.sentence(run_record)}\n")
    return output.FOUND if run_record.violations else output.DONE


def _rows(run_record: CheckRun, *, repeat: bool) -> Iterator[dict[str, Any]]:
    """Yield a row for each check and each further example.

    The rows of further examples repeat the columns of the check only if `repeat` is set.
    """
    for entry in run_record.report:
        examples = [example["text"] for example in entry["examples"]] or [""]
        for index, text in enumerate(examples):
            is_full = repeat or not index
            yield {
                "check": entry["code"] if is_full else "",
                "invariants": entry["invariants"] if is_full else "",
                "state": entry["state"] if is_full else "",
                "violations": entry["count"] if is_full else None,
                "repaired": entry["repaired"] if is_full else None,
                "seconds": entry["seconds"] if is_full else None,
                "example": text,
            }


def _seconds(text: str) -> int:
    number = int(text) if text.isascii() and text.isdigit() and len(text) < 9 else 0
    if not 1 <= number <= _MOST_SECONDS:
        raise argparse.ArgumentTypeError(f"must be 1 to {_MOST_SECONDS} seconds")
    return number
