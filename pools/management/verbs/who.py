"""`ipam who`: who has an address, or had it; what a MAC or a holder has. Status 3 when nobody."""

from __future__ import annotations

import argparse
import contextlib
from collections.abc import Iterator, Mapping
from datetime import datetime
from typing import Any, TextIO

from pools.api import lookups
from pools.core import addresses, block_fields, errors
from pools.management import output
from pools.platform import database
from pools.register.history import addresses as history_addresses
from pools.register.history import holders
from pools.register.history.addresses import Tenure

HELP = "Who has an address, what a MAC or a holder has: now, or at a time (status 3 when nobody)."
COLUMNS = (
    "address", "state", "holder_kind", "holder_id", "holder_uid", "mac", "pool", "cluster", "org",
    "env", "since", "until",
)  # fmt: skip
_SHOWN = ("address", "state", "holder_kind", "holder_id", "org", "env", "pool", "cluster", "since",
          "until")  # fmt: skip
MOST = 1000  # blocks of one holder


def add_arguments(parser: argparse.ArgumentParser) -> None:
    output.add_format(parser)
    parser.add_argument(
        "who", help="an address, a MAC, or a holder: node-1, shop/web-1, instance:i-7"
    )
    parser.add_argument("--at", help="a time with its zone: 2026-05-05T14:02:00Z")
    parser.add_argument("--cluster", help="of this cluster only (also one that is gone)")


def run(options: Mapping[str, Any], out: TextIO) -> int:
    at = lookups.past(options["at"], "--at") if options["at"] else None
    cluster_id = _cluster(options["cluster"]) if options["cluster"] else None
    rows = list(_rows(options["who"].strip(), cluster_id, at or database.now()))
    form = options["output"]
    columns = _SHOWN if form == "table" else COLUMNS
    return output.DONE if output.write(rows, columns, form, out) else output.FOUND


def _cluster(name: str) -> int:
    found = lookups.find_cluster(name)
    former = found.pk if found else history_addresses.find_former_cluster(name)
    if former is None:
        raise errors.NotFound(f"There is no cluster {name}, and was none.")
    return former


def _rows(who: str, cluster_id: int | None, at: datetime) -> Iterator[output.Row]:
    with contextlib.suppress(errors.InvalidInput):
        address = addresses.parse_address(who, source=addresses.InputSource.TEXT)
        matches, _ = history_addresses.find_holders(address, cluster_id=cluster_id, at=at)
        yield from map(_row, matches)
        return
    named = [row for reader in holders.ADDRESS_NAMERS for row in reader(who, cluster_id, at)]
    yield from (_complete(row) for row in named)
    kind, colon, holder = who.partition(":")
    macs = {row["mac"] for row in named} - {""}
    for name, of_kind in {(who, ""), *((mac, "mac") for mac in macs)}:
        yield from _held(name, of_kind, cluster_id, at)
    if colon and holder and not macs:
        yield from _held(holder, kind, cluster_id, at)


def _held(holder: str, kind: str, cluster_id: int | None, at: datetime) -> Iterator[output.Row]:
    found = holders.find_tenures(
        holder=holder, kind=kind, cluster_id=cluster_id, moment=at, limit=MOST
    )
    yield from map(_row, found.tenures)


def _row(tenure: Tenure) -> output.Row:
    told = tenure.as_json()
    holder = {f"holder_{part}": value for part, value in told["holder"].items()}
    return {"address": told["block"], "mac": "", **told, **holder}


def _complete(row: Mapping[str, Any]) -> output.Row:
    """What an entry or a claim says, in the columns of a tenure."""
    told = {name: row.get(name, "") for name in COLUMNS}
    return {**told, "since": block_fields.time(row["since"])}
