"""`ipam reclaim`: reclaim leaked blocks, listed as arguments or in a report of `ipam leaks`."""

from __future__ import annotations

import argparse
import getpass
from collections.abc import Iterator, Mapping
from typing import Any, TextIO

from pools.core import errors, holders
from pools.management import output
from pools.platform import events
from pools.register.leaks import reclaim, reports

HELP = "Reclaim leaked blocks: they start their cooldown."
_COLUMNS = ("block_id", "cidr", "holder", "result", "code", "message")


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "block", nargs="*", metavar="BLOCK", help="id, CIDR or address of a leaked block"
    )
    parser.add_argument(
        "--from-report",
        metavar="FILE",
        help="output of `ipam leaks -o json` or csv; - reads standard input",
    )
    parser.add_argument("--cluster", help="cluster of the blocks: name or id")
    parser.add_argument("--reason", required=True, help="recorded in the history of each block")
    parser.add_argument(
        "--dry-run", action="store_true", help="show the result without changing anything"
    )
    output.add_format(parser)


def run(options: Mapping[str, Any], out: TextIO) -> int:
    """Reclaim the blocks; the status is 1 if some were refused, and the others are reclaimed."""
    if bool(options["block"]) == bool(options["from_report"]):
        raise errors.InvalidInput.for_field(
            "BLOCK", "required", "Pass either BLOCK arguments or --from-report."
        )
    reason = holders.parse_reason(options["reason"], field="reason")
    author = events.Author(actor=getpass.getuser(), source="command", reason=reason)
    targets = (
        reports.read_report(options["from_report"])
        if options["from_report"]
        else reports.find_targets(options["block"], cluster=options["cluster"])
    )
    refused: list[reclaim.ReclaimResult] = []
    results = reclaim.reclaim_all(targets, author=author, dry_run=options["dry_run"])
    output.write(_rows(results, refused), _COLUMNS, options["output"], out)
    return output.REFUSED if refused else output.DONE


def _rows(
    results: Iterator[reclaim.ReclaimResult], refused: list[reclaim.ReclaimResult]
) -> Iterator[output.Row]:
    for result in results:
        if result.error:
            refused.append(result)
        yield {
            "block_id": result.target.block_id,
            "cidr": result.block["cidr"] if result.block else "",
            "holder": f"{result.target.kind} {result.target.id}",
            "result": result.outcome,
            "code": result.error.code if result.error else "",
            "message": result.error.message if result.error else "",
        }
