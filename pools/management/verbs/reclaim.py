"""`ipam reclaim`: take leaked blocks back, named one by one or by a stored `ipam leaks` report."""

from __future__ import annotations

import argparse
import getpass
from collections.abc import Iterator, Mapping
from typing import Any, TextIO

from pools.core import errors, holders
from pools.management import output
from pools.platform import events
from pools.register.leaks import listing, reclaim, reports

HELP = "Take leaked blocks back into their cooldown, with a reason."
_COLUMNS = ("block_id", "cidr", "holder", "result", "code", "message")


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "block", nargs="*", metavar="BLOCK", help="a block's id, CIDR or address, as leaked"
    )
    parser.add_argument(
        "--from-report", metavar="FILE", help="of `ipam leaks -o json` or csv; - is standard input"
    )
    parser.add_argument("--cluster", help="whose blocks are named: name or id")
    parser.add_argument("--reason", required=True, help="is kept with each block")
    parser.add_argument(
        "--dry-run", action="store_true", help="say what would be done, and change nothing"
    )
    output.add_format(parser)


def run(options: Mapping[str, Any], out: TextIO) -> int:
    """Status 1 when a block was refused; the others are taken back all the same."""
    if bool(options["block"]) == bool(options["from_report"]):
        raise errors.InvalidInput.for_field("BLOCK", "required", "Name blocks, or a report.")
    reason = holders.parse_reason(options["reason"], field="reason")
    author = events.Author(actor=getpass.getuser(), source="command", reason=reason)
    wanted = (
        reports.read_report(options["from_report"])
        if options["from_report"]
        else reports.find_targets(options["block"], cluster=options["cluster"])
    )
    refused: list[reclaim.ReclaimResult] = []
    results = reclaim.reclaim_all(wanted, author=author, dry_run=options["dry_run"])
    output.write(_rows(results, refused), _COLUMNS, options["output"], out)
    return output.REFUSED if refused else output.DONE


def _rows(
    results: Iterator[reclaim.ReclaimResult], refused: list[reclaim.ReclaimResult]
) -> Iterator[output.Row]:
    for one in results:
        if one.error:
            refused.append(one)
        yield {
            "block_id": one.target.block_id,
            "cidr": one.block["cidr"] if one.block else "",
            "holder": f"{one.target.kind} {one.target.id}",
            "result": listing.outcome_code(one),
            "code": one.error.code if one.error else "",
            "message": one.error.message if one.error else "",
        }
