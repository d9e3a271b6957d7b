"""Prove the invariants of the register, and repair what is safe to repair."""

from __future__ import annotations

import argparse
from collections.abc import Iterator, Mapping
from typing import Any, TextIO

from pools.management import output
from pools.models import CheckRun
from pools.platform import events
from pools.platform.checks import registry, reports, runs

HELP = "Prove the invariants of the register (status 3: something is wrong)."
_BY = events.Author(actor="manage.py", source="command")
_COLUMNS = ("check", "state", "violations", "repaired", "seconds", "example", "invariants")
_MOST_SECONDS = 24 * 60 * 60


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--repair", action="store_true", help="repair what is safe; a holder's block never changes"
    )
    parser.add_argument(
        "--only", nargs="+", metavar="CODE", default=[], help=f"of {', '.join(registry.codes())}"
    )
    parser.add_argument(
        "--seconds", type=_seconds, default=runs.SECONDS, help=f"time limit; {runs.SECONDS}"
    )
    output.add_format(parser)


def run(options: Mapping[str, Any], out: TextIO) -> int:
    asked = runs.request_run(
        author=_BY, repair=options["repair"], only=options["only"], seconds=options["seconds"]
    )
    done = runs.execute(asked.pk) or asked
    table = options["output"] == "table"
    output.write(_rows(done, every=not table), _COLUMNS, options["output"], out)
    if table:
        out.write(f"\n{reports.sentence(done)}\n")
    return output.FOUND if done.violations else output.DONE


def _rows(done: CheckRun, *, every: bool) -> Iterator[dict[str, Any]]:
    """A line for each check and each further example; `every` line says all of its check."""
    for entry in done.report:
        examples = [one["text"] for one in entry["examples"]] or [""]
        for place, text in enumerate(examples):
            full = every or not place
            yield {
                "check": entry["code"] if full else "",
                "invariants": entry["invariants"] if full else "",
                "state": entry["state"] if full else "",
                "violations": entry["count"] if full else None,
                "repaired": entry["repaired"] if full else None,
                "seconds": entry["seconds"] if full else None,
                "example": text,
            }


def _seconds(text: str) -> int:
    number = int(text) if text.isascii() and text.isdigit() and len(text) < 9 else 0
    if not 1 <= number <= _MOST_SECONDS:
        raise argparse.ArgumentTypeError(f"must be 1 to {_MOST_SECONDS} seconds")
    return number
