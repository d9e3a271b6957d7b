"""`ipam audit verify`: compute the audit chain again."""

from __future__ import annotations

import argparse
from collections.abc import Mapping
from dataclasses import asdict
from datetime import UTC, datetime
from typing import Any, TextIO

from pools.management import output
from pools.platform import audit

HELP = "Verify the history (status 3 when it differs from the sealed history)."
COLUMNS = ("code", "segment", "numbers", "count", "message")


def day(text: str) -> datetime:
    return datetime.strptime(text, "%Y-%m-%d").replace(tzinfo=UTC)


def add_arguments(parser: argparse.ArgumentParser) -> None:
    acts = parser.add_subparsers(required=True)
    verify = acts.add_parser("verify", help="compute the chain again and list the differences")
    verify.add_argument("--since", type=day, help="first day to verify: 2026-05-05 (default: all)")
    anchor_help = "an anchor that was kept elsewhere: the chain must contain it; may be repeated"
    verify.add_argument(
        "--anchor", action="append", default=[], metavar="SEGMENT:DIGEST", help=anchor_help
    )
    output.add_format(verify)


def run(options: Mapping[str, Any], out: TextIO) -> int:
    since = options["since"]
    report = audit.verify(since=since, anchors=options["anchor"])
    # Rows of the register have no day, and comparing them takes long.
    faults = [*report.faults, *(audit.changed_rows() if since is None else ())]
    output.write((asdict(fault) for fault in faults), COLUMNS, options["output"], out)
    if options["output"] == "table":
        result = f"broken: {len(faults)} faults" if faults else "intact"
        out.write(
            f"The chain is {result}: {report.events} events in {report.segments} segments."
            f" Not checked: {report.unsealed} events that are not sealed yet, {report.purged} that the"
            f" retention deleted, segments up to {report.unchecked}. Last anchor {report.anchor or 'none'}\n"
        )
    return output.FOUND if faults else output.DONE
