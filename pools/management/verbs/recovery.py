"""`ipam recovery begin|status|end|hold`: recovery mode, which stops allocations after a restore."""

from __future__ import annotations

import argparse
import getpass
from datetime import timedelta
from typing import Any, TextIO

from pools.clusters import recovery_mode
from pools.core import addresses, errors, holders
from pools.core.holders import BlockDemand, Holder
from pools.management import output
from pools.models import Pool, Recovery
from pools.platform import events
from pools.register.allocator import requests

HELP = "Stop all allocations until each connected cluster has been listed once, as after a restore."
COLUMNS = ("active", "since", "reason", "actor", "waits_for", "ended_at", "ended_by")


def add_arguments(parser: argparse.ArgumentParser) -> None:
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


def run(options: dict[str, Any], out: TextIO) -> int:
    return _STEPS[options["step"]](options, out)


def author(reason: str) -> events.Author:
    """Return the operating system user as the author of events."""
    return events.Author(actor=getpass.getuser(), source="command", reason=reason)


def _begin(options: dict[str, Any], out: TextIO) -> int:
    lost = recovery_mode.time_since_last_write() if options["restored"] else timedelta()
    recovery_mode.begin(author=author(options["reason"]), lost=lost)
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
    rows = [] if row is None else [_row(row)]
    if not rows and options["output"] == "table":
        out.write("No recovery has been started.\n")
    output.write(rows, COLUMNS, options["output"], out)
    return output.FOUND if row is not None and row.ended_at is None else output.DONE


def _row(row: Recovery) -> dict[str, Any]:
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
    recovery_mode.end(author=author(options["reason"]), force=options["force"])
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
    blocks = requests.hold_in_recovery(pool.pk, block_demand, author=author(options["reason"]))
    out.writelines(f"{block['cidr']} is held by {kind}/{name}\n" for block in blocks)
    return output.DONE


_STEPS = {"begin": _begin, "status": _status, "end": _end, "hold": _hold}
