"""`ipam audit seal` and `ipam audit verify`: seal events into the audit chain, and verify it."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Mapping
from datetime import date
from typing import Any, TextIO

from pools.core import errors
from pools.management import output
from pools.platform.audit import anchors as audit_anchors
from pools.platform.audit import sealing, verification

HELP = "Seal the history, or verify it (status 3 when it differs from the sealed history)."
COLUMNS = ("code", "day", "segment", "numbers", "count", "message")


def add_arguments(parser: argparse.ArgumentParser) -> None:
    acts = parser.add_subparsers(dest="act", required=True)
    acts.add_parser("seal", help="seal all complete events (a worker does this every minute)")
    verify = acts.add_parser("verify", help="recompute the chain and list the differences")
    verify.add_argument(
        "--since", help="first day to verify, such as 2026-05-05 (default: the whole chain)"
    )
    verify.add_argument(
        "--anchor",
        action="append",
        default=[],
        metavar="SEGMENT:DIGEST",
        help="an anchor that was stored elsewhere: the chain must contain it",
    )
    verify.add_argument(
        "--anchors",
        metavar="FILE",
        help="file with anchors SEGMENT:DIGEST, such as a log; - reads standard input",
    )
    output.add_format(verify)


def run(options: Mapping[str, Any], out: TextIO) -> int:
    if options["act"] == "seal":
        return _seal(out)
    since = _day(options["since"])
    anchors = [audit_anchors.parse(text) for text in options["anchor"]]
    if options["anchors"] is not None:
        anchors += _read(options["anchors"])
    # Tables are not verified with --since: their rows have no day, and the check is slow.
    report = verification.verify(since=since, anchors=anchors, tables=since is None)
    form = options["output"]
    output.write((fault.as_json() for fault in report.faults), COLUMNS, form, out)
    if form == "table":
        out.write(f"{_summary(report)}\n")
    return output.DONE if report.ok else output.FOUND


def _seal(out: TextIO) -> int:
    sealed = sealing.seal(seconds=float("inf"))
    out.write(f"Sealed events: {sealed.events}, segments: {sealed.segments}.\n")
    if sealed.waiting:
        out.write("Later events are not sealed yet: an open transaction may still add events.\n")
    if sealed.busy:
        out.write("Another process is sealing events.\n")
    return output.DONE


def _summary(report: verification.Report) -> str:
    result = "intact" if report.ok else f"broken: {report.fault_count} faults"
    purged = f", {report.purged} purged" if report.purged else ""
    return (
        f"The chain is {result}; {report.events} events in {report.segments} segments{purged},"
        f" {report.unsealed} not sealed yet. Last digest {report.head or 'none'}"
    )


def _read(path: str) -> list[audit_anchors.Anchor]:
    if path == "-":
        return audit_anchors.read(sys.stdin)
    try:
        with open(path, encoding="utf-8", errors="replace") as lines:
            return audit_anchors.read(lines)
    except OSError as error:
        message = f"the file cannot be read: {error.strerror}"
        raise errors.InvalidInput.for_field("--anchors", "file", message, path) from None


def _day(text: str | None) -> date | None:
    if text is None:
        return None
    try:
        return date.fromisoformat(text)
    except ValueError:
        message = "write a day as 2026-05-05"
        raise errors.InvalidInput.for_field("--since", "day", message, text) from None
