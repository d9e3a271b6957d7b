"""`ipam leaks`, `reclaim`, `audit verify` and `recovery`: leaked blocks, the audit chain, and recovery mode after a restore."""

import argparse
import getpass
from collections.abc import Iterator, Mapping
from dataclasses import asdict
from datetime import UTC, datetime, timedelta
from typing import Any, TextIO

from pools.api import lookups
from pools.api.leaks import LeakSerializer
from pools.clusters import recovery_mode
from pools.core import addresses, errors, holders
from pools.core.holders import BlockDemand, Holder
from pools.management import output
from pools.models import Leak, Pool, Recovery
from pools.platform import audit, events
from pools.register.allocator import requests
from pools.register.leaks import detection, reclaim, reports

LEAKS_HELP = "List leaked blocks (status 3 when there are any)."
# `ipam reclaim --from-report` reads these columns.
_LEAK_COLUMNS = (
    "block_id", "cidr", "pool", "cluster", "holder_kind", "holder_id", "holder_uid", "org", "env",
    "allocated_at", "missed_at", "confirmed_at", "source", "why",
)  # fmt: skip
_LEAK_TABLE_COLUMNS = (
    "block_id", "cidr", "pool", "cluster", "holder_kind", "holder_id", "missed_at", "why",
)  # fmt: skip


def _author(reason: str) -> events.Author:
    """Return the operating system user as the author of events."""
    return events.Author(actor=getpass.getuser(), source="command", reason=reason)


def add_leaks_arguments(parser: argparse.ArgumentParser) -> None:
    output.add_format(parser)
    parser.add_argument("--cluster", help="only blocks of this cluster: name or id")
    parser.add_argument(
        "--holder-kind", help="only holders of this kind: node, instance, env, vm, …"
    )
    parser.add_argument(
        "--suspected",
        action="store_true",
        help="list suspected leaks: blocks that only one observation missed",
    )


def list_leaks(options: Mapping[str, Any], out: TextIO) -> int:
    rows = detection.suspected_leaks() if options["suspected"] else detection.confirmed_leaks()
    if options["cluster"]:
        cluster = lookups.find_cluster(options["cluster"])
        if cluster is None:
            raise errors.NotFound(f"There is no cluster {options['cluster']}.")
        rows = rows.filter(cluster=cluster)
    if options["holder_kind"]:
        rows = rows.filter(holder_kind=options["holder_kind"])
    form = options["output"]
    columns = _LEAK_TABLE_COLUMNS if form == "table" else _LEAK_COLUMNS
    count = output.write(_leak_rows(reports.iterate_leaks(rows)), columns, form, out)
    return output.FOUND if count else output.DONE


def _leak_rows(leaks: Iterator[Leak]) -> Iterator[output.Row]:
    serializer = LeakSerializer()
    for leak in leaks:
        row = serializer.to_representation(leak)
        yield row | {f"holder_{part}": value for part, value in row["holder"].items()}


RECLAIM_HELP = "Reclaim leaked blocks: they start their cooldown."
_RECLAIM_COLUMNS = ("block_id", "cidr", "holder", "result", "code", "message")


def add_reclaim_arguments(parser: argparse.ArgumentParser) -> None:
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


def reclaim_leaks(options: Mapping[str, Any], out: TextIO) -> int:
    """Reclaim the blocks; the status is 1 if some were refused, and the others are reclaimed."""
    if bool(options["block"]) == bool(options["from_report"]):
        raise errors.InvalidInput.for_field(
            "BLOCK", "required", "Pass either BLOCK arguments or --from-report."
        )
    reason = holders.parse_reason(options["reason"], field="reason")
    targets = (
        reports.read_report(options["from_report"])
        if options["from_report"]
        else reports.find_targets(options["block"], cluster=options["cluster"])
    )
    refused: list[reclaim.ReclaimResult] = []
    results = reclaim.reclaim_all(targets, author=_author(reason), dry_run=options["dry_run"])
    output.write(_reclaim_rows(results, refused), _RECLAIM_COLUMNS, options["output"], out)
    return output.REFUSED if refused else output.DONE


