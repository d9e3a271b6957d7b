"""`ipam audit seal` and `ipam audit verify`: seal events into the audit chain, and verify it."""

from __future__ import annotations

import argparse
from collections.abc import Mapping
from dataclasses import asdict
from datetime import UTC, datetime
from typing import Any, TextIO

from pools.core import errors
from pools.management import output
from pools.platform.audit import sealing, verification

HELP = "Seal the history, or verify it (status 3 when it differs from the sealed history)."
COLUMNS = ("code", "segment", "numbers", "count", "message")


def add_arguments(parser: argparse.ArgumentParser) -> None:
    acts = parser.add_subparsers(dest="act", required=True)
    acts.add_parser("seal", help="seal all complete events (a worker does this every minute)")
    verify = acts.add_parser("verify", help="compute the chain again and list the differences")
    verify.add_argument(
        "--since", help="first day to verify, such as 2026-05-05 (default: the whole chain)"
    )
    verify.add_argument(
        "--anchor",
        action="append",
        default=[],
        metavar="SEGMENT:DIGEST",
        help="an anchor that was kept elsewhere: the chain must contain it; may be repeated",
    )
    output.add_format(verify)


def run(options: Mapping[str, Any], out: TextIO) -> int:
    if options["act"] == "seal":
        out.write(f"Sealed events: {sealing.seal(seconds=float('inf'))}.\n")
        return output.DONE
    since = _day(options["since"])
    report = verification.verify(since=since, anchors=options["anchor"])
    # Rows of the register have no day, and comparing them takes long.
    faults = [*report.faults, *(verification.changed_rows() if since is None else ())]
    output.write((asdict(fault) for fault in faults), COLUMNS, options["output"], out)
    if options["output"] == "table":
        out.write(f"{_summary(report, len(faults))}\n")
    return output.FOUND if faults else output.DONE


def _summary(report: verification.Report, faults: int) -> str:
    result = f"broken: {faults} faults" if faults else "intact"
    not_checked = [f"{report.unsealed} events that are not sealed yet"]
    if report.purged:
        not_checked.append(f"{report.purged} events that the retention deleted")
    if report.unchecked:
        not_checked.append(f"the segments up to {report.unchecked}, which are older")
    return (
        f"The chain is {result}: {report.events} events in {report.segments} segments."
        f" Not checked: {', '.join(not_checked)}. Last anchor {report.anchor or 'none'}"
    )


def _day(text: str | None) -> datetime | None:
    if text is None:
        return None
    try:
        return datetime.strptime(text, "%Y-%m-%d").replace(tzinfo=UTC)
    except ValueError:
        message = "write a day as 2026-05-05"
        raise errors.InvalidInput.for_field("--since", "day", message, text) from None