def _reclaim_rows(
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


AUDIT_HELP = "Verify the history (status 3 when it differs from the sealed history)."
_AUDIT_COLUMNS = ("code", "segment", "numbers", "count", "message")


def day(text: str) -> datetime:
    return datetime.strptime(text, "%Y-%m-%d").replace(tzinfo=UTC)


def add_audit_arguments(parser: argparse.ArgumentParser) -> None:
    acts = parser.add_subparsers(required=True)
    verify = acts.add_parser("verify", help="compute the chain again and list the differences")
    verify.add_argument("--since", type=day, help="first day to verify: 2026-05-05 (default: all)")
    anchor_help = "an anchor that was kept elsewhere: the chain must contain it; may be repeated"
    verify.add_argument(
        "--anchor", action="append", default=[], metavar="SEGMENT:DIGEST", help=anchor_help
    )
    output.add_format(verify)


def verify_audit(options: Mapping[str, Any], out: TextIO) -> int:
    since = options["since"]
    report = audit.verify(since=since, anchors=options["anchor"])
    # Rows of the register have no day, and comparing them takes long.
    faults = [*report.faults, *(audit.changed_rows() if since is None else ())]
    output.write((asdict(fault) for fault in faults), _AUDIT_COLUMNS, options["output"], out)
    if options["output"] == "table":
        result = f"broken: {len(faults)} faults" if faults else "intact"
        out.write(
            f"The chain is {result}: {report.events} events in {report.segments} segments."
            f" Not checked: {report.unsealed} events that are not sealed yet, {report.purged} that the"
            f" retention deleted, segments up to {report.unchecked}. Last anchor {report.anchor or 'none'}\n"
        )
    return output.FOUND if faults else output.DONE


RECOVERY_HELP = (
    "Stop all allocations until each connected cluster has been listed once, as after a restore."
)
_RECOVERY_COLUMNS = ("active", "since", "reason", "actor", "waits_for", "ended_at", "ended_by")


def add_recovery_arguments(parser: argparse.ArgumentParser) -> None:
    steps = parser.add_subparsers(dest="step", required=True)
    begin = steps.add_parser("begin", help="stop all allocations")
    begin.add_argument("--reason", required=True)
    begin.add_argument(
        "--restored",
        action="store_true",
        help="the database was just restored, and nothing has written to it since: cooldowns continue from"
        " their state in the backup",
    )
    status = steps.add_parser("status", help="show which clusters have not been listed yet")
    output.add_format(status)
    end = steps.add_parser("end", help="allow allocations again")
    end.add_argument(
        "--force", action="store_true", help="even if some clusters have not been listed"
    )
    end.add_argument("--reason", default="")
    hold = steps.add_parser("hold", help="record a block that is in use")
    hold.add_argument("cidr")
    hold.add_argument("holder", help="KIND/ID")
    hold.add_argument("--cluster", required=True)
    hold.add_argument("--pool", required=True)
    hold.add_argument("--uid", default="")
    hold.add_argument("--org", default="")
    hold.add_argument("--env", default="")
    hold.add_argument("--reason", required=True)


def run_recovery_step(options: dict[str, Any], out: TextIO) -> int:
    return _STEPS[options["step"]](options, out)


def _begin(options: dict[str, Any], out: TextIO) -> int:
    lost = recovery_mode.time_since_last_write() if options["restored"] else timedelta()
    recovery_mode.begin(author=_author(options["reason"]), lost=lost)
    waiting_clusters = recovery_mode.clusters_to_list()
    if waiting_clusters:
        names = ", ".join(waiting_clusters)
        out.write(f"Allocations are stopped until these clusters have been listed: {names}\n")
    else:
        out.write(
            "Allocations are stopped. No cluster is connected: end the recovery with"
            " `ipam recovery end`.\n"
        )
    return output.DONE


def _status(options: dict[str, Any], out: TextIO) -> int:
    row = Recovery.objects.order_by("-id").first()
    rows = [] if row is None else [_recovery_row(row)]
    if not rows and options["output"] == "table":
        out.write("No recovery has been started.\n")
    output.write(rows, _RECOVERY_COLUMNS, options["output"], out)
    return output.FOUND if row is not None and row.ended_at is None else output.DONE


def _recovery_row(row: Recovery) -> dict[str, Any]:
    columns = {
        name: getattr(row, name) for name in ("since", "reason", "actor", "ended_at", "ended_by")
    }
    active = row.ended_at is None
    return {
        **columns,
        "active": active,
        "waits_for": recovery_mode.clusters_to_list() if active else [],
    }


def _end(options: dict[str, Any], out: TextIO) -> int:
    recovery_mode.end(author=_author(options["reason"]), force=options["force"])
    out.write("The recovery has ended. Allocations are possible again.\n")
    return output.DONE


def _hold(options: dict[str, Any], out: TextIO) -> int:
    pool = Pool.objects.filter(cluster__name=options["cluster"], name=options["pool"]).first()
    if pool is None:
        raise errors.NotFound("There is no such pool.")
    kind, _, name = options["holder"].partition("/")
    holder = Holder(
        holders.parse_label(kind, field="kind"),
        holders.parse_identifier(name, field="id"),
        options["uid"],
    )
    block_demand = BlockDemand(
        (holder,),
        org=options["org"],
        env=options["env"],
        cidr=addresses.parse_block(options["cidr"], field="cidr"),
    )
    blocks = requests.hold_in_recovery(pool.pk, block_demand, author=_author(options["reason"]))
    out.writelines(f"{block['cidr']} is held by {kind}/{name}\n" for block in blocks)
    return output.DONE


_STEPS = {"begin": _begin, "status": _status, "end": _end, "hold": _hold}


VERBS: Mapping[str, output.Verb] = {
    "leaks": output.Verb(LEAKS_HELP, add_leaks_arguments, list_leaks),
    "reclaim": output.Verb(RECLAIM_HELP, add_reclaim_arguments, reclaim_leaks),
    "audit": output.Verb(AUDIT_HELP, add_audit_arguments, verify_audit),
    "recovery": output.Verb(RECOVERY_HELP, add_recovery_arguments, run_recovery_step),
}
